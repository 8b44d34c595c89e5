"""Requests and answers of the API about trials and comparisons."""

from datetime import datetime
from typing import Annotated, Any

from ninja import Schema
from pydantic import Field

from webapp.core.requests.openapi import StrictIn

from ..parameters import RowId, VersionNumber

Text = Annotated[str, Field(max_length=5_000)]


class ExtraIn(StrictIn):
    """Inputs that examples do not have: a rubric to match or improve, a judge's reasons, a rationale, a verdict."""

    generated: list[Text] = Field(default=[], max_length=100)
    model_reasons: list[Text] = Field(default=[], max_length=100)
    rationale: str = Field(default="", max_length=20_000)
    verdict: Text = ""


class TrialIn(StrictIn):
    spec: dict[str, Any]
    endpoint: RowId
    examples: list[RowId] = Field(max_length=200)
    judge: RowId | None = None
    extra: ExtraIn = ExtraIn()


class ComparisonIn(StrictIn):
    """Numbers of two versions. They judge the judge's fixed examples; what is stored is not called again."""

    before: VersionNumber
    after: VersionNumber
    extra: ExtraIn = ExtraIn()


class TrialOut(Schema):
    """`state` goes from queued over running to finished or failed; `results` fill up meanwhile.

    A draft's: `calls`, each with messages, raw, parsed and problem. A comparison's: `rows` with both decisions, and how
    many of those `compared` are `changed`; `missing` have no verdict on a side.
    """

    id: int
    judge_id: int | None
    before_id: int | None
    after_id: int | None
    examples: list[int]
    state: str
    problem: str
    done: int
    total: int | None
    results: dict[str, Any]
    created_at: datetime
    finished_at: datetime | None
