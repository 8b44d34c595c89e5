"""The bodies of the evaluations API, as OpenAPI shows them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

from webapp.datasets.api.references import DatasetRef
from webapp.datasets.api.versions import LeakOut, NearOut

Id = Annotated[int, Field(ge=1, lt=2**63)]


class EvaluationDatasetOut(Schema):
    id: int
    name: str
    version_id: int
    version: int


class RecordingRef(Schema):
    id: int
    name: str


class EvaluationOut(Schema):
    id: int
    name: str
    recipe: str
    state: str
    problem: str = Field(description="Why the evaluation failed or was paused; if it is queued, what it waits for")
    priority: Literal["low", "normal", "high"] = Field(
        description="Priority of its jobs among those of the workspace that wait in the line"
    )
    progress: dict[str, Any]
    dataset: EvaluationDatasetOut | None
    recording: RecordingRef | None
    benchmark: str
    rerun_of: int | None
    headline: dict[str, Any] | None = Field(description='{"label", "cell"}: the one number; null until it is finished')
    created_at: str
    started_at: str | None
    ended_at: str | None


class EvaluationFull(EvaluationOut):
    config: dict[str, Any]
    results: dict[str, Any] | None


class EvaluationLeaks(Schema):
    """`leaks`: evaluated prompts on which the models were trained, held out or not; `near`: those that are nearly the same."""

    leaks: list[LeakOut]
    near: list[NearOut]


class EvaluationList(Schema):
    items: list[EvaluationOut]
    next: str | None


class EvaluationIn(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"recipe": "judge_audit", "config": {}, "recording": 1, "name": "JudgeBench"}},
    )

    recipe: str
    config: dict[str, Any] = Field(default_factory=dict, description="Values that differ from the recipe's defaults")
    dataset: DatasetRef | None = None
    recording: Id | None = Field(None, description="Recorded verdicts, by id")
    name: str = ""


class EvaluationPriorityIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"priority": "high"}})

    priority: Literal["low", "normal", "high"]


class CaseOut(Schema):
    number: int
    subject: dict[str, Any]
    values: dict[str, Any]
    tags: list[str]


class CaseList(Schema):
    items: list[CaseOut]
    next: str | None


class RecordingOut(Schema):
    id: int
    name: str
    kind: Literal["verdicts", "scores"]
    digest: str
    rows: int
    judges: int
    created_at: str


class RecordingList(Schema):
    items: list[RecordingOut]
    next: str | None


class EvaluationRecipeOut(Schema):
    name: str
    title: str
    question: str
    summary: str
    dataset: str = Field(description="no, may or must: whether it needs one")
    recording: str


class EvaluationRecipeList(Schema):
    items: list[EvaluationRecipeOut]
    next: str | None


class TasksIn(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"tags": ["judge:Strict v2", "inconsistent"], "name": "Hard pairs", "overlap": 3}
        },
    )

    tags: list[str] = Field(default_factory=list, max_length=12)
    name: str
    kind: str = Field("pairwise", description="A kind of annotation task")
    overlap: Annotated[int, Field(ge=1, le=50)] = 2


class TasksOut(Schema):
    project: int
    dataset: int


class GradeNextIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"overlap": 1}})

    name: str = Field("", description="Name of the dataset and the project; empty: the name of the evaluation")
    overlap: Annotated[int, Field(ge=1, le=50, description="Number of people who grade each response")] = 1


class GradeNextOut(Schema):
    """`responses` to `prompts` are to be graded for an interval of plus or minus `half_width` or, with `first`, for a first interval; `why`
    says why there is nothing to make tasks of. `project` and `dataset` are null until the tasks are made, `published`, a
    version's number, until the answers are; `corrected` is the newest evaluation that reads them."""

    half_width: float
    prompts: int
    responses: int
    first: bool
    why: str
    project: int | None
    dataset: int | None
    tasks: int
    complete: int
    published: int | None
    corrected: int | None


class StudyIn(Schema):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "Which rubric helps", "people": 2}}
    )

    name: str
    people: int = Field(1, description="Number of people who judge each pair in each arm")
    tags: list[str] = Field(default_factory=list, max_length=12, description="Only cases that carry all of these")


class StudyOut(Schema):
    project: int
    name: str
    state: str
    tasks: int
    answers: int
    dataset: int
    version: int


class StudyList(Schema):
    items: list[StudyOut]
    next: str | None


class LicenceMeasure(Schema):
    """`low` and `high` are null if there is no interval; `why` then says why, as it does if there is no value."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    n: int | None
    missing: int | None
    why: str


class LicenceKnown(Schema):
    """The findings of one evaluation. `human_range`: below, within or above the agreement of people; if it is empty, `human_range_why` says
    why it is unknown. `waiting`: a worker computes from stored cases what an older evaluation lacks; ask again in a minute."""

    evaluation: int
    name: str
    data: str
    dataset: EvaluationDatasetOut | None
    ended_at: datetime | None
    human_range: str
    human_range_why: str
    waiting: bool
    measures: list[LicenceMeasure]


class LicenceOut(Schema):
    """`known`: newest first, empty if nothing is known; `measured_by`: the evaluation recipe that would measure it, or empty."""

    version: str
    kind: str
    measured_by: str
    warnings: list[str]
    known: list[LicenceKnown]


class BoardRow(Schema):
    """`place`: from 1; equal scores share one (`shared`). null without a number, and if the number does not compare:
    `unlike` says why."""

    name: str
    cell: dict[str, Any]
    evaluation: int
    judge: int | None
    judge_version: int | None
    place: int | None
    shared: bool
    unlike: str


class BoardOut(Schema):
    """`protocol`: how all of them were asked; `both`, `given` or `swapped` for judges of pairs."""

    benchmark: str
    protocol: str
    recipe: str
    measure: str
    settings: dict[str, Any]
    dataset: EvaluationDatasetOut | None
    evaluations: int
    rows: list[BoardRow]


class BoardList(Schema):
    items: list[BoardOut]
    next: str | None
