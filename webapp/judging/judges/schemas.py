"""Input and output of the API for judges and their versions."""

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from webapp.core.requests.openapi import StrictIn

from ..models import JudgeVersion
from ..parameters import RowId
from ..verdicts import queries as verdicts


class JudgeKindOut(Schema):
    """`spec` is the complete spec with its defaults, `spec_schema` draws its form, `variables` are those of its templates."""

    name: str
    title: str
    help: str
    variables: dict[str, str]
    required: list[str]
    spec: dict[str, Any]
    spec_schema: dict[str, Any]
    answer_schema: dict[str, Any]


class JudgeKindList(Schema):
    items: list[JudgeKindOut]
    next: None = None


class JudgeVersionOut(Schema):
    id: int
    judge_id: int
    number: int
    spec: dict[str, Any]
    endpoint_id: int
    endpoint: str
    digest: str
    note: str
    created_at: datetime
    first_used_at: datetime | None

    @staticmethod
    def resolve_endpoint(row: Any) -> str:
        return str(row.endpoint)


class VersionDetail(JudgeVersionOut):
    """`counts`: how many verdicts are stored, by state."""

    counts: dict[str, int]

    @staticmethod
    def resolve_counts(row: JudgeVersion) -> dict[str, int]:
        return verdicts.states(row)


class JudgeVersionList(Schema):
    items: list[JudgeVersionOut]
    next: str | None


class JudgeOut(Schema):
    id: int
    name: str
    kind: str
    fixed_examples: list[int]
    created_at: datetime
    archived_at: datetime | None


class JudgeRow(JudgeOut):
    latest: JudgeVersionOut | None
    version_count: int

    @staticmethod
    def resolve_latest(row: Any) -> Any:
        return row.latest[0] if row.latest else None


class JudgeList(Schema):
    items: list[JudgeRow]
    next: str | None


class VersionIn(StrictIn):
    spec: dict[str, Any] = Field(description="Fields that are left out take the defaults of the `kind`")
    endpoint: RowId
    note: str = Field("", max_length=300)


class JudgeIn(VersionIn):
    name: str = Field(max_length=120)


class JudgeChange(StrictIn):
    """Absent fields stay as they are. `fixed_examples`: ids of examples of one dataset, on which versions are compared."""

    name: str | None = Field(None, max_length=120)
    archived: bool | None = None
    fixed_examples: list[RowId] | None = Field(None, max_length=200)
