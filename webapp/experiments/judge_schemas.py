"""What the API says of the judges of a run, and of how far people agree with them."""

from decimal import Decimal
from typing import Annotated

from ninja import Schema
from pydantic import Field

from webapp.evaluation.schemas import LicenceOut

from .models import GradedResponse
from .schemas import Named


class TrainedJudgeIn(Schema):
    name: str = Field("", max_length=120, description="Of the judge; empty: that of the model")


class RunJudgeOut(Schema):
    """Money is in the unit of the endpoint's prices; null budgets are none."""

    id: int
    judge: str
    judge_id: int
    version: int
    calls: int = Field(description="That were answered; what was stored already is no call")
    failed: int
    tokens: int
    money: Decimal
    budget_tokens: int | None
    budget_money: Decimal | None
    problem: str = Field(description="Why it cannot be asked at present; empty if it can")
    licence: LicenceOut = Field(description="What is known about it on labels of people")


class RunJudgeList(Schema):
    items: list[RunJudgeOut]
    next: str | None


class PeopleOut(Schema):
    """`decided` criteria of `responses` are those on which more people say one thing than the other; on `agreeing` of them
    that is what the judge says."""

    share: float = Field(description="Of the judged responses; 0: nobody is asked")
    drawn: int
    waiting: int = Field(description="Drawn, and not yet a task")
    left_out: int = Field(description="Nobody can be asked about; the cases say why")
    responses: int
    decided: int
    agreeing: int
    undecided: int
    value: float | None = Field(description="`agreeing` of `decided`; null while nobody has answered")
    low: float | None = Field(description="95% interval (Wilson), which counts responses")
    high: float | None
    project: Named | None = Field(description="In which people are asked")


class GradedCriterionOut(Schema):
    id: str
    text: str
    judge: bool = Field(description="Whether the judge calls it met")
    people: bool | None = Field(description="What most people say; null where they are split or nobody has answered")
    met: int = Field(description="How many people call it met")
    not_met: int
    agree: bool | None


class GradedOut(Schema):
    """A response that was drawn, by its place in the run."""

    id: int
    step: int
    phase: str
    group: int
    index: int
    state: Annotated[str, Field(json_schema_extra={"enum": GradedResponse.State.values})]
    problem: str = Field(description="Why nobody can be asked about it; else empty")
    task: int | None
    example: str = Field(description="Its key in the project's dataset; empty while there is no task")
    response: str
    criteria: list[GradedCriterionOut]


class GradedList(Schema):
    items: list[GradedOut]
    next: str | None
