"""Verdicts over the API. They need the role reviewer."""

from typing import Literal

from django.http import HttpRequest
from ninja import Router

from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page

from .. import access
from ..models import Verdict
from ..parameters import Id, Number
from . import queries
from . import schemas as s

router = Router()
VerdictState = Literal["", "done", "missing", "failed"]


@router.get("/judges/{judge_id}/versions/{number}/verdicts", response=s.VerdictList, summary="Verdicts of a version")
def verdicts(
    request: HttpRequest,
    judge_id: Id,
    number: Number,
    state: VerdictState = "",
    cursor: str | None = None,
    limit: Limit = 50,
) -> object:
    row = access.version_read(require(request), judge_id, number)
    return page(queries.verdict_list(row, state), cursor, limit)


@router.get("/verdicts/{verdict_id}", response=s.VerdictOut, summary="One verdict, down to the raw text")
def verdict(request: HttpRequest, verdict_id: Id) -> Verdict:
    return access.verdict_read(require(request), verdict_id)
