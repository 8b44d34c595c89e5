"""Bodies of the protocol's requests about models, with MLflow's names."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from . import schemas as b

Name = Annotated[str, Field(min_length=1, max_length=1_000)]
Number = Annotated[str, BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)]
Stage = Literal["None", "Staging", "Production", "Archived"]


def _stage(value: Any) -> Any:
    """The stage as the protocol writes it: its client sends `production` as well."""
    return value.capitalize() if isinstance(value, str) else value


class SaveModel(b.Body):
    experiment_id: b.Id = "0"
    name: Annotated[str, Field(max_length=250)] = ""
    model_type: Annotated[str, Field(max_length=250)] = ""
    source_run_id: str = ""
    params: Annotated[list[b.Param], Field(max_length=b.MOST_AT_ONCE)] = []
    tags: Annotated[list[b.Tag], Field(max_length=b.MOST_AT_ONCE)] = []


class FinalizeModel(b.Body):
    status: Literal["LOGGED_MODEL_PENDING", "LOGGED_MODEL_READY", "LOGGED_MODEL_UPLOAD_FAILED"]


class ModelParams(b.Body):
    params: Annotated[list[b.Param], Field(max_length=b.MOST_AT_ONCE)] = []


class ModelTags(b.Body):
    tags: Annotated[list[b.Tag], Field(max_length=b.MOST_AT_ONCE)] = []


class ModelOrder(b.Body):
    field_name: str
    ascending: bool = True
    dataset_name: str = ""
    dataset_digest: str = ""


class ModelDataset(b.Body):
    dataset_name: str
    dataset_digest: str = ""


class SearchSaved(b.Body):
    experiment_ids: Annotated[list[b.Id], Field(max_length=1_000)] = []
    filter: Annotated[str, Field(max_length=5_000)] = ""
    max_results: Annotated[int, Field(ge=1, le=50_000)] = 100
    order_by: Annotated[list[ModelOrder], Field(max_length=20)] = []
    datasets: Annotated[list[ModelDataset], Field(max_length=20)] = []
    page_token: str = ""


class OutputOfRun(b.Body):
    model_id: b.Id
    step: Annotated[int, Field(ge=0, lt=2**63)] = 0


class LogOutputs(b.OfRun):
    models: Annotated[list[OutputOfRun], Field(max_length=b.MOST_AT_ONCE)] = []


class LoggedDataset(b.Body):
    name: Annotated[str, Field(max_length=500)] = ""
    digest: Annotated[str, Field(max_length=500)] = ""
    source_type: Annotated[str, Field(max_length=500)] = ""


class DatasetInput(b.Body):
    dataset: LoggedDataset


class LogInputs(b.OfRun):
    datasets: Annotated[list[DatasetInput], Field(max_length=b.MOST_AT_ONCE)] = []


class RecordModel(b.OfRun):
    model_json: Annotated[str, Field(max_length=1_000_000)] = ""


class OfFamily(b.Body):
    name: Name


class MakeFamily(OfFamily):
    description: str = ""
    tags: Annotated[list[b.Tag], Field(max_length=b.MOST_AT_ONCE)] = []


class RenameFamily(OfFamily):
    new_name: Name


class DescribeFamily(OfFamily):
    description: str | None = None


class TagFamily(OfFamily, b.Tag):
    pass


class UntagFamily(OfFamily):
    key: b.Key


class OfAlias(OfFamily):
    alias: str


class PointAlias(OfAlias):
    version: Number


class LatestVersions(OfFamily):
    stages: list[Annotated[Stage, BeforeValidator(_stage)]] = []


class OfVersion(OfFamily):
    version: Number


class MakeVersion(OfFamily):
    source: Annotated[str, Field(min_length=1, max_length=1_000)]
    run_id: str = ""
    description: str = ""
    tags: Annotated[list[b.Tag], Field(max_length=b.MOST_AT_ONCE)] = []


class DescribeVersion(OfVersion):
    description: str | None = None


class MoveVersion(OfVersion):
    stage: Annotated[Stage, BeforeValidator(_stage)]
    archive_existing_versions: bool = False


class TagVersion(OfVersion, b.Tag):
    pass


class UntagVersion(OfVersion):
    key: b.Key
