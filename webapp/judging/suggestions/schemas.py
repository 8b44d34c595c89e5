"""Requests and answers of the API about the suggestions of judges."""

from typing import Any

from ninja import Schema
from pydantic import Field

from webapp.annotation.schemas import JobOut
from webapp.core.requests.openapi import StrictIn

from ..parameters import RowId, VersionNumber


class SuggestIn(StrictIn):
    """A judge's version, by the judge's id and the version's number."""

    judge: RowId
    number: VersionNumber
    tokens: int | None = Field(None, ge=1, le=1_000_000_000, description="The most it may use")


class RemovedOut(Schema):
    removed: int


class SuggestionsOut(Schema):
    """`by`: {whose: tasks}. `agreement`: {"saw it before" | "saw it after" | "never saw it": an estimate with n and
    interval}. `job`: the last time a judge was asked."""

    tasks: int
    suggested: int
    by: dict[str, int]
    agreement: dict[str, dict[str, Any]]
    job: JobOut | None
