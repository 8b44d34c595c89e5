"""The results of judges on labels, over the API. It needs the role reviewer."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from webapp.accounts.access import require
from webapp.judging import access as judging

from .. import schemas as s
from ..parameters import EvaluationId, Number
from . import licence

router = Router()


@router.get(
    "/judges/{judge_id}/versions/{number}/licence",
    response=s.LicenceOut,
    summary="The agreement of a judge version with labels of people",
)
def judge_licence(request: HttpRequest, judge_id: EvaluationId, number: Number) -> dict[str, Any]:
    row = judging.version_read(require(request), judge_id, number)
    return licence.as_json(licence.licences(row.judge.workspace_id, [row])[row.pk])
