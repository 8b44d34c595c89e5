"""Endpoints over the API. A key is taken and never given back."""

from datetime import datetime
from decimal import Decimal
from typing import IO, Annotated, Any, Literal, cast

from django.db import transaction
from django.http import HttpRequest
from ninja import File, Path, Router, Schema, Status
from ninja.files import UploadedFile
from pydantic import Field

from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page

from ..access import may_read, may_write
from ..models import Endpoint, EndpointCheck, EndpointTrouble
from ..parameters import EndpointId, Id
from . import access, checks, queries, recorded_outputs, services

router = Router(tags=["endpoints"])
CheckId = Path[Id]
Price = Annotated[Decimal, Field(ge=0, le=100_000, max_digits=12, decimal_places=6)]


class TroubleOut(Schema):
    code: str
    count: int
    message: str
    last_at: datetime


class EndpointOut(Schema):
    """`secret` is never shown; `has_secret` tells whether there is one. Prices are per million tokens."""

    id: int
    name: str
    kind: str
    url: str
    model: str
    registered_model_id: int | None
    has_secret: bool
    concurrency: int
    requests_per_minute: int | None
    timeout_s: float
    retries: int
    price_prompt: Decimal | None
    price_completion: Decimal | None
    capabilities: dict[str, Any]
    created_at: datetime
    first_used_at: datetime | None
    archived_at: datetime | None

    @staticmethod
    def resolve_has_secret(row: Endpoint) -> bool:
        return bool(row.secret)


class EndpointDetail(EndpointOut):
    troubles: list[TroubleOut]
    recorded: int

    @staticmethod
    def resolve_troubles(row: Endpoint) -> list[EndpointTrouble]:
        return list(row.troubles.order_by("-last_at"))

    @staticmethod
    def resolve_recorded(row: Endpoint) -> int:
        return row.recorded_outputs.count()


class EndpointList(Schema):
    items: list[EndpointOut]
    next: str | None


class _Settings(Schema):
    model_config = {"extra": "forbid"}


class EndpointIn(_Settings):
    kind: Literal["chat", "local", "recorded", "reward"] = "chat"
    name: str = Field(max_length=200)
    url: str | None = Field(
        None,
        max_length=2500,
        description="Base address, such as https://api.example.org/v1; for a reward service, the whole address",
    )
    model: str | None = Field(None, max_length=500, description="The endpoint's name of the model")
    registered_model: Id | None = Field(None, description="For kind local: the id of a model of this workspace")
    secret: str | None = Field(
        None,
        max_length=1000,
        description="The key, or the secret that signs requests; it is stored encrypted and never shown again",
    )
    concurrency: int | None = Field(None, ge=1, le=1000, description="Requests in flight at once")
    requests_per_minute: int | None = Field(None, ge=1, le=1_000_000)
    timeout_s: float | None = Field(None, ge=1, le=3600, allow_inf_nan=False)
    retries: int | None = Field(None, ge=0, le=10)
    price_prompt: Price | None = Field(None, description="Money per million prompt tokens")
    price_completion: Price | None = Field(None, description="Money per million tokens of replies")


class EndpointChange(_Settings):
    """Fields that are left out stay as they are. An empty `secret` removes the key."""

    name: str = Field("", max_length=200)
    url: str = Field("", max_length=2500)
    model: str = Field("", max_length=500)
    registered_model: Id | None = None
    secret: str = Field("", max_length=1000)
    concurrency: int = Field(8, ge=1, le=1000)
    requests_per_minute: int | None = Field(None, ge=1, le=1_000_000)
    timeout_s: float = Field(120, ge=1, le=3600, allow_inf_nan=False)
    retries: int = Field(3, ge=0, le=10)
    price_prompt: Price | None = None
    price_completion: Price | None = None
    archived: bool = False


class EndpointCheckOut(Schema):
    """`state` goes from queued over running to finished or failed; then `result`, or `code` and `problem`, say more."""

    id: int
    kind: str
    state: str
    result: dict[str, Any]
    code: str
    problem: str
    created_at: datetime
    finished_at: datetime | None


class UseOut(Schema):
    """The tokens and the cost of the verdicts of one version of a judge; null if no verdict says."""

    judge_id: int
    judge: str
    version: int
    verdicts: int
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    cost: Decimal | None


class UseList(Schema):
    items: list[UseOut]
    next: str | None


class RecordedOut(Schema):
    added: int
    unchanged: int


class OutputOut(Schema):
    key: str
    text: str


