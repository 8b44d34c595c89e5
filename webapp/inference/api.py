"""The model registry and the verifiers over the API."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import Path, Router, Schema, Status
from pydantic import ConfigDict, Field, model_validator

from trainer.contracts import VerifierSpec
from trainer.verifiers import REGISTRY, Verifier, VerifierError, verify
from webapp.accounts.access import require
from webapp.accounts.models import Role
from webapp.core import audit
from webapp.core.archive import respond
from webapp.core.limits import measured
from webapp.core.openapi import sends
from webapp.core.paging import Limit, page
from webapp.core.problems import Invalid

from . import access, files, generating, queries, services, shapes

router = Router(tags=["models"])
Id = Annotated[int, Path(ge=1, le=2**63 - 1)]


class ModelName(Schema):
    id: int
    name: str


class ModelRun(Schema):
    id: int
    name: str
    experiment: str
    step: int


class ModelOut(Schema):
    id: int
    name: str
    source: str = Field(description="local, hub or run")
    path: str
    description: str
    facts: dict[str, Any]
    role: str = Field(description="What a run has trained it to be; empty where none has")
    format: str = Field(description="hf (a whole model) or peft (an adapter for its base)")
    head: str = Field(description="lm (writes text) or scalar (scores text)")
    base: ModelName | None
    digest: str
    run: ModelRun | None
    present: bool | None = Field(description="Whether the files of a run's model are there; null for other models")
    stage: str = Field(description="candidate, production, retired, or empty")
    aliases: list[str] = Field(description="Without their @")
    created_at: datetime
    archived_at: datetime | None


class ModelList(Schema):
    items: list[ModelOut]
    next: str | None


class ModelFileOut(Schema):
    path: str
    bytes: int
    digest: str = Field(description="SHA-256")


class ModelFiles(Schema):
    items: list[ModelFileOut]
    next: None = None


class ModelChange(Schema):
    name: str | None = Field(None, max_length=120)
    description: str | None = Field(None, max_length=20_000)


class ModelIn(Schema):
    name: str = Field(max_length=120)
    source: Literal["local", "hub"] = "local"
    path: str = Field(min_length=1, max_length=500, description="Absolute directory on the server, or hub id")
    description: str = Field("", max_length=20_000)
    base: int | None = Field(
        None, ge=1, le=2**63 - 1, description="Of a directory with an adapter: the model that it was trained on"
    )
    head: Literal["", "lm", "scalar"] = Field(
        "", description="Of a hub id: lm (writes text, the default) or scalar (scores text). A directory says it itself"
    )


class GenerateMessage(Schema):
    role: Literal["system", "user", "assistant"]
    content: str = Field(max_length=100_000)


class GenerateIn(Schema):
    """Either `prompt`, which is one message of a user, or `messages`."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"prompt": "Name three colours.", "max_new_tokens": 64}}
    )

    prompt: str | None = Field(None, min_length=1, max_length=100_000)
    messages: list[GenerateMessage] | None = Field(None, min_length=1, max_length=100)
    max_new_tokens: int = Field(256, ge=1, le=4096)
    temperature: float = Field(0.0, ge=0, le=5, description="0 always takes the likeliest token")
    top_p: float = Field(1.0, gt=0, le=1)
    seed: int = Field(0, ge=0, lt=2**31)
    stop: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field([], max_length=8)

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("give either prompt or messages")
        return self

    def asked(self) -> dict[str, Any]:
        messages = [{"role": "user", "content": self.prompt}]
        if self.messages is not None:
            messages = [message.model_dump() for message in self.messages]
        return {**self.model_dump(exclude={"prompt", "messages"}), "messages": messages}


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


@router.get("/models", response=ModelList, summary="The models that are offered where one is chosen, newest first")
def list_models(
    request: HttpRequest, cursor: str | None = None, limit: Limit = 50, archived: bool = False
) -> dict[str, Any]:
    rows = queries.models(access.may_read(require(request)).workspace_id, archived=archived)
    found = page(rows, cursor, limit, "-id")
    return {"items": [shapes.model(row) for row in found.items], "next": found.next}


