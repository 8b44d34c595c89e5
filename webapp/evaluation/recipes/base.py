"""The base of a recipe: a config, the data it needs, and a function that asks for missing judgements and scores."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from trainer.config.errors import FieldProblem
from trainer.config.fields import Section, knob
from trainer.contracts import CriterionResult, Example
from trainer.judges.inputs import JudgeInput
from webapp.weights.kinds import Resources

from ..models import MAX_TAG
from ..report import Report

Need = Literal["no", "may", "must"]
Recorded = Literal["verdicts", "scores"]


class Stopped(Exception):
    """The evaluation was paused or cancelled: everything found so far is kept in the verdict store."""


class ClusterWaiting(Exception):
    """The cluster is still working. No thread waits for it, and the recipe starts again later."""


class NotMeasured(Exception):
    """A measure could not be taken; the message says why, and is shown in place of the number."""


class NothingToScore(ValueError):
    """The data has nothing that this recipe could score; the message says what is missing."""


class Budget(Section):
    """A hard limit: no call is made once it is reached, and the evaluation pauses with its results so far."""

    tokens: int | None = knob(None, "Tokens read and written, together", unit="tokens", ge=1)
    money: float | None = knob(None, "Cost by the endpoints' price tables", gt=0)


class RecipeConfig(Section):
    """Base of every recipe's config. `tried` names the fields with what is compared: the other fields define the benchmark."""

    tried: ClassVar[tuple[str, ...]] = ("judges",)
    draws: ClassVar[int] = 1  # samples that the recipe itself takes of one question
    spared: ClassVar[tuple[str, ...]] = (
        "budget",
        "draw",
        "resources",
    )  # these belong neither to what is compared nor to the benchmark

    budget: Budget | None = knob(None, "Stop before more than this is spent")
    draw: int = knob(0, "Another number asks judges again; earlier answers are kept", advanced=True, ge=0, le=1000)

    resources: Resources = Resources()

    def problems(self) -> Iterator[FieldProblem]:
        """Combinations of single valid values that cannot work together."""
        yield from ()

    def judge_problems(self, judges: Mapping[str, "JudgeFacts"]) -> Iterator[FieldProblem]:
        """Problems of the chosen judge versions with the protocol, at the path of their field."""
        yield from ()


def listed_twice(field: str, versions: Sequence[int]) -> Iterator[FieldProblem]:
    """A problem at each choice of a judge version that is listed already."""
    for i, version in enumerate(versions):
        if version in versions[:i]:
            yield FieldProblem(f"{field}.{i}.version", "is listed twice")


@dataclass
class FoundCase:
    """A case as a recipe finds it."""

    subject: dict[str, Any]
    values: dict[str, Any]
    tags: list[str] = field(default_factory=list)


class StoredCase(Protocol):
    """A case as it was stored: what a recipe found, or its row."""

    subject: Any
    values: Any


@dataclass(frozen=True)
class ModelPassRates:
    """Pass rates of one model; `counts`: key of an example -> (answers that passed, answers with a score)."""

    model: str
    samples: int
    threshold: float
    counts: Mapping[str, tuple[int, int]]


@dataclass
class RecipeOutcome:
    """`records`: examples with generated responses, which become a version of the dataset that the config names. `pass_rates` become probes
    of the version that was evaluated."""

    report: Report
    cases: list[FoundCase]
    records: Sequence[Example] = ()
    pass_rates: Sequence[ModelPassRates] = ()


@dataclass(frozen=True, eq=False)
class JudgedQuestion:
    """The outcome of one question to a judge: `parsed` None means that there is no usable answer, and `problem` says why.

    `id` is that of the stored verdict; 0 if the question was not asked. `state`: done, missing (answered, unusably), failed (the endpoint
    gave no answer) or uncalled.
    """

    id: int
    parsed: Mapping[str, Any] | None
    raw: str
    problem: str
    subject: Mapping[str, Any]
    state: str = "done"


@dataclass(frozen=True)
class VerdictSpending:
    """The spending of stored verdicts: seconds of those with a latency; None if nothing is known of tokens or cost."""

    latencies: list[float]
    tokens: int | None
    cost: float | None


@dataclass(frozen=True)
class Rollout:
    """A response that a run sampled, with the criteria as the run scored them."""

    example: str
    prompt: str
    text: str
    criteria: tuple[CriterionResult, ...]
    tokens: int | None


class Writer(Section):
    """A model that answers: one of the registry, whose weights the cluster loads, or a chat endpoint."""

    name: str = knob("", "Its name in the report; empty: the name of the model or endpoint", max_length=60)
    model: int | None = knob(None, "A registered model that writes text", source="models:lm")
    endpoint: int | None = knob(None, "Or a model behind a chat endpoint", source="endpoints:chat")


@dataclass(frozen=True)
class WrittenText:
    """The answer of a writer to a prompt. `problem` says why there is no text; `tokens` is None if nobody counted."""

    example: str
    sample: int
    text: str
    finish_reason: str = ""
    tokens: int | None = None
    problem: str = ""


