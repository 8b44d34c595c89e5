"""Lists and comparisons of runs, as OpenAPI shows them."""

from datetime import datetime
from typing import Any, Literal

from ninja import Schema
from pydantic import Field

from ..metrics.schemas import CurveOut
from ..schemas import ExperimentOut, RunOut


class RunList(Schema):
    items: list[RunOut]
    next: str | None


class LogLineOut(Schema):
    seq: int
    time: datetime
    step: int
    level: str
    message: str


class LogOut(Schema):
    lines: list[LogLineOut]


class DifferenceOut(Schema):
    path: str
    values: list[Any]


class CompareOut(Schema):
    runs: list[RunOut]
    config: list[DifferenceOut]
    curves: dict[str, dict[str, CurveOut]]
    keys: list[str]
    unlike: dict[str, str] = Field(
        description="Run id -> why its result does not compare with that of most: another measure, other data or settings"
    )


class ExperimentList(Schema):
    items: list[ExperimentOut]
    next: str | None


class EventOut(Schema):
    at: datetime
    action: str
    what: str
    state: str = Field(description="The new state of the run; empty if the state stayed the same")
    attempt: int | None
    who: str = Field(description="Empty if the server did it, or if the account was erased")
    erased: bool
    why: str
    lasted_s: float | None = Field(description="The time in that state, up to now; null once the run is over")


class HistoryOut(Schema):
    items: list[EventOut]
    next: str | None


class LineRunOut(Schema):
    """A run, or a job that needs weights, such as one of an evaluation or a judge. For another workspace only its kind is given."""

    kind: Literal["run", "job"]
    id: int | None = Field(description="The id of the run; null for a job, and for a run of another workspace")
    job: int | None = Field(description="The id of the job; null for a run, and for a job of another workspace")
    evaluations: list[int] = Field(description="Evaluations that wait for the job")
    name: str | None
    experiment: str | None
    state: str
    priority: str | None
    gpus: float = Field(description="GPUs that it has or asks for; 0 if the cluster has none")
    cpus: float = Field(description="Processors that it reserves")
    memory_gb: float = Field(description="Memory that it reserves or is expected to need, in GB; 0: not known")
    memory_expected: bool = Field(
        description="Whether the memory is what it is expected to need, and nothing is reserved"
    )
    since: datetime
    seconds: float | None = Field(
        description="Seconds until it is over or, if it waits, until its turn; null: not known"
    )
    why: str = Field(description="The reason why a run waits; empty for a run of another workspace")


class LineOut(Schema):
    places: int | None = Field(description="Runs and jobs that may be under way at once; null: as many as there are")
    gpus: int
    gpus_free: int
    cpus: float = Field(description="CPUs of the cluster; 0: not known")
    cpus_free: float = Field(description="CPUs that no run or job reserves")
    memory_gb: float = Field(description="Memory that Ray may reserve on all machines, in GB; 0: not known")
    memory_gb_free: float = Field(description="Memory that no run or job reserves or is expected to need, in GB")
    running: list[LineRunOut]
    waiting: list[LineRunOut]
    more: int = Field(description="Number of runs and jobs that wait behind those of `waiting`")
