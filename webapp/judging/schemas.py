"""What the API takes and gives."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from ninja import Schema
from pydantic import Field

from webapp.annotation.schemas import JobOut

from . import queries
from .models import JudgeVersion

RowId = Annotated[int, Field(ge=1, lt=2**63)]
Text = Annotated[str, Field(max_length=5_000)]


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
        return queries.states(row)


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


class VersionIn(Schema):
    spec: dict[str, Any] = Field(description="What is left out has its default; `kind` says which")
    endpoint: RowId
    note: str = Field("", max_length=300)


class JudgeIn(VersionIn):
    name: str = Field(max_length=120)


class JudgeChange(Schema):
    """What is left out stays as it is. `fixed_examples`: ids of examples of one dataset, on which versions are compared."""

    name: str | None = Field(None, max_length=120)
    archived: bool | None = None
    fixed_examples: list[RowId] | None = Field(None, max_length=200)


class VerdictRow(Schema):
    id: int
    key: str
    state: str
    subject: dict[str, Any]
    parsed: dict[str, Any] | None
    problem: str
    source: str
    created_at: datetime


class VerdictOut(VerdictRow):
    """`request` is what was sent, `raw` what came back. Tokens add up over `attempts`; cost is None without prices."""

    version_id: int
    request: dict[str, Any] | None
    raw: str
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    cost: Decimal | None
    latency_ms: int | None
    attempts: int


class VerdictList(Schema):
    items: list[VerdictRow]
    next: str | None


class ExtraIn(Schema):
    """Inputs that examples do not have: a rubric to match or improve, a judge's reasons, a rationale, a verdict."""

    generated: list[Text] = Field(default=[], max_length=100)
    model_reasons: list[Text] = Field(default=[], max_length=100)
    rationale: str = Field(default="", max_length=20_000)
    verdict: Text = ""


class TrialIn(Schema):
    spec: dict[str, Any]
    endpoint: RowId
    examples: list[RowId] = Field(max_length=200)
    judge: RowId | None = None
    extra: ExtraIn = ExtraIn()


class ComparisonIn(Schema):
    """Numbers of two versions. They judge the judge's fixed examples; what is stored is not called again."""

    before: Annotated[int, Field(ge=1, lt=2**31)]
    after: Annotated[int, Field(ge=1, lt=2**31)]
    extra: ExtraIn = ExtraIn()


class TrialOut(Schema):
    """`state` goes from queued over running to finished or failed; `results` fill up meanwhile.

    A draft's: `calls`, each with messages, raw, parsed and problem. A comparison's: `rows` with both decisions, and how
    many of those `compared` are `changed`; `missing` have no verdict on a side.
    """

    id: int
    judge_id: int | None
    before_id: int | None
    after_id: int | None
    examples: list[int]
    state: str
    problem: str
    done: int
    total: int | None
    results: dict[str, Any]
    created_at: datetime
    finished_at: datetime | None


class SuggestIn(Schema):
    """A judge's version, by the judge's id and the version's number."""

    judge: RowId
    number: Annotated[int, Field(ge=1, lt=2**31)]
    tokens: int | None = Field(None, ge=1, le=1_000_000_000, description="The most it may use")


class RemovedOut(Schema):
    removed: int


class SuggestionsOut(Schema):
    """`by`: {whose: tasks}. `agreement`: {"saw it before" | "saw it after" | "never saw it": an estimate with n and
    interval}. `job`: the last time a judge was asked."""

    tasks: int
    suggested: int
    by: dict[str, int]
    agreement: dict[str, dict[str, Any]]
    job: JobOut | None
