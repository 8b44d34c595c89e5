"""The model registry and the verifiers over the API."""

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest
from ninja import Path, Router, Schema, Status
from pydantic import Field

from trainer.contracts import VerifierSpec
from trainer.rewards.verifiers import REGISTRY, Verifier, VerifierError, verify
from webapp.accounts.access import require
from webapp.accounts.models import Role
from webapp.core.paging import Limit, page
from webapp.core.problems import Invalid

from . import access, queries, services
from .models import RegisteredModel

router = Router(tags=["models"])
Id = Annotated[int, Path(ge=1, le=2**63 - 1)]


class ModelOut(Schema):
    id: int
    name: str
    source: str
    path: str
    description: str
    facts: dict[str, Any]
    created_at: datetime


class ModelList(Schema):
    items: list[ModelOut]
    next: str | None


class ModelIn(Schema):
    name: str = Field(max_length=120)
    source: Literal["local", "hub"] = "local"
    path: str = Field(min_length=1, max_length=500, description="Absolute directory on the server, or hub id")
    description: str = Field("", max_length=20_000)


class VerifierExampleOut(Schema):
    text: str
    args: dict[str, Any]
    met: bool


class VerifierOut(Schema):
    name: str
    title: str
    help: str
    arguments: dict[str, Any] = Field(alias="schema", description="JSON Schema of its arguments")
    examples: list[VerifierExampleOut]


class VerifierList(Schema):
    items: list[VerifierOut]
    next: str | None


class TryIn(Schema):
    text: str = Field(max_length=100_000)
    args: dict[str, Any] = Field(default_factory=dict)


class TryOut(Schema):
    met: bool | None
    note: str


@router.get("/models", response=ModelList, summary="The models that runs may start from, newest first")
def list_models(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.models(access.may_read(require(request)).workspace_id), cursor, limit, "-id")


@router.post("/models", response={201: ModelOut}, summary="Register a local directory or a hub id")
def register(request: HttpRequest, payload: ModelIn) -> Status[RegisteredModel]:
    membership = access.may_write(require(request))
    return Status(201, services.register(membership, **payload.model_dump()))


@router.get("/models/{int:model_id}", response=ModelOut, summary="One model")
def get_model(request: HttpRequest, model_id: Id) -> RegisteredModel:
    return access.model_read(require(request), model_id)


@router.delete("/models/{int:model_id}", response={204: None}, summary="Take an unused model off the list")
def delete_model(request: HttpRequest, model_id: Id) -> Status[None]:
    membership = require(request, Role.RESEARCHER)
    services.delete(membership, access.model_write(membership, model_id))
    return Status(204, None)


@router.get(
    "/verifiers",
    response=VerifierList,
    by_alias=True,  # a field called `schema` would hide a method of the record
    summary="Every verifier with its arguments and examples",
    tags=["verifiers"],
)
def list_verifiers(request: HttpRequest) -> dict[str, Any]:
    require(request)
    return {"items": [described(verifier) for verifier in REGISTRY.values()], "next": None}


def described(verifier: Verifier) -> dict[str, Any]:
    examples = [{"text": e.text, "args": e.args, "met": e.met} for e in verifier.examples]
    shown = {"name": verifier.name, "title": verifier.title, "help": verifier.help}
    return {**shown, "schema": verifier.args.model_json_schema(), "examples": examples}


@router.post("/verifiers/{name}/try", response=TryOut, summary="Run a verifier on a text", tags=["verifiers"])
def try_verifier(request: HttpRequest, name: str, payload: TryIn) -> dict[str, Any]:
    require(request)
    if name not in REGISTRY:
        raise Http404("no such verifier")
    try:
        finding = verify(VerifierSpec(name=name, args=payload.args), payload.text)
    except VerifierError as error:
        raise Invalid("The arguments do not fit.", {error.field: error.message}) from error
    return {"met": finding.met, "note": finding.note}
