"""The requests that change a run, as OpenAPI shows them."""

from typing import Annotated, Literal

from ninja import Schema
from pydantic import AwareDatetime, ConfigDict, Field

from . import retries
from .early_stop import MOST_PATIENCE, EarlyStop
from .limits import RunLimits

NotBefore = Annotated[
    AwareDatetime | None,
    Field(
        description="It takes no place in the line before this time, which has a zone: 2026-11-28T22:00:00Z",
        examples=["2026-11-28T22:00:00Z"],
    ),
]


Retries = Annotated[
    int,
    Field(
        ge=0,
        le=retries.MOST,
        description="How often in a row it continues by itself if its process is lost: at once, then after 30 s, then twice as long each time",
    ),
]


class ExtendIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"steps": 80}})

    steps: Annotated[int, Field(ge=1, lt=2**31, description="Steps of the whole run, more than it has")]


class PriorityIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"priority": "high"}})

    priority: Literal["low", "normal", "high"] = Field(description="Among the runs of the workspace, while it waits")


class TimeLimitIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"seconds": 7200}})

    seconds: Annotated[int, Field(ge=60, le=315_360_000)] | None = Field(
        description="The time that all its attempts may take together; null removes the limit"
    )


class TokenLimitIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"tokens": 5_000_000}})

    tokens: Annotated[int, Field(ge=1, lt=2**53)] | None = Field(
        description="Tokens that it may generate, all attempts together; null lifts the limit"
    )


class TokensOut(Schema):
    model_config = ConfigDict(json_schema_extra={"example": {"token_limit": 5_000_000, "generated_tokens": 1_204_311}})

    token_limit: int | None = Field(description="null: no limit")
    generated_tokens: int | None = Field(description="null of a recipe that samples no responses")


class EarlyStopIn(Schema):
    """The run stops once the last `patience` values of the metric are not better, by more than `min_delta`, than the best before them."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"metric": "eval/rubric_score", "patience": 5, "min_delta": 0.001}},
    )

    metric: Annotated[str, Field(min_length=1, max_length=80, description="A key that the recipe declares")]
    patience: Annotated[int, Field(ge=1, le=MOST_PATIENCE, description="Number of values; missing ones do not count")]
    better: Literal["higher", "lower"] | None = Field(None, description="null: as the recipe declares the metric")
    min_delta: Annotated[
        float,
        Field(ge=0, allow_inf_nan=False, description="A value counts as better if the difference is more than this"),
    ] = 0

    def rule(self) -> EarlyStop:
        return EarlyStop(**self.dict())


class StopEarlyIn(Schema):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"stop_early": {"metric": "eval/rubric_score", "patience": 5}}}
    )

    stop_early: EarlyStopIn | None = Field(description="null lifts the rule")


class LimitsIn(Schema):
    """Limits from the start, the same as those of `/runs/{id}/limit`, `/tokens`, `/budget` and `/early`; what is left out is no limit."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"seconds": 7200, "budget_tokens": 2_000_000}}
    )

    seconds: Annotated[
        int | None, Field(ge=60, le=315_360_000, description="The time that all attempts of a run may take together")
    ] = None
    tokens: Annotated[
        int | None, Field(ge=1, lt=2**53, description="Tokens that a run may generate, all attempts together")
    ] = None
    budget_tokens: Annotated[
        int | None, Field(ge=1, lt=2**53, description="Tokens that all judges of a run together may use")
    ] = None
    budget_money: Annotated[
        float | None,
        Field(
            gt=0,
            lt=10_000_000,
            allow_inf_nan=False,
            description="How much all judges of a run together may cost, in the unit of their endpoints' prices",
        ),
    ] = None
    stop_early: Annotated[
        EarlyStopIn | None, Field(description="The rule by which a run stops because a metric no longer improves")
    ] = None

    def limits(self) -> RunLimits:
        return RunLimits.of(self.dict())


class ScheduleIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"not_before": None}})

    not_before: NotBefore
