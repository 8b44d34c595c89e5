"""The judges of a run, as OpenAPI shows them."""

from decimal import Decimal
from typing import Annotated

from ninja import Schema
from pydantic import ConfigDict, Field

from webapp.evaluation.schemas import LicenceOut


class BudgetIn(Schema):
    """The budget for the whole run. A limit that is left out stays as it is; null lifts it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"budget_tokens": 2_000_000}})

    budget_tokens: Annotated[int | None, Field(ge=1, lt=2**53)] = None
    budget_money: Annotated[float | None, Field(gt=0, lt=10_000_000, allow_inf_nan=False)] = None


class RunJudgeOut(Schema):
    """Money is in the unit of the endpoint's prices. A budget of null means no limit."""

    id: int
    judge: str
    judge_id: int
    version: int
    calls: int = Field(description="Calls that were answered; a verdict that was already stored is not a call")
    failed: int
    tokens: int
    money: Decimal
    budget_tokens: int | None
    budget_money: Decimal | None
    problem: str = Field(description="Why it cannot be asked at present; empty if it can")
    licence: LicenceOut = Field(description="Its agreement with labels of people")


class RunJudgeList(Schema):
    items: list[RunJudgeOut]
    next: str | None
