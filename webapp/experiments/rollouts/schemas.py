"""Rollouts and their filters, as OpenAPI shows them."""

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

from webapp.core.requests.openapi import StrictIn

from .queries import Measure, RolloutQuery, Verdict


class RolloutDatasetIn(Schema):
    """The choice of the sampled responses, and the dataset that gets them: an existing dataset gets a version."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "best of 8", "best": 1, "least": 0.5, "first": 20}}
    )

    name: Annotated[str, Field(min_length=1, max_length=120)]
    phase: Literal["train", "eval"] = "train"
    first: Annotated[int, Field(ge=0, lt=2**31, description="The first step")] = 0
    last: Annotated[int | None, Field(ge=0, lt=2**31, description="The last step; null: the newest")] = None
    shortest: Annotated[int, Field(ge=0, lt=2**31, description="At least this many characters; 0: any length")] = 0
    whole: Annotated[bool, Field(description="Responses that were cut are left out")] = False
    form: Annotated[
        Literal["", "tags", "json", "pattern"], Field(description="The form that a response must have; empty: any")
    ] = ""
    form_of: Annotated[
        str,
        Field(
            max_length=500, description="For the form: names of tags or keys, separated by blanks, or the expression"
        ),
    ] = ""
    correct: Annotated[
        float | None,
        Field(ge=0, le=1, description="The share of the criteria with a verifier that must be right"),
    ] = None
    least: Annotated[float | None, Field(description="Responses with a lower reward are left out")] = None
    part: Annotated[
        str,
        Field(max_length=60, description="The part of the reward to which `least` applies; empty: the reward itself"),
    ] = ""
    protocol: Annotated[bool, Field(description="Attempts that an environment ended with an error are left out")] = (
        False
    )
    protocol_part: Annotated[
        str, Field(max_length=60, description="A part of the reward that must be 1; empty: none")
    ] = ""
    best: Annotated[
        int,
        Field(
            ge=0, lt=2**31, description="Keep this many responses of each prompt, those with the highest reward; 0: all"
        ),
    ] = 0
    without: Annotated[
        tuple[str, ...],
        Field(max_length=20, description="Filters that are left out: `no_reward`, `repeated`, `short`, …"),
    ] = ()


class RolloutPreviewIn(RolloutDatasetIn):
    """`RolloutDatasetIn` without a name, and how many cases of each filter are listed."""

    name: Annotated[str, Field(max_length=120)] = ""
    cases: Annotated[int, Field(ge=0, le=200)] = 5
    of: Annotated[str, Field(max_length=20, description="Cases of this filter alone; empty: of each")] = ""
    after: Annotated[int, Field(ge=0, lt=2**31, description="Skip this many of its cases")] = 0


class FilteredResponse(Schema):
    example_key: str
    step: int
    group: int
    index: int
    why: str
    text: str


class FilterOut(Schema):
    """One filter, in the order in which the filters work: how many `came` to it, how many `stayed`, and cases of those that did not."""

    key: str
    title: str
    came: int
    stayed: int
    left_out: int
    cases: list[FilteredResponse]


class RolloutPreviewOut(Schema):
    responses: int
    stayed: int
    prompts: int
    steps: list[FilterOut]


class RolloutDatasetOut(Schema):
    """Follow the import at `GET imports/{import_id}`; its `version` is the result."""

    import_id: int
    dataset: str


class RolloutFilters(StrictIn):
    step: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    phase: Literal["train", "eval"] | None = None
    example_key: str | None = Field(None, max_length=200, description="Only responses to the prompt with this key")
    criterion: str | None = Field(None, description="Id or whole text of a criterion that was scored")
    verdict: Verdict | None = Field(
        None, description="The verdict of `criterion`; without `criterion`, of any criterion"
    )
    excluded: bool | None = Field(None, description="Whether the response was left out of training")
    part: str = Field("", max_length=200, description="A part of the reward; `low`, `high` and `lacking` are about it")
    low: Annotated[float, Field(allow_inf_nan=False)] | None = None
    high: Annotated[float, Field(allow_inf_nan=False)] | None = None
    lacking: bool = Field(False, description="Only responses that the part could not value")
    by: str = Field("", max_length=200, description="The part that `sort=part` sorts by; empty: `part`")
    between: str = Field(
        "", max_length=400, pattern=r"^$|^[^,]+,[^,]+$", description="Two parts that disagree, separated by a comma"
    )
    apart: float = Field(0.0, ge=0, allow_inf_nan=False, description="The least disagreement of the two parts")
    measure: Measure = Field(
        "rank", description="`value`: difference of the values. `rank`: of the places in the group, from 0 to 1"
    )
    text: str = Field(
        "",
        max_length=500,
        description="Words that all stand in its texts: prompt, response, turns, and what judges and services said. Words between "
        "double quotes stand there as they are. Without `step` and `sort` the newest that was stored comes first",
    )

    def filters(self) -> RolloutQuery:
        values = self.model_dump(exclude={"between"})
        first, _, second = self.between.partition(",")
        return RolloutQuery(**values, between=(first, second) if second else None)


class RolloutList(Schema):
    items: list[dict[str, Any]] = Field(description="`trainer.contracts.RolloutRecord` with `id` and `step`")
    next: str | None
    previous: str | None = Field(None, description="The cursor of the page before this one; null: this is the first")
    oldest_step: int | None = Field(
        None, description="The step where the search stopped; null: the whole run was searched"
    )
    waiting: int = Field(
        0,
        description="Of a search for `text`: rollouts that were stored a moment ago, or before an upgrade, and that it has not looked at "
        "because a worker has not indexed their words yet, and episodes that came a moment ago. They are counted to 10,000",
    )
    indexed: int = Field(0, description="With `waiting`: how many rollouts of the run are indexed so far")


class PromptStep(Schema):
    """The responses to the prompt in one step. A number is null if no response has what it is a mean of."""

    step: int
    responses: int
    rewarded: int = Field(description="Responses that have a reward; the next four are of these")
    mean: float | None
    spread: float | None = Field(description="Standard deviation of the sample; null below two rewards")
    low: float | None
    high: float | None
    tokens: float | None = Field(None, description="Mean length, of the responses whose tokens were recorded")
    characters: float | None = Field(None, description="Mean length of the response, in several turns of its last one")


class PromptSteps(Schema):
    example_key: str
    phase: str
    phases: list[str] = Field(description="In which phases the prompt was sampled")
    prompt: str | None = Field(
        description="The text of the prompt in the newest step; null if it was never sampled in this phase"
    )
    items: list[PromptStep]
    next: str | None


class FacetStep(Schema):
    step: int
    phase: str
    count: int | None


class FacetCriterion(Schema):
    text: str
    met: int
    unmet: int
    missing: int


class FacetPart(Schema):
    name: str
    kind: str
    weight: float | None = Field(description="The weight in the sum; null if the part is not in the config")
    shadow: bool = Field(description="Measured and shown, but not trained on")
    judge: str
    low: float | None
    high: float | None
    valued: int
    missing: int


class FacetReason(Schema):
    reason: str
    count: int


class FacetsOut(Schema):
    steps: list[FacetStep]
    criteria: list[FacetCriterion]
    parts: list[FacetPart]
    expression: str = Field(description="The expression that combines the parts; empty: their weighted sum")
    excluded: list[FacetReason] = Field(description="The reasons why responses were left out, most frequent first")
