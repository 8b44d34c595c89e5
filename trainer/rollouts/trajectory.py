"""Sampled responses on their way from the sampler to the update: the author of each token, and the reward."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from typing import Any, Literal, NamedTuple

from trainer.contracts import CriterionResult, PartResult
from trainer.inference.sampling import SampleResult

Author = Literal["prompt", "policy", "env"]
Stop = Literal["stop", "length", "env", "error"]
"""The end of a trajectory: the policy, the limit of tokens, the environment, an error."""


@dataclass(frozen=True)
class PromptPlan:
    """The prompts of a response that will be sampled. Without a scaffold the two prompts are the same tokens."""

    example_key: str
    group: int
    index: int
    prompt_text: str
    prompt_tokens: tuple[int, ...]
    """The prompt without scaffold, on which log-probabilities in training are conditioned."""
    sampled_prompt_tokens: tuple[int, ...]
    """The prompt that the sampler sees."""
    seed: int
    scaffold: str = ""
    scaffold_shown: int = 0
    hint: float = 0.0
    """The share of the reference reasoning that `scaffold` shows."""
    role: str = "policy"
    turn: int = 0
    """The number of the trajectory in its episode: above 0 if its context was written again between turns."""


@dataclass(frozen=True)
class Reward:
    """`total` is None if the response gets no training signal; `excluded` then says why."""

    total: float | None
    components: dict[str, float] = field(default_factory=dict)
    criteria: tuple[CriterionResult, ...] = ()
    score: float | None = None
    """The rubric score, with any components; `clipped` is the same in [0, 1]."""
    clipped: float | None = None
    excluded: str = ""
    parts: tuple[PartResult, ...] = ()
    """Every part as it was measured, also parts without a value and parts that are not trained on."""
    away: bool = False
    """Whether the response is excluded because a service did not answer and its part says to continue without it."""


UNSCORED = Reward(None, excluded="it was not scored")


class Span(NamedTuple):
    """Tokens of one author, exactly as they came: ids are never made again from text.

    Tokens of the policy have the log-probabilities with which they were sampled, one each, and the `version` of the weights that sampled
    them. Tokens of others have no log-probabilities, and version -1.
    """

    author: Author
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...] = ()
    version: int = -1


class TrajectoryKey(NamedTuple):
    """The key of a trajectory: the trained role, the group and the place in it, the turn of the episode."""

    role: str
    group: int
    place: int
    turn: int


@dataclass(frozen=True)
class Trajectory:
    """A prompt, and after it what policy and environment wrote in turns. One prompt and one response are two spans.

    Only the policy's tokens are learnt: tokens of others are read, and count in no loss, mean, ratio or length. Raises ValueError
    for impossible spans.
    """

    plan: PromptPlan
    spans: tuple[Span, ...]
    text: str
    """The text of the policy, of its last turn if there are several: rewards read it."""
    stop: Stop
    reward: Reward = UNSCORED
    view: tuple[int, ...] = ()
    """Another prompt for pi in training than the one that was sampled from (scaffold, self-distillation); () for the same."""

    def __post_init__(self) -> None:
        if problem := _problem(self.spans):
            raise ValueError(f"a trajectory {problem}")

    @classmethod
    def of(
        cls,
        plan: PromptPlan,
        result: SampleResult,
        reward: Reward = UNSCORED,
        versions: Sequence[tuple[int, int, int]] = (),
    ) -> "Trajectory":
        """One response to one prompt. `versions` are (version, start, end) of the tokens, if several weights sampled them."""
        cuts = versions or ((result.version, 0, len(result.tokens)),)
        said = [Span("policy", result.tokens[a:b], result.logprobs[a:b], version) for version, a, b in cuts]
        spans = (Span("prompt", plan.sampled_prompt_tokens), *said)
        return cls(plan, spans, result.text, result.finish_reason, reward, other_view(plan))

    @property
    def key(self) -> TrajectoryKey:
        return TrajectoryKey(self.plan.role, self.plan.group, self.plan.index, self.plan.turn)

    @property
    def prompt(self) -> tuple[int, ...]:
        """The first tokens that the sampler saw."""
        return self.spans[0].tokens

    @property
    def tokens(self) -> tuple[int, ...]:
        """All tokens after the prompt, of any author: T tokens."""
        return _joined([span.tokens for span in self.spans[1:]])

    @property
    def places(self) -> Sequence[int]:
        """The places of the policy's tokens among the T, ascending: the mask is `author == "policy"`."""
        found = [range(start, end) for span, start, end in self._laid_out() if span.author == "policy"]
        if found and all(one.stop == other.start for one, other in pairwise(found)):
            return range(found[0].start, found[-1].stop)
        return tuple(chain.from_iterable(found))

    @property
    def logprobs(self) -> tuple[float, ...]:
        """The log-probabilities of the policy's tokens, end to end."""
        return _joined([span.logprobs for span in self.spans[1:] if span.author == "policy"])

    @property
    def length(self) -> int:
        """The number of tokens that the policy wrote."""
        return sum(len(span.tokens) for span in self.spans if span.author == "policy")

    @property
    def versions(self) -> tuple[tuple[int, int, int], ...]:
        """(version, start, end) of each stretch among the T tokens that one set of weights sampled."""
        found: list[tuple[int, int, int]] = []
        for span, start, end in self._laid_out():
            if span.author != "policy":
                continue
            if found and (found[-1][0], found[-1][2]) == (span.version, start):
                start = found.pop()[1]
            found.append((span.version, start, end))
        return tuple(found)

    def _laid_out(self) -> list[tuple[Span, int, int]]:
        """Each span after the prompt, with its start and end among the T tokens."""
        ends = list(accumulate((len(span.tokens) for span in self.spans[1:]), initial=0))
        return list(zip(self.spans[1:], ends[:-1], ends[1:], strict=True))


def other_view(plan: PromptPlan) -> tuple[int, ...]:
    """The view that follows from a plan."""
    return () if plan.prompt_tokens == plan.sampled_prompt_tokens else plan.prompt_tokens


def _joined(parts: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    return parts[0] if len(parts) == 1 else tuple(chain.from_iterable(parts))


def _problem(spans: Sequence[Span]) -> str:
    """The problem that makes these spans impossible; empty if they are valid."""
    if not spans or spans[0].author != "prompt" or not spans[0].tokens:
        return "begins with a prompt of one token or more"
    for span in spans[1:]:
        if span.author not in ("policy", "env"):
            return f"has behind its prompt what the policy or the environment wrote, not {span.author!r}"
        if len(span.logprobs) != (len(span.tokens) if span.author == "policy" else 0):
            return (
                f"has a log-probability for each token of the policy and none for others, not {len(span.logprobs)} "
                f"for {len(span.tokens)} of author {span.author!r}"
            )
    return ""
