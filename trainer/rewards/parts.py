"""The responses that get a reward, the parts of the reward, and the judges and services that are asked. Missing is missing: None is never 0."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from trainer.config.rewards.parts import RewardPart
from trainer.contracts import Example, Rubric, Verdict
from trainer.judges.budget import Budget
from trainer.judges.inputs import JudgeInput
from trainer.judges.spec import BaseSpec, OrderedSpec

from .reason_matching import Matcher

JSON = Any


class Usage(NamedTuple):
    """The usage of calls. `cost` is None if no call has a known price; `latency_s` is the sum over the calls."""

    calls: int = 0
    tokens: int = 0
    cost: float | None = None
    latency_s: float = 0.0

    def plus(self, other: "Usage") -> "Usage":
        costs = [each for each in (self.cost, other.cost) if each is not None]
        return Usage(
            self.calls + other.calls,
            self.tokens + other.tokens,
            sum(costs) if costs else None,
            self.latency_s + other.latency_s,
        )


class Part(NamedTuple):
    """One part of one response's reward. If `value` is None, `why` says what is missing, and the response is left out of training.

    `shown` is what people may want to see. `verdicts` are verdicts on criteria, if the part has any. `away`: the judge or service cannot be
    asked at present, so the same question may be answered later.
    """

    value: float | None
    why: str = ""
    shown: JSON = None
    verdicts: tuple[Verdict, ...] = ()
    usage: Usage = Usage()
    away: bool = False


class Unscored(Exception):
    """A response has no value; the message is the reason."""


class Away(Exception):
    """The judge or service cannot be asked at present; the message says why. The same question may be asked again."""


@dataclass(frozen=True)
class Item:
    """One response that gets a reward, or one attempt in several turns.

    `place` (phase, step, group, index) is unique within the run, and the same when the run is resumed. `response` is the policy's last
    turn, `tokens` the number of its tokens, `longest` the length at which responses are cut, `cut` whether this one was: a response that ends by
    itself exactly there is whole. `rubric` may hold fewer criteria than that of
    the example. `baseline` is the policy's most likely answer, if a part compares with it; `facts` come from an environment.
    """

    place: str
    example: Example
    rubric: Rubric | None
    response: str
    tokens: int
    longest: int
    baseline: str | None = None
    cut: bool = False
    facts: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True)
class RewardAnswer:
    """A judge's answer to one question, in the form for `trainer.judges.combine`. `called`: this question made the call.

    `away`: there is no answer because the judge cannot be asked; `problem` says why.
    """

    subject: Mapping[str, Any]
    parsed: Mapping[str, Any] | None
    raw: str = ""
    problem: str = ""
    called: bool = False
    tokens: int = 0
    cost: float | None = None
    latency_s: float = 0.0
    away: bool = False

    @property
    def usage(self) -> Usage:
        return Usage(1, self.tokens, self.cost, self.latency_s) if self.called else Usage()


class RewardJudge(Protocol):
    """A judge version that can be asked. `key` names all that its answers depend on, besides the question."""

    spec: BaseSpec
    key: str

    async def ask(self, inputs: Sequence[JudgeInput]) -> list[list[RewardAnswer]]:
        """For each input the answers to its questions, in the order of `trainer.judges.calls.expand`. An input that lacks something has one
        answer, with the problem and nothing parsed. Faults of a judge or an endpoint never raise."""
        ...

    async def close(self) -> None: ...


class Scalar(Protocol):
    """A reward model. `key` names its weights."""

    key: str

    async def score(self, conversations: Sequence[Sequence[tuple[str, str]]], max_tokens: int) -> list[float | str]:
        """The score of each conversation, or why there is none. A conversation is a list of (role, content) and ends with the response."""
        ...


class Service(Protocol):
    """A user's own reward: a service on the network, or a function of an installed package."""

    async def answer(self, responses: Sequence[Mapping[str, JSON]], seconds: float | None = None) -> JSON:
        """The answer about a group of responses. Raises Away, or Unscored if another call would not help."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class Services:
    """The judges, models and services that the parts of a reward may ask, by the names that the config uses."""

    judges: Mapping[str, RewardJudge] = field(default_factory=dict)
    models: Mapping[str, Scalar] = field(default_factory=dict)
    endpoints: Mapping[str, Service] = field(default_factory=dict)
    functions: Mapping[str, Service] = field(default_factory=dict)
    matchers: Mapping[str, Matcher] = field(default_factory=dict)
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    """The budgets of judges that this process asks itself."""

    async def close(self) -> None:
        for judge in self.judges.values():
            await judge.close()
        for service in (*self.endpoints.values(), *self.functions.values()):
            await service.close()


def part_of_answer(raw: Any, why: str = "", shown: JSON = None) -> Part:
    """A part from an answer. If the answer is not a finite number, the part is missing with the reason."""
    if raw is None:
        return Part(None, why or "it answered nothing", shown)
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return Part(None, f"it answered {_told(raw)}, which is not a number", shown)
    if not math.isfinite(raw):
        return Part(None, f"it answered {raw}, which is not a finite number", shown)
    return Part(float(raw), why, shown)


def spec_problem(part: RewardPart, spec: BaseSpec) -> str:
    """The reason why this judge cannot do what the part asks of it; empty if it can."""
    wanted = part.judge_kinds
    if spec.kind not in wanted:
        return f"is of kind {spec.kind!r}; this needs {' or '.join(map(repr, wanted))}"
    if isinstance(spec, OrderedSpec) and spec.order != "both":
        return f"shows the responses in one order only ({spec.order!r}); a reward needs 'both', or places would earn it"
    return ""


def _told(raw: Any) -> str:
    text = repr(raw)
    return text if len(text) <= 60 else f"{text[:57]}..."
