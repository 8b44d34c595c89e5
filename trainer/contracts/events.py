"""Numbered events: all that a run reports to the web side.

A run numbers its events 1, 2, 3, ... across restarts. The server stores an event once, also if it
is sent several times, and acknowledges the highest number below which nothing is missing.
"""

from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AliasChoices, AwareDatetime, Field, JsonValue, StringConstraints, model_validator

from .base import Record
from .model_folder import FileName, ModelFacts, ModelSource
from .storing import StoredFiles
from .trace import StepKind
from .verdict import Verdict

MAX_EVENTS_PER_POST = 200
CARRIES = "TOUCHSTONE_CARRIES"
"""Environment of a run's process that trains other runs as well: JSON, the token of each by its id."""
MAX_POST_BYTES = 4_000_000

RunState = Literal[
    "draft",
    "queued",
    "starting",
    "running",
    "blocked",
    "pausing",
    "paused",
    "stopping",
    "stopped",
    "finished",
    "failed",
]
TERMINAL_STATES: frozenset[str] = frozenset({"stopped", "finished", "failed"})

MetricKey = Annotated[str, StringConstraints(min_length=1, max_length=80)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]  # fits the database's integer


class Histogram(Record):
    """`counts[i]` values fell in `edges[i] <= v < edges[i+1]`; the outer bins also hold the values beyond the edges."""

    edges: tuple[float, ...] = Field(min_length=2)
    counts: tuple[int, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _bins_are_whole(self) -> Self:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError(f"{len(self.counts)} counts need {len(self.counts) + 1} edges, not {len(self.edges)}")
        return self


class MetricsData(Record):
    """Scalars and histograms of one step. A value that is undefined is left out, never sent as zero."""

    kind: Literal["metrics"] = "metrics"
    values: dict[MetricKey, float] = Field(default_factory=dict)
    histograms: dict[MetricKey, Histogram] = Field(default_factory=dict)


class CriterionResult(Record):
    """A criterion as it was scored. It has text and points, so that a rollout can be read without its rubric."""

    text: str
    points: float
    kind: str
    verdict: Verdict


class PartResult(Record):
    """One part of a response's reward, as measured: neither clipped nor weighted.

    If `value` is None, the part has no value, and `why` says why; else `why` may explain the value. `shown` is more to look at: what a
    judge said, what a service answered. `calls` counts the calls to judges that the part made now; stored verdicts cost nothing.
    """

    name: str
    kind: str
    value: float | None = None
    why: str = ""
    shadow: bool = False
    shown: JsonValue = None
    calls: Count = 0
    tokens: Count = 0
    cost: float | None = None
    latency_s: float = 0.0


class TokenStretch(Record):
    """Weights sampled the tokens `start <= t < end` of a response after `version` updates."""

    version: Count
    start: Count
    end: Count


class RolloutTurn(Record):
    """The part of a response that one author wrote in one go, and its number of tokens.

    `kind`, `tool`, `call` and `failed` are those of a `TraceStep`: a result names its call by `call`. `seconds` is how long the turn took,
    and `reward` what it earned by itself; None if nobody recorded it.
    """

    author: Literal["policy", "env"]
    text: str
    tokens: Count
    kind: StepKind = "text"
    tool: str = Field("", max_length=200)
    call: str = Field("", max_length=200)
    failed: bool = False
    seconds: float | None = Field(None, ge=0)
    reward: float | None = None


class TurnPart(RolloutTurn):
    """A turn of an episode by its number, from 0, or a part of its text. All parts of a turn have the same facts."""

    number: Count
    part: Count = 0


class RolloutRecord(Record):
    """One response with everything that the viewer shows. Token arrays have the length of the response. A token that an environment
    wrote has no log-probability and no ratio, and its mask is 0.

    A pair is a group of two: index 0 is the preferred answer, 1 the other. `components` are numbers by which people sort and filter; a
    pair has those of `trainer.contracts.pairs.compared`. `facts` are other things to know about the response, in few words.
    """

    phase: Literal["train", "eval"] = "train"
    example_key: str = Field(max_length=200)
    group: Count
    index: Count
    prompt: str
    scaffold: str = ""
    scaffold_shown: int = 0
    hint: float = 0.0
    """The share of the reference reasoning that `scaffold` shows, if it is a hint."""
    response: str
    finish_reason: Literal["stop", "length", "env", "error"]
    reward: float | None = None
    components: dict[str, float] = Field(default_factory=dict)
    facts: dict[str, str | float | bool] = Field(default_factory=dict)
    advantage: float | None = None
    criteria: tuple[CriterionResult, ...] = ()
    parts: tuple[PartResult, ...] = ()
    excluded: str = ""
    tokens: tuple[str, ...] = ()
    logprobs: tuple[float | None, ...] = ()
    ratios: tuple[float | None, ...] = ()
    mask: tuple[float, ...] = ()
    entropies: tuple[float | None, ...] = ()
    """Entropy of the trained policy's distribution at each token, in nats; None for a token of the environment."""
    advantages: tuple[float | None, ...] = ()
    """The advantage of each token, if the objective makes them; if this is empty, all tokens have that of the response."""
    stretches: tuple[TokenStretch, ...] = Field((), validation_alias=AliasChoices("stretches", "spans"))
    """The weights that sampled each token. Records from before trajectories had spans of their own call it `spans`."""
    turns: tuple[RolloutTurn, ...] = ()
    """All text after the prompt, in order, if an environment wrote some of it; `response` is then the policy's last turn."""
    turns_apart: Count = 0
    """The number of turns that came before the record as `TurnsData`, because it was too large for one post; `turns` is then empty."""


class RolloutsData(Record):
    kind: Literal["rollouts"] = "rollouts"
    rollouts: tuple[RolloutRecord, ...]


class TurnsData(Record):
    """Turns of one episode, in order, some at a time; its record follows them. If turn 0 comes again, it replaces the whole episode."""

    kind: Literal["turns"] = "turns"
    phase: Literal["train", "eval"] = "train"
    group: Count
    index: Count
    turns: tuple[TurnPart, ...] = Field(min_length=1)


class LogData(Record):
    kind: Literal["log"] = "log"
    level: Literal["debug", "info", "warning", "error"] = "info"
    message: str


class ProgressData(Record):
    """`phase` is what the run does right now; `eta_s` is None until it can be estimated."""

    kind: Literal["progress"] = "progress"
    phase: str = Field(max_length=40)
    done: Count
    total: Count
    eta_s: float | None = None


class DevicesData(Record):
    """The devices in words: `learner` computes the gradients, `sampler` the responses. It is empty if nothing is sampled, or not known."""

    kind: Literal["devices"] = "devices"
    learner: str = Field(max_length=200)
    sampler: str = Field("", max_length=200)


class StateData(Record):
    """A change of state as the trainer sees it; `reason` explains `paused` (its step waits for something), stopped and failed.

    `lost`: the run failed because it lost one of its processes, so it may continue from its last checkpoint without a change.
    """

    kind: Literal["state"] = "state"
    state: Literal["running", "paused", "stopped", "finished", "failed"]
    reason: str = ""
    lost: bool = False
    summary: dict[str, float] = Field(default_factory=dict)


class ArtifactData(Record):
    """A set of files that the run has written, such as a checkpoint; `path` is relative to the run's folder.

    An artifact with the role `model` is a folder that becomes a row of the registry; `model` describes it. `files` lists the files in the
    artifact store; all of them are there before the event is sent. It is empty if the run's folder is on a disk that the server sees.
    """

    kind: Literal["artifact"] = "artifact"
    role: Literal["checkpoint", "model", "offending_batch"]
    path: FileName
    bytes: int = Field(ge=0, lt=2**63)
    digest: str = Field(max_length=64)
    model: ModelFacts | None = None
    files: StoredFiles = ()

    @model_validator(mode="after")
    def _models_say_what_they_are(self) -> Self:
        if (self.role == "model") != (self.model is not None):
            raise ValueError("`model` goes with the role model, and only with it")
        return self


class AlarmPlace(Record):
    """A response of the step, by its place."""

    group: Count
    index: Count


class AlarmData(Record):
    """More responses than usual show `signal`, a key of `trainer.config.alarms.SIGNALS`: the policy may be gaming its reward.

    `subject`: the part of the reward or the phrase, if the signal has several. `since`: the first step whose share was higher than usual.
    `share`: of this step's responses; `before`: of the first steps' responses. `paid`: how clearly the reward pays for the signal, a z
    value; None if it was not computed. `part` (of the reward) and `criterion`: where these responses earn more, if that is clear.
    `places`: training responses of this step that show the signal. `role`: the role that wrote them, in a run that trains several roles.
    For the signal `held_out`, `share` and `before` are the distance by which training lies above the panel. For `flat`, which is about
    steps that teach nothing, they are shares of the responses that solved their prompt, and `subject` says why. `entropy`, `dead` and
    `mismatch` are about steps that teach badly: `value` is what was measured at the step, and `usual` what it is compared with, that of the
    first steps or, for `mismatch`, the largest share that rounding explains; `share` is `value` as a part of `usual`, or a share itself.
    """

    kind: Literal["alarm"] = "alarm"
    signal: str = Field(min_length=1, max_length=40)
    subject: str = Field("", max_length=200)
    since: Count
    share: float = Field(ge=0, le=1)
    before: float = Field(ge=0, le=1)
    paid: float | None = None
    part: str = Field("", max_length=40)
    criterion: str = Field("", max_length=1000)
    places: tuple[AlarmPlace, ...] = Field(max_length=20)
    role: str = Field("", max_length=40)
    value: float | None = Field(None, ge=0)
    usual: float | None = Field(None, ge=0)


class StepSpan(NamedTuple):
    """A part of a step. `work` and `name` are places in the list of names, `inside` is the place of the span around it; -1: the step
    itself. `start` and `took` are microseconds, from the begin of the step. `pieces`: of how many neighbours it was made.
    """

    work: int
    name: int
    inside: int
    start: int
    took: int
    pieces: int = 1


class SpansData(Record):
    """The time of a step: `spans` by kinds of work that follow one another, with their phases and reports of progress inside;
    `beside`, what ran at the same time, such as calls of judges and workers. A span lies in the one around it.
    """

    kind: Literal["spans"] = "spans"
    took: int = Field(ge=0, lt=2**53)
    names: tuple[Annotated[str, StringConstraints(max_length=200)], ...] = Field(max_length=400)
    spans: tuple[StepSpan, ...] = Field(max_length=400)
    beside: tuple[StepSpan, ...] = Field((), max_length=400)

    @model_validator(mode="after")
    def _spans_lie_in_one_another(self) -> Self:
        for spans in (self.spans, self.beside):
            for place, span in enumerate(spans):
                if not -1 <= span.inside < place or not all(0 <= each < len(self.names) for each in span[:2]):
                    raise ValueError(f"span {place} names something that is not there")
                start, took = (0, self.took) if span.inside < 0 else spans[span.inside][3:5]
                if span.took < 0 or span.pieces < 1 or span.start < start or span.start + span.took > start + took:
                    raise ValueError(f"span {place} does not lie in the one around it")
        return self


EventData = Annotated[
    MetricsData
    | RolloutsData
    | TurnsData
    | LogData
    | ProgressData
    | DevicesData
    | StateData
    | ArtifactData
    | AlarmData
    | SpansData,
    Field(discriminator="kind"),
]


class RunEvent(Record):
    seq: int = Field(ge=1, lt=2**63)
    time: AwareDatetime
    step: Count = 0
    data: EventData


class EventBatch(Record):
    """POST body of the ingest endpoint. An empty batch is a heartbeat.

    `begins`: the number of the first event that this attempt wrote. Earlier attempts wrote the events before it, and could not send
    them. Times cannot tell them apart, because clocks jump. 0: not known, as from older programs.
    """

    attempt: int = Field(ge=1)
    begins: int = Field(default=0, ge=0)
    events: tuple[RunEvent, ...] = Field(default=(), max_length=MAX_EVENTS_PER_POST)


class IngestReply(Record):
    """`acked`: all events up to this number are stored. `command`: what the run shall do."""

    acked: int
    command: Literal["continue", "stop", "abandon"] = "continue"


class JudgeGrant(Record):
    """The way in which a run asks a judge that its config names: through the server, or with the model in the directory `local` and the
    `adapters` that are laid on it in their order.

    It holds no secret: keys of endpoints never leave the server. `prices` are the prices of a local model's tokens, per million.
    """

    spec: dict[str, object]
    key: str
    local: str = ""
    adapters: tuple[str, ...] = ()
    prices: tuple[str, str] | None = None


class RunAssignment(Record):
    """The assignment that a job gets from the server when it starts, by GET of the ingest endpoint with the run token.

    `forked`: the run resumes from a checkpoint of another run, whose config may differ. `models` says for each role (`base`, `teacher`)
    which model is loaded. Judges are asked at `judges_url`; a judge that answers in the run sends its verdicts to `verdicts_url`.
    Responses for the reward services that the config names are sent to `services_url`.

    With a `store_url`, process and server share no disk. The process fetches models and `checkpoints` (newest first, by the names of
    their artifacts) from there and sends its files there; `run_dir` is empty, because the process has a folder of its own.
    """

    run_id: int
    name: str
    recipe: str
    config: dict[str, object]
    attempt: int
    resume: bool
    forked: bool = False
    last_seq: int
    models: dict[str, ModelSource]
    judges: dict[str, JudgeGrant] = Field(default_factory=dict)
    run_dir: str
    store_url: str = ""
    checkpoints: tuple[str, ...] = ()
    examples_url: str
    examples_digest: str
    judges_url: str = ""
    verdicts_url: str = ""
    services: tuple[str, ...] = ()
    services_url: str = ""
