"""Bodies and answers of the table of runs in the API."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

from ..schemas import Named, RunDatasetOut, RunProgressOut, RunResultOut

RunIdIn = Annotated[int, Field(ge=1, lt=2**63)]


class RunBrief(Named):
    """A run without its config and summary. Request columns to get their values."""

    number: int
    experiment: Named
    recipe: str
    state: str
    progress: RunProgressOut
    result: RunResultOut | None
    dataset: RunDatasetOut | None = Field(description="Null of a run that was logged from outside")
    model: Named | None = Field(description="Null of a run that was logged from outside")
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class RunTableRow(Schema):
    run: RunBrief
    tags: list[str]
    group: str
    notes: str
    starred: bool = Field(description="Whether you starred it; nobody else sees this")
    archived_at: datetime | None
    values: dict[str, float | str | None] = Field(description="Values of the requested columns that not every run has")


class RunTable(Schema):
    items: list[RunTableRow]
    next: str | None
    sort: str
    unknown: dict[str, str] = Field(description="Requested columns that do not exist -> why")


class FinalOut(Schema):
    value: float | None
    n: int
    low: float | None
    high: float | None
    missing: int
    undefined: str = ""
    interval: str = ""


class GroupCellOut(Schema):
    """The value of a group of runs in a column."""

    mean: FinalOut | None = Field(description="Mean over seeds with its 95% interval, of a metric or a result")
    value: float | str | None = Field(description="The value of the config that all its runs share")
    different: int = Field(
        description="Number of values that they have in the config, if there are several; otherwise 0"
    )


class RunGroupOut(Schema):
    value: float | str | None = Field(description="Null: the runs without a value")
    query: str | None = Field(description="Finds its runs; null if it would be too long for a query")
    runs: list[int] = Field(description="Ids, newest first")
    seeds: list[str]
    states: dict[str, int] = Field(description="State -> how many of its runs have it")
    values: dict[str, GroupCellOut] = Field(description="The requested columns that not every run has")


class RunGroupList(Schema):
    items: list[RunGroupOut]
    next: str | None
    sort: str
    unknown: dict[str, str] = Field(description="Requested columns that do not exist -> why")
    partial: bool = Field(description="The query finds more than 5,000 runs: only the newest 5,000 are grouped")


class RunCount(Schema):
    count: int
    more: bool = Field(description="Whether counting stopped at this number")


class RunColumnOut(Schema):
    name: str = Field(description="The name as in queries, `sort` and `columns`")
    label: str
    kind: Literal["fact", "config", "metric"]


class RunColumnList(Schema):
    items: list[RunColumnOut]
    next: str | None


class SuggestionOut(Schema):
    text: str
    hint: str
    start: int
    end: int


class SuggestionList(Schema):
    items: list[SuggestionOut]
    next: str | None


class RunLabelsIn(Schema):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"tags": ["ablation"], "notes": "Best so far."}}
    )

    tags: list[Annotated[str, Field(max_length=200)]] | None = Field(
        None, max_length=100, description="All tags of the run"
    )
    notes: str | None = Field(None, description="Markdown")
    group: str | None = None


class RunLabelsOut(Schema):
    tags: list[str]
    notes: str
    group: str
    starred: bool


class StarIn(Schema):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"starred": True}})

    starred: bool


class RunsActionIn(Schema):
    """`runs`, or `q` for all runs that a query finds."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"action": "tag", "word": "ablation", "runs": [1, 2]}}
    )

    action: Literal["archive", "restore", "tag", "untag", "group", "stop", "pause", "resume"]
    word: Annotated[str, Field(max_length=200)] = Field("", description="The tag, or the group; empty: no group")
    runs: list[RunIdIn] = Field([], max_length=1000)
    q: Annotated[str, Field(max_length=1000)] | None = None


class RunChangeOut(Schema):
    id: int | None = Field(description="The id for undoing it; null: it cannot be undone")
    action: str
    word: str
    changed: int = Field(description="Runs that really changed")
    undone_at: datetime | None
    refused: list[str] = Field([], description="Why runs could not be paused or resumed")


class RunViewIn(Schema):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"name": "Ablations", "query": "tag:ablation", "sort": "-eval/rubric_score"}},
    )

    name: Annotated[str, Field(max_length=200)]
    query: Annotated[str, Field(max_length=1000)] = ""
    sort: Annotated[str, Field(max_length=210)] = "-created"
    columns: list[Annotated[str, Field(max_length=210)]] = Field([], description="Empty: the usual ones")
    folded: bool = False
    group: Annotated[str, Field(max_length=210)] = Field("", description="The name by whose values runs are grouped")


class RunViewOut(Schema):
    id: int
    name: str
    query: str
    sort: str
    columns: list[str]
    folded: bool
    group: str
    is_default: bool = Field(description="Whether your table opens with it")


class RunViewList(Schema):
    items: list[RunViewOut]
    next: str | None
