"""The verifiers over the API."""

from typing import Any

from django.http import Http404, HttpRequest
from ninja import Router, Schema
from pydantic import Field

from trainer.contracts import VerifierSpec
from trainer.verifiers import REGISTRY, Verifier, VerifierError, verify
from webapp.accounts.access import require
from webapp.core.problems import Invalid
from webapp.core.requests.limits import count_seconds
from webapp.core.requests.openapi import StrictIn

router = Router(tags=["verifiers"])


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


class TryIn(StrictIn):
    text: str = Field(max_length=100_000)
    args: dict[str, Any] = Field(default_factory=dict)


class TryOut(Schema):
    met: bool | None
    note: str


@router.get(
    "/verifiers",
    response=VerifierList,
    by_alias=True,  # a field called `schema` would hide a method of the record
    summary="Every verifier with its arguments and examples",
)
def list_verifiers(request: HttpRequest) -> dict[str, Any]:
    require(request)
    return {"items": [described(verifier) for verifier in REGISTRY.values()], "next": None}


def described(verifier: Verifier) -> dict[str, Any]:
    examples = [{"text": e.text, "args": e.args, "met": e.met} for e in verifier.examples]
    shown = {"name": verifier.name, "title": verifier.title, "help": verifier.help}
    return {**shown, "schema": verifier.args.model_json_schema(), "examples": examples}


@router.post("/verifiers/{name}/try", response=TryOut, summary="Run a verifier on a text")
def try_verifier(request: HttpRequest, name: str, payload: TryIn) -> dict[str, Any]:
    person = require(request).user_id
    if name not in REGISTRY:
        raise Http404("no such verifier")
    try:
        with count_seconds(person):
            finding = verify(VerifierSpec(name=name, args=payload.args), payload.text)
    except VerifierError as error:
        raise Invalid("The arguments do not fit.", {error.field: error.message}) from error
    return {"met": finding.met, "note": finding.note}
