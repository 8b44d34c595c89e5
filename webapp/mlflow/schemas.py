"""Bodies of the protocol's requests, with MLflow's names. Other fields are ignored, as MLflow's servers ignore them."""

import math
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

MOST_AT_ONCE = 1_000  # metrics, params and tags of one request
LAST_MS = 253_402_300_799_999  # the year 9999


def _number(value: Any) -> Any:
    """The number, also from the words that protobuf writes for NaN and infinity."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return (
        {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value, value)
        if isinstance(value, str)
        else value
    )


def moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def milliseconds(time: datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)


Id = Annotated[str, Field(min_length=1, max_length=64)]
Key = Annotated[str, Field(min_length=1, max_length=250)]
Millis = Annotated[int, Field(ge=0, le=LAST_MS)]
Step = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Number = Annotated[float, BeforeValidator(_number)]
Status = Literal["RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED"]
ViewType = Literal["ACTIVE_ONLY", "DELETED_ONLY", "ALL"]


class Body(BaseModel):
    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Tag(Body):
    key: Key
    value: str = ""


class Param(Body):
    key: Key
    value: str = ""


class MetricBody(Body):
    key: Key
    value: Number
    timestamp: Millis
    step: Step = 0
    model_id: Annotated[str, Field(max_length=64)] = ""
    dataset_name: Annotated[str, Field(max_length=250)] = ""
    dataset_digest: Annotated[str, Field(max_length=100)] = ""


class OfRun(Body):
    """Names a run. Programs older than 2018 call it `run_uuid`; those of today send both names."""

    run_id: Id = Field(validation_alias=AliasChoices("run_id", "run_uuid"))


class CreateExperiment(Body):
    name: Annotated[str, Field(min_length=1, max_length=500)]
    tags: Annotated[list[Tag], Field(max_length=MOST_AT_ONCE)] = []
    artifact_location: str = ""


class OfExperiment(Body):
    experiment_id: Id


class ExperimentNamed(Body):
    experiment_name: str


class SetExperimentTag(OfExperiment, Tag):
    pass


class Search(Body):
    filter: Annotated[str, Field(max_length=5_000)] = ""
    max_results: Annotated[int, Field(ge=1, le=50_000)] = 1_000
    order_by: Annotated[list[str], Field(max_length=20)] = []
    page_token: str = ""


class SearchExperiments(Search):
    view_type: ViewType = "ACTIVE_ONLY"


class SearchRuns(Search):
    experiment_ids: Annotated[list[Id], Field(max_length=1_000)] = []
    run_view_type: ViewType = "ACTIVE_ONLY"


class CreateRun(Body):
    experiment_id: Id = "0"
    run_name: str = ""
    user_id: str = ""
    start_time: Millis | None = None
    tags: Annotated[list[Tag], Field(max_length=MOST_AT_ONCE)] = []


class UpdateRun(OfRun):
    status: Status | None = None
    end_time: Millis | None = None
    run_name: str | None = None


class LogMetric(OfRun, MetricBody):
    pass


class LogParam(OfRun, Param):
    pass


class SetTag(OfRun, Tag):
    pass


class DeleteTag(OfRun):
    key: Key


class LogBatch(Body):
    run_id: Id
    metrics: Annotated[list[MetricBody], Field(max_length=MOST_AT_ONCE)] = []
    params: Annotated[list[Param], Field(max_length=100)] = []
    tags: Annotated[list[Tag], Field(max_length=100)] = []


class GetHistory(OfRun):
    metric_key: Key
    max_results: Annotated[int, Field(ge=1, le=25_000)] = 25_000
    page_token: str = ""


class ListArtifacts(OfRun):
    path: str = ""
