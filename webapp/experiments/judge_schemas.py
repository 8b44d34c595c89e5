"""What the API says of the judges of a run, and of how far people agree with them."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated

from ninja import Schema
from pydantic import ConfigDict, Field

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


class MatchShareOut(Schema):
    """A share with its 95% interval, which resamples judgements."""

    value: float | None
    n: int = Field(description="Pairs of reasons, or matches, that it rests on")
    low: float | None
    high: float | None
    missing: int
    undefined: str = Field("", description="Why there is no value")
    interval: str = Field("", description="Why there is no interval")


class MatcherAgreementOut(Schema):
    matcher: str
    judgements: int = Field(description="That people have matched")
    agree: MatchShareOut = Field(description="Pairs of reasons, one of each list, of which both say the same")
    recall: MatchShareOut = Field(description="Of people's matches, those that the matcher found")
    precision: MatchShareOut = Field(description="Of the matcher's, those that people confirm")


class UnmatchedOut(Schema):
    judgement: str = Field(description="Its address: step/phase/group/index")
    question: str
    human: list[str]
    model: list[str]


class ReasonsOut(Schema):
    items: list[MatcherAgreementOut] = Field(description="Of each matcher; empty: not measured yet")
    waiting: UnmatchedOut | None = Field(description="The next judgement to match; null: none waits")


class ReasonsMatchedIn(Schema):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"judgement": "40/eval/3/0", "matches": [[0, 1]]}}
    )

    judgement: str = Field(max_length=60)
    matches: list[tuple[int, int]] = Field(
        max_length=2500,
        description="(place of the human reason, place of the model's), from 0; none: no two say the same",
    )


class AlarmResponseOut(Schema):
    group: int
    index: int
    response: str = Field(description="Its beginning; empty where it is gone")
    reward: float | None


class AlarmOut(Schema):
    """More responses than usual show what a policy does that games its reward. It asks for a look, and proves nothing."""

    id: int
    signal: str
    subject: str = Field(description="The part of the reward or the phrase, where the signal has several; else empty")
    step: int
    since: int = Field(description="The step from which on the share was above the usual")
    share: float = Field(description="Of the responses of the step")
    before: float = Field(description="Of the responses of the first steps")
    paid: float | None = Field(
        description="How clearly the reward pays for it, a z value; null where that was not asked"
    )
    part: str = Field(description="The part of the reward that pays, where it is clear; else empty")
    criterion: str = Field(description="The criterion that pays, where it is clear; else empty")
    time: datetime
    title: str
    told: str = Field(description="The alarm in words")
    responses: list[AlarmResponseOut]
    asked: int = Field(description="Responses that were sent to people")
    left_out: int = Field(description="Those that nobody can be asked about")
    why: str = Field(description="Why the first of them cannot; else empty")


class AlarmList(Schema):
    items: list[AlarmOut]
    next: str | None


class AlarmAskedOut(Schema):
    sent: int = Field(description="Responses that were not sent before")


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
