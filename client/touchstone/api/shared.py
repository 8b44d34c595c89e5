"""Types of several groups. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class AssignmentOut(TypedDict):
    """A task as its annotator sees it; answers and drafts name responses by the letters of `view.responses`. The
    number of the task in the project is left out: gold tasks are served out of order, so it would reveal
    them.
    """

    id: int
    project: int
    state: str
    lease_until: str
    draft: dict[str, Any] | None
    draft_revision: int
    draft_at: str | None
    seconds: float
    sent_back: str
    guidelines: int | None
    submitted_at: str | None
    gold: bool
    view: TaskView


class CommentOut(TypedDict):
    """`by`: people who answer in the project under a pseudonym, others by their names."""

    id: int
    task_id: int
    kind: str
    text: str
    by: str
    created_at: str
    resolved_at: str | None


class Criterion(TypedDict):
    """One atomic statement about a response that is either met or not met."""

    id: str
    text: str
    points: float
    kind: NotRequired[Literal["hard", "principle"]]
    importance: NotRequired[Literal["essential", "important", "optional", "pitfall"]]
    tags: NotRequired[list[str]]
    verifier: NotRequired[VerifierSpec | None]


class DatasetIn(TypedDict):
    """A dataset by id or by name; without `version` its newest one."""

    id: NotRequired[int | None]
    name: NotRequired[str | None]
    version: NotRequired[int | None]


class EarlyStopIn(TypedDict):
    """The run stops once the last `patience` values of the metric are not better, by more than `min_delta`, than
    the best before them.
    """

    metric: str
    patience: int
    better: NotRequired[Literal["higher", "lower"] | None]
    min_delta: NotRequired[float]


class EvaluationDatasetOut(TypedDict):
    id: int
    name: str
    version_id: int
    version: int


class LeakOut(TypedDict):
    """`prompts` and `groups` that are in train in the one version and held out in the other."""

    train: SideOut
    heldout: SideOut
    prompts: int
    groups: int
    train_examples: int
    heldout_examples: int
    shown: list[dict[str, Any]]


class LicenceKnown(TypedDict):
    """The findings of one evaluation. `human_range`: below, within or above the agreement of people; if it is
    empty, `human_range_why` says why it is unknown. `waiting`: a worker computes from stored cases what an
    older evaluation lacks; ask again in a minute.
    """

    evaluation: int
    name: str
    data: str
    dataset: EvaluationDatasetOut | None
    ended_at: str | None
    human_range: str
    human_range_why: str
    waiting: bool
    measures: list[LicenceMeasure]


class LicenceMeasure(TypedDict):
    """`low` and `high` are null if there is no interval; `why` then says why, as it does if there is no value."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    n: int | None
    missing: int | None
    why: str


class LicenceOut(TypedDict):
    """`known`: newest first, empty if nothing is known; `measured_by`: the evaluation recipe that would measure
    it, or empty.
    """

    version: str
    kind: str
    measured_by: str
    warnings: list[str]
    known: list[LicenceKnown]


class LimitsIn(TypedDict):
    """Limits from the start, the same as those of `/runs/{id}/limit`, `/tokens`, `/budget` and `/early`; what is
    left out is no limit.
    """

    seconds: NotRequired[int | None]
    tokens: NotRequired[int | None]
    budget_tokens: NotRequired[int | None]
    budget_money: NotRequired[float | None]
    stop_early: NotRequired[EarlyStopIn | None]


class Named(TypedDict):
    id: int
    name: str


class NearExampleOut(TypedDict):
    example: int
    key: str
    excerpt: str
    trained: NearTextOut
    similarity: float


class NearOut(TypedDict):
    """Prompts of `heldout` that are at least `threshold` similar to a prompt in train of `train`, and not the
    same. `known` is false while a worker searches: then the counts are null; ask again later.
    """

    train: SideOut
    heldout: SideOut
    known: bool
    prompts: int | None
    examples: int | None
    threshold: float | None
    shown: list[NearExampleOut]


class NearTextOut(TypedDict):
    example: int
    key: str
    excerpt: str


class QueueOut(TypedDict):
    items: list[AssignmentOut]
    left: int | None
    done: int
    state: str
    reason: str
    guidelines: int | None


class RenameIn(TypedDict):
    name: str


class RepeatOut(TypedDict):
    id: int
    run: int
    rhythm: str
    every_hours: int | None
    at: str | None
    weekday: int | None
    zone: str
    ends_at: str | None
    newest_data: bool
    state: str
    next_at: str | None
    times: list[RepeatTimeOut]
    created_at: str


class RepeatTimeOut(TypedDict):
    due: str
    outcome: str
    reason: str
    missed: int
    run: int | None


class RunDatasetOut(TypedDict):
    id: int
    name: str
    version_id: int
    version: int


class RunProgressOut(TypedDict):
    step: int
    steps_total: int
    fraction: float
    phase: str
    phase_done: int
    phase_total: int
    eta_s: float | None
    learner_device: str
    sampler_device: str


class RunResultOut(TypedDict):
    metric: str
    title: str
    better: str
    share: bool
    first: float | None
    last: float | None
    low: float | None
    high: float | None
    n: int | None


class Shown(TypedDict):
    """A response as an annotator sees it: a letter and a text, nothing else."""

    letter: str
    text: str


class SideOut(TypedDict):
    version: int
    dataset: int
    name: str
    number: int


class TaskView(TypedDict):
    """All that a browser gets of a task. For rubric authoring `responses` is empty until the rubric is
    submitted.
    """

    kind: str
    prompt: list[dict[str, str]]
    responses: list[Shown]
    criteria: list[Criterion]
    rationale: str | None
    reference: str | None
    material: dict[str, Any]
    suggestion: dict[str, Any] | None


class VerifierSpec(TypedDict):
    """A deterministic check by registry name; `trainer.verifiers` validates `args`."""

    name: str
    args: NotRequired[dict[str, Any]]


class WeightsJobOut(TypedDict):
    id: int
    kind: str
    title: str
    params: dict[str, Any]
    state: str
    problem: str
    priority: str
    phase: str
    done: int
    total: int
    attempt: int
    outcome: dict[str, Any]
    used: dict[str, Any]
    model_id: int | None
    version_id: int | None
    created_at: str
    started_at: str | None
    ended_at: str | None