@dataclass(frozen=True)
class StudyJudgement:
    """One person's judgement of the pair `a`, `b` in one arm of a study. `side` -1 `a`, 0 tie, 1 `b`, None: could not be assessed. `rater`
    is a pseudonym, `rubric` the words they judged by."""

    example: str
    a: str
    b: str
    arm: str
    rater: str
    side: int | None
    seconds: float
    rubric: tuple[str, ...]


@dataclass(frozen=True)
class ProjectAnswer:
    """An answer of a project with its subject, in the frame of its task. `rater` is a pseudonym, `seconds` is 0 if nobody measured them,
    `texts` are the responses by their ids as the person saw them."""

    example: str
    subject: Mapping[str, Any]
    content: Mapping[str, Any]
    rater: str
    seconds: float
    texts: Mapping[str, str]


@dataclass(frozen=True)
class JudgeFacts:
    """A judge version; `key` is its name in cases and reports. `asks` is the same for versions that ask the same model."""

    version: int
    judge: int
    key: str
    kind: str
    spec: Mapping[str, Any]
    asks: str = ""


class Context(Protocol):
    """The environment of a recipe. `config` is the resolved config as JSON."""

    config: Any
    dataset: str

    def examples(self) -> Iterator[Example]:
        """The examples of the dataset version, in its order; empty if there is none."""

    def graded(self, datasets: Sequence[int]) -> Iterator[tuple[str, Iterator[Example]]]:
        """The evaluation's own version and the newest of each of these datasets: its name, and its examples. Raises
        NothingToScore for one that is not there."""

    def lines(self) -> Iterator[Any]:
        """The lines of the recording, in its order; empty if there is none."""

    def judge_facts(self, version: int) -> JudgeFacts: ...

    def judge(self, version: int, inputs: Sequence[JudgeInput], phase: str, draw: int = 0) -> list[JudgedQuestion]:
        """The answers to `inputs`, in their order; only new questions are asked. Raises Stopped, and ClusterWaiting while the cluster is
        working: a judge with local weights is asked by a job.

        Another `draw` asks for other samples of the same questions.
        """

    def writer_name(self, writer: Writer) -> str:
        """The writer's name in the registry or the list of endpoints."""

    def written(self, writers: Sequence[Writer], examples: Sequence[Example]) -> list[list[WrittenText]]:
        """The answers of each writer to the prompts, sampled as the config says. Stored answers are used.

        Raises Stopped, and ClusterWaiting while the cluster is working.
        """

    def scored(self, models: Sequence[int], most: int) -> list[dict[tuple[str, str], float | None]]:
        """The scores of each reward model of the registry for the responses, by example and response, of the first `most` prompts that have
        any; None if it cannot read one. Raises Stopped, and ClusterWaiting while the cluster is working."""

    def rollouts(self, run: int, step: int | None) -> Iterator[Rollout]:
        """The responses that a run's evaluation sampled at a step; without a step, at the newest."""

    def trained(self, run: int, step: int | None) -> Iterator[Rollout]:
        """The responses that a run sampled to learn from since the evaluation before `step`: the newest first, with its scaffold."""

    def embedding_diversity(self, texts: dict[str, list[str]]) -> dict[str, float | None]:
        """Mean cosine distance of the texts under each key; None for fewer than two. Raises NotMeasured."""

    def novelty(self, run: int, step: int | None) -> list[float | None]:
        """rho of each of `rollouts`, in their order; None if a response has no token. Raises NotMeasured."""

    def study(self, project: int) -> Iterator[StudyJudgement]:
        """The answers of a study's project as they are now."""

    def answers(self, project: int) -> Iterator[ProjectAnswer]:
        """The answers of a project as they are now, for any kind of project."""

    def spent(self, verdicts: Sequence[int]) -> VerdictSpending: ...

    def tell(self, phase: str, done: int, total: int) -> None:
        """Reports the progress of the work. Raises Stopped."""


def _nothing_wrong(config: Any, dataset: bool, recording: bool) -> Iterator[FieldProblem]:
    yield from ()


@dataclass(frozen=True)
class Recipe:
    """`dataset` and `recording` say whether it needs them. `check` finds what is wrong with a config for a
    choice of data: (config, whether there is a dataset, whether there is a recording). `tasks`: the kind of annotation
    task that its cases are best asked about in. `recorded`: what a recording holds; scores are what is tried, verdicts are on
    pairs that belong to the benchmark. `makes`: the field of the config that names a dataset for what is generated.
    `known_again` works out from labels and stored cases what a licence shows of each judge: the `known` of its `Entry`, by
    its name."""

    name: str
    title: str
    question: str
    summary: str
    icon: str
    schema: type[RecipeConfig]
    run: Callable[[Context], RecipeOutcome]
    dataset: Need = "must"
    recording: Need = "no"
    check: Callable[[Any, bool, bool], Iterator[FieldProblem]] = _nothing_wrong
    measure: str = "Accuracy"
    tasks: str = "pairwise"
    recorded: Recorded = "verdicts"
    makes: str = ""
    known_again: Callable[[Iterable[Example], Iterable[StoredCase]], dict[str, dict[str, Any]]] | None = None


def tag(kind: str, value: str) -> str:
    """`kind:value`, short enough to be stored; two values with the same first letters share their cases."""
    return f"{kind}:{value}"[:MAX_TAG].replace("\0", "")
