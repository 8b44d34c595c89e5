"""Judges and their versions over the API. Reading needs the role reviewer, changing anything researcher."""

from typing import Any

from django.db import transaction
from django.http import HttpRequest
from ninja import Router, Status

from trainer.judges.spec import KINDS, Kind
from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page
from webapp.inference.endpoints.access import endpoint_read

from .. import access, queries
from ..models import Judge, JudgeVersion
from ..parameters import Id, Number
from . import schemas as s
from . import services

router = Router()


@router.get("/judge-kinds", response=s.JudgeKindList, summary="The kinds of judges, with their default templates")
def kinds(request: HttpRequest) -> dict[str, Any]:
    access.may_read(require(request))
    return {"items": [_kind(kind) for kind in KINDS.values()]}


def _kind(kind: Kind) -> dict[str, Any]:
    spec = kind.default()
    return {
        "name": kind.name,
        "title": kind.title,
        "help": kind.help,
        "variables": kind.variables,
        "required": kind.required,
        "spec": spec.model_dump(mode="json"),
        "spec_schema": kind.spec.model_json_schema(),
        "answer_schema": kind.schema(spec),
    }


@router.get("/judges", response=s.JudgeList, summary="Judges, newest first")
def judges(request: HttpRequest, cursor: str | None = None, limit: Limit = 50, archived: bool = False) -> object:
    membership = access.may_read(require(request))
    return page(queries.judges(membership.workspace_id, archived=archived), cursor, limit)


@router.post("/judges", response={201: s.JudgeVersionOut}, summary="Create a judge with its first version")
def create_judge(request: HttpRequest, payload: s.JudgeIn) -> Status[JudgeVersion]:
    membership = access.may_write(require(request))
    endpoint = endpoint_read(membership, payload.endpoint)
    made = services.create_judge(membership, name=payload.name, spec=payload.spec, endpoint=endpoint, note=payload.note)
    return Status(201, made)


@router.get("/judges/{judge_id}", response=s.JudgeOut, summary="One judge")
def judge(request: HttpRequest, judge_id: Id) -> Judge:
    return access.judge_read(require(request), judge_id)


@router.patch(
    "/judges/{judge_id}", response=s.JudgeOut, summary="Rename or archive a judge, or choose its fixed examples"
)
@transaction.atomic  # several services: all of what is asked for, or nothing
def change_judge(request: HttpRequest, judge_id: Id, payload: s.JudgeChange) -> Judge:
    membership = require(request)
    row = access.judge_write(membership, judge_id)
    if payload.name is not None:
        services.rename(membership, row, payload.name)
    if payload.fixed_examples is not None:
        services.fix_examples(membership, row, payload.fixed_examples)
    if payload.archived is not None:
        (services.archive if payload.archived else services.restore)(membership, row)
    return access.judge_read(membership, judge_id)


@router.get("/judges/{judge_id}/versions", response=s.JudgeVersionList, summary="A judge's versions, newest first")
def versions(request: HttpRequest, judge_id: Id, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.versions(access.judge_read(require(request), judge_id)), cursor, limit)


@router.post("/judges/{judge_id}/versions", response={201: s.JudgeVersionOut}, summary="Create the next version")
def new_version(request: HttpRequest, judge_id: Id, payload: s.VersionIn) -> Status[JudgeVersion]:
    """If an earlier version has the same content, the response has that version."""
    membership = require(request)
    row = access.judge_write(membership, judge_id)
    endpoint = endpoint_read(membership, payload.endpoint)
    made = services.new_version(membership, row, spec=payload.spec, endpoint=endpoint, note=payload.note)
    return Status(201, made)


@router.get("/judges/{judge_id}/versions/{number}", response=s.VersionDetail, summary="One version")
def version(request: HttpRequest, judge_id: Id, number: Number) -> JudgeVersion:
    return access.version_read(require(request), judge_id, number)