@router.post("/models", response={201: ModelOut}, summary="Register a local directory or a hub id")
def register(request: HttpRequest, payload: ModelIn) -> Status[dict[str, Any]]:
    membership = access.may_write(require(request))
    return Status(201, shapes.model(services.register(membership, **payload.model_dump())))


@router.get("/models/{int:model_id}", response=ModelOut, summary="One model")
def get_model(request: HttpRequest, model_id: Id) -> dict[str, Any]:
    return shapes.model(access.model_read(require(request), model_id))


@router.patch("/models/{int:model_id}", response=ModelOut, summary="Rename a model, or describe it")
def change_model(request: HttpRequest, model_id: Id, payload: ModelChange) -> dict[str, Any]:
    membership = require(request)
    row = access.model_write(membership, model_id)
    services.change_model(membership, row, name=payload.name, description=payload.description)
    return shapes.model(row)


@router.post("/models/{int:model_id}/archive", response=ModelOut, summary="Offer a model no longer; its files stay")
def archive_model(request: HttpRequest, model_id: Id) -> dict[str, Any]:
    membership = require(request)
    row = access.model_write(membership, model_id)
    services.archive_model(membership, row)
    return shapes.model(row)


@router.post("/models/{int:model_id}/restore", response=ModelOut, summary="Offer an archived model again")
def restore_model(request: HttpRequest, model_id: Id) -> dict[str, Any]:
    membership = require(request)
    row = access.model_write(membership, model_id)
    services.restore_model(membership, row)
    return shapes.model(row)


@router.post("/models/{int:model_id}/trial", response=ModelOut, summary="Try once more whether a model can be trained")
def try_model(request: HttpRequest, model_id: Id) -> dict[str, Any]:
    """Where `facts.trial.state` is refused or not_tried: it is taken away, and is there again once a worker has tried the model."""
    membership = require(request)
    row = access.model_write(membership, model_id)
    services.try_again(membership, row)
    return shapes.model(row)


@router.get("/models/{int:model_id}/files", response=ModelFiles, summary="The files of a model that a run has trained")
def model_files(request: HttpRequest, model_id: Id) -> dict[str, Any]:
    return {"items": files.listed(access.model_read(require(request), model_id))}


@router.get(
    "/models/{int:model_id}/download",
    summary="The folder of a model that a run has trained",
    openapi_extra=sends("application/x-tar", ranges=True),
)
def download_model(request: HttpRequest, model_id: Id) -> HttpResponseBase:
    """An uncompressed tar. A download that broke off goes on with `Range` (`curl -C -`)."""
    membership = require(request)
    row = access.model_read(membership, model_id)
    found = files.download(row)
    audit.record(membership, membership.user, "model.downloaded", row, name=row.name)
    return respond(request, found)


@router.post(
    "/models/{int:model_id}/generate",
    summary="Let a model answer, token by token",
    openapi_extra=sends("text/event-stream"),
)
def generate(request: HttpRequest, model_id: Id, payload: GenerateIn) -> StreamingHttpResponse:
    """Server-sent events: `loading` or `waiting` while nothing can be said yet, `start`, a `token` for each token with the
    `text` it adds, and `done` with the whole text, or `error` with a code (memory, busy, too_long, ended, failed)."""
    membership = require(request)
    model = access.model_write(membership, model_id)
    return generating.stream(model, membership.user_id, payload.asked())


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
    person = require(request).user_id
    if name not in REGISTRY:
        raise Http404("no such verifier")
    try:
        with measured(person):
            finding = verify(VerifierSpec(name=name, args=payload.args), payload.text)
    except VerifierError as error:
        raise Invalid("The arguments do not fit.", {error.field: error.message}) from error
    return {"met": finding.met, "note": finding.note}
