"""Lists and comparisons of runs, as OpenAPI shows them."""

from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from ..metrics.schemas import CurveOut
from ..schemas import ExperimentOut, RunOut


class RunList(Schema):
    items: list[RunOut]
    next: str | None


class LogLineOut(Schema):
    seq: int
    time: datetime
    step: int
    level: str
    message: str


class LogOut(Schema):
    lines: list[LogLineOut]


class DifferenceOut(Schema):
    path: str
    values: list[Any]


class CompareOut(Schema):
    runs: list[RunOut]
    config: list[DifferenceOut]
    curves: dict[str, dict[str, CurveOut]]
    keys: list[str]
    unlike: dict[str, str] = Field(
        description="Run id -> why its result does not compare with that of most: another measure, other data or settings"
    )


class ExperimentList(Schema):
    items: list[ExperimentOut]
    next: str | None
