"""The judges of a run over the API: what they have used, and their budgets."""

from decimal import Decimal
from typing import Any

from django.http import HttpRequest

from webapp.accounts.access import require

from .. import access
from ..parameters import RunId, router
from . import budgets, serializers
from .schemas import BudgetIn, RunJudgeList, RunJudgeOut


@router.get("/runs/{run_id}/judges", response=RunJudgeList, summary="Tokens and costs of a run's judges")
def run_judges(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """The judges that the run has asked through this server so far."""
    run = access.run_read(require(request), run_id)
    known = budgets.licences(run)
    return {"items": [serializers.run_judge(row, known[row.version_id]) for row in budgets.judges(run)], "next": None}


@router.patch("/runs/{run_id}/judges/{judge_id}", response=RunJudgeOut, summary="Change a judge's budget")
def change_budget(request: HttpRequest, run_id: RunId, judge_id: RunId, payload: BudgetIn) -> dict[str, Any]:
    """A run that waits because a budget is used up continues within a minute."""
    membership = require(request)
    given = payload.dict(exclude_unset=True)
    money = given.get("budget_money", budgets.KEEP)
    row = budgets.change(
        membership,
        access.judge_write(membership, run_id, judge_id),
        given.get("budget_tokens", budgets.KEEP),
        Decimal(str(money)) if isinstance(money, float) else money,
    )
    return serializers.run_judge(row, budgets.licences(row.run)[row.version_id])
