"""The answers of people about a run, as OpenAPI shows them."""

from typing import Annotated

from ninja import Schema
from pydantic import ConfigDict, Field

from ..models import GradedResponse
from ..schemas import Named


class PeopleOut(Schema):
    """`decided` criteria of `responses` are those on which more people say one thing than the other; on `agreeing` of them
    that is what the judge says."""

    share: float = Field(description="The share of the judged responses that people grade; 0: nobody is asked")
    drawn: int
    waiting: int = Field(description="Drawn, and not yet a task")
    left_out: int = Field(description="Number of responses about which nobody can be asked; the cases say why")
    responses: int
    decided: int
    agreeing: int
    undecided: int
    value: float | None = Field(description="`agreeing` of `decided`; null while nobody has answered")
    low: float | None = Field(description="95% interval (Wilson), which counts responses")
    high: float | None
    project: Named | None = Field(description="The project in which people are asked")


class MatchShareOut(Schema):
    """A share with its 95% interval, which resamples judgements."""

    value: float | None
    n: int = Field(description="Number of pairs of reasons, or of matches, on which it is based")
    low: float | None
    high: float | None
    missing: int
    undefined: str = Field("", description="Why there is no value")
    interval: str = Field("", description="Why there is no interval")


class MatcherAgreementOut(Schema):
    matcher: str
    judgements: int = Field(description="Number of judgements that people have matched")
    agree: MatchShareOut = Field(description="Pairs of reasons, one of each list, that both say are the same")
    recall: MatchShareOut = Field(description="The share of people's matches that the matcher found")
    precision: MatchShareOut = Field(description="The share of the matcher's matches that people confirm")


class UnmatchedOut(Schema):
    judgement: str = Field(description="Its address: step/phase/group/index")
    question: str
    human: list[str]
    model: list[str]


class ReasonsOut(Schema):
    items: list[MatcherAgreementOut] = Field(description="An item for each matcher; empty: not measured yet")
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


class GradedCriterionOut(Schema):
    id: str
    text: str
    judge: bool = Field(description="Whether the judge calls it met")
    people: bool | None = Field(description="The answer of most people; null if they are split or nobody has answered")
    met: int = Field(description="Number of people who call it met")
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
