"""Custom charts, pins and computed curves, as OpenAPI shows them."""

from typing import Annotated

from ninja import Schema
from pydantic import ConfigDict, Field

Expression = Annotated[str, Field(max_length=500)]
AxisEnd = Annotated[float | None, Field(allow_inf_nan=False)]


class CustomChartIn(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {
                "title": "Reward less KL",
                "expressions": ["reward/mean - 0.1 * policy/kl", "reward/mean"],
                "lowest": 0,
                "highest": 1,
            }
        },
    )

    title: Annotated[str, Field(max_length=200)] = Field("", description="Empty: the expressions")
    expressions: list[Expression] = Field(min_length=1, max_length=8)
    lowest: AxisEnd = Field(None, description="The lower end of the vertical axis; null: automatic")
    highest: AxisEnd = Field(None, description="The upper end of the vertical axis; null: automatic")


class CustomChartOut(Schema):
    id: int
    title: str
    expressions: list[str]
    lowest: float | None
    highest: float | None


class CustomChartList(Schema):
    items: list[CustomChartOut]
    pinned: list[str] = Field(description="Ids of charts on the page that you see first; nobody else sees them")
    next: str | None


class PlaceIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"place": 0}})

    place: Annotated[int, Field(ge=0, lt=1000)] = Field(description="Counted from 0")


class PinIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"chart": "reward-mean", "pinned": True}})

    chart: Annotated[str, Field(min_length=1, max_length=300)]
    pinned: bool


class PinsOut(Schema):
    charts: list[str]


class ComputedLineOut(Schema):
    expression: str
    keys: list[str]
    program: list[list[str | float | int | None]] = Field(
        description="The expression for a stack machine: [what, with what], such as `key` and the key, or `+`"
    )
    totals: dict[str, float] = Field(description="The final sum of each `total`, by its place in `program`")
    last_step: int | None = Field(description="The last step that has a value of all its metrics")
    missing: list[str] = Field(description="Keys without a value in this run")
    steps: list[int]
    values: list[float | None] = Field(description="Null: there is none, such as after a division by 0")
    times: list[float]


class ReadExpression(Schema):
    expression: str
    keys: list[str] = Field(description="The metrics that it names, in the run or not")


class ReadExpressions(Schema):
    items: list[ReadExpression]
    next: str | None


class ComputedOut(Schema):
    lines: list[ComputedLineOut]
    last_seq: int