class OutputList(Schema):
    items: list[OutputOut]
    next: str | None


@router.get("/endpoints", response=EndpointList, summary="The endpoints of this workspace, newest first")
def list_endpoints(
    request: HttpRequest, archived: bool = False, cursor: str | None = None, limit: Limit = 50
) -> object:
    membership = may_read(require(request))
    return page(queries.endpoints(membership.workspace_id, archived=archived), cursor, limit, "-id")


@router.post("/endpoints", response={201: EndpointDetail}, summary="Create an endpoint")
def create(request: HttpRequest, payload: EndpointIn) -> Status[Endpoint]:
    membership = may_write(require(request))
    fields = payload.model_dump(exclude={"kind"}, exclude_none=True)
    return Status(201, services.create_endpoint(membership, payload.kind, **fields))


@router.get("/endpoints/{int:endpoint_id}", response=EndpointDetail, summary="One endpoint, with its last problems")
def get_endpoint(request: HttpRequest, endpoint_id: EndpointId) -> Endpoint:
    return access.endpoint_read(require(request), endpoint_id)


@router.patch("/endpoints/{int:endpoint_id}", response=EndpointDetail, summary="Change, archive or restore an endpoint")
@transaction.atomic  # two services: all of what is asked for, or nothing
def change(request: HttpRequest, endpoint_id: EndpointId, payload: EndpointChange) -> Endpoint:
    """If the address gets another host, the key must be given again. Once verdicts rest on it, the model stays."""
    membership = require(request)
    endpoint = access.endpoint_write(membership, endpoint_id)
    fields = payload.model_dump(exclude_unset=True)
    archived = fields.pop("archived", None)
    if fields:
        services.change_endpoint(membership, endpoint, **fields)
    if archived is not None:
        (services.archive if archived else services.restore)(membership, endpoint)
    return endpoint


@router.post(
    "/endpoints/{int:endpoint_id}/test",
    response={202: EndpointCheckOut},
    summary="Test an endpoint with one small request",
)
def test(request: HttpRequest, endpoint_id: EndpointId) -> Status[EndpointCheck]:
    """Answers at once; follow `GET endpoints/{id}/checks/{check}`."""
    return _start(request, endpoint_id, EndpointCheck.Kind.TEST)


@router.post(
    "/endpoints/{int:endpoint_id}/probe", response={202: EndpointCheckOut}, summary="Find out what the endpoint can do"
)
def probe(request: HttpRequest, endpoint_id: EndpointId) -> Status[EndpointCheck]:
    """Log-probabilities, output by JSON schema, prefix cache; about 6,000 tokens. Follow `GET endpoints/{id}/checks/{check}`."""
    return _start(request, endpoint_id, EndpointCheck.Kind.PROBE)


def _start(request: HttpRequest, endpoint_id: int, kind: str) -> Status[EndpointCheck]:
    membership = require(request)
    return Status(202, checks.start_check(membership, access.endpoint_write(membership, endpoint_id), kind))


@router.get("/endpoints/{int:endpoint_id}/checks/{int:check_id}", response=EndpointCheckOut, summary="A test or probe")
def check(request: HttpRequest, endpoint_id: EndpointId, check_id: CheckId) -> EndpointCheck:
    return access.check_read(require(request), endpoint_id, check_id)


@router.get(
    "/endpoints/{int:endpoint_id}/use",
    response=UseList,
    summary="Judges that ask an endpoint, with their tokens and costs",
)
def use(request: HttpRequest, endpoint_id: EndpointId, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    items, following = queries.judges_of_endpoint(access.endpoint_read(require(request), endpoint_id), cursor, limit)
    return {"items": items, "next": following}


@router.get(
    "/endpoints/{int:endpoint_id}/recorded", response=OutputList, summary="The outputs that a recorded endpoint replays"
)
def recorded(request: HttpRequest, endpoint_id: EndpointId, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(access.endpoint_read(require(request), endpoint_id).recorded_outputs.all(), cursor, limit, "id")


@router.post("/endpoints/{int:endpoint_id}/recorded", response=RecordedOut, summary="Add recorded outputs")
def add_recorded(request: HttpRequest, endpoint_id: EndpointId, file: File[UploadedFile]) -> object:
    """JSON Lines `{"key": .., "text": ..}`. A bad line refuses the whole file; a key keeps its text for good."""
    membership = require(request)
    return recorded_outputs.add_recorded(
        membership, access.endpoint_write(membership, endpoint_id), cast(IO[bytes], file.file)
    )
