"""The group `table` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group
from .shared import Named, RunDatasetOut, RunProgressOut, RunResultOut


class ComparedAxis(TypedDict):
    name: Literal["tokens", "samples"]
    metrics: list[ComparedCounter]


class ComparedCounter(TypedDict):
    key: str
    summed: bool


class ComparedCurve(TypedDict):
    run: int
    values: list[float | None]
    times: list[int | None]


class ComparedCurves(TypedDict):
    key: str
    points: int
    exact: bool
    steps: list[float]
    curves: list[ComparedCurve]


class ComparedFamily(TypedDict):
    label: str
    runs: list[int]


class ComparedMetric(TypedDict):
    key: str
    label: str
    share: bool
    last: list[float | None]


class ComparedPath(TypedDict):
    path: str
    values: list[float | str | None]
    held: list[int]


class ComparedRun(TypedDict):
    id: int
    name: str
    experiment: str
    state: str
    seed: float | None
    family: int


class ComparedTitle(TypedDict):
    key: str
    label: str
    share: bool


class FinalOut(TypedDict):
    value: float | None
    n: int
    low: float | None
    high: float | None
    missing: int
    undefined: str
    interval: str


class FinalsOut(TypedDict):
    key: str
    label: str
    better: str
    share: bool
    families: list[FinalOut]
    against: list[FinalOut] | None


class GroupCellOut(TypedDict):
    """The value of a group of runs in a column."""

    mean: FinalOut | None
    value: float | str | None
    different: int


class PromptApartOut(TypedDict):
    key: str
    text: str
    first: PromptRewardOut
    second: PromptRewardOut
    difference: float


class PromptRewardOut(TypedDict):
    mean: float | None
    n: int
    missing: int


class PromptsApartOut(TypedDict):
    steps: list[Any]
    shared: int
    unscored: int
    only: list[Any]
    mean: FinalOut
    prompts: list[PromptApartOut]


class RunBrief(TypedDict):
    """A run without its config and summary. Request columns to get their values."""

    id: int
    name: str
    number: int
    experiment: Named
    recipe: str
    state: str
    progress: RunProgressOut
    result: RunResultOut | None
    dataset: RunDatasetOut | None
    model: Named | None
    created_at: str
    started_at: str | None
    ended_at: str | None


class RunChangeOut(TypedDict):
    id: int | None
    action: str
    word: str
    changed: int
    undone_at: str | None
    refused: list[str]


class RunColumnList(TypedDict):
    items: list[RunColumnOut]
    next: str | None


class RunColumnOut(TypedDict):
    name: str
    label: str
    kind: Literal["fact", "config", "metric"]


class RunCount(TypedDict):
    count: int
    more: bool


class RunGroupOut(TypedDict):
    value: float | str | None
    query: str | None
    runs: list[int]
    seeds: list[str]
    states: dict[str, int]
    values: dict[str, GroupCellOut]


class RunTableRow(TypedDict):
    run: RunBrief
    tags: list[str]
    group: str
    notes: str
    starred: bool
    archived_at: str | None
    values: dict[str, float | str | None]


class RunViewIn(TypedDict):
    name: str
    query: NotRequired[str]
    sort: NotRequired[str]
    columns: NotRequired[list[str]]
    folded: NotRequired[bool]
    group: NotRequired[str]


class RunViewList(TypedDict):
    items: list[RunViewOut]
    next: str | None


class RunViewOut(TypedDict):
    id: int
    name: str
    query: str
    sort: str
    columns: list[str]
    folded: bool
    group: str
    is_default: bool


class RunsActionIn(TypedDict):
    """`runs`, or `q` for all runs that a query finds."""

    action: Literal["archive", "restore", "tag", "untag", "group", "stop", "pause", "resume"]
    word: NotRequired[str]
    runs: NotRequired[list[int]]
    q: NotRequired[str | None]


class RunsComparedOut(TypedDict):
    runs: list[ComparedRun]
    families: list[ComparedFamily]
    config: list[ComparedPath]
    keys: list[str]
    metrics: list[ComparedMetric]
    others: list[ComparedTitle]
    finals: list[FinalsOut]
    baseline: int | None
    axes: list[ComparedAxis]
    unlike: dict[str, str]


class SuggestionList(TypedDict):
    items: list[SuggestionOut]
    next: str | None


class SuggestionOut(TypedDict):
    text: str
    hint: str
    start: int
    end: int


class Table(Group):
    def compare(
        self,
        *,
        ids: str | None = None,
        q: str | None = None,
        keys: str | None = None,
        key: list[str] | None = None,
        baseline: int | None = None,
    ) -> RunsComparedOut:
        """Up to 1,000 runs beside each other. The differences of the configs, last values, mean and interval
        over seeds, and paired differences to a baseline. Runs of one experiment that differ only by their
        seed are a family. 422 if there are more than 1,000 runs: none is left out. At most 50 metrics of
        `keys` and `key`.
        """
        return self._json(
            RunsComparedOut,
            "GET",
            "/runs/table/compare",
            query={"ids": ids, "q": q, "keys": keys, "key": key, "baseline": baseline},
        )

    def curves(
        self, *, key: str, ids: str | None = None, q: str | None = None, points: int | None = None
    ) -> ComparedCurves:
        """One metric of up to 1,000 runs. The more runs, the fewer points for each: 50,000 in all."""
        return self._json(
            ComparedCurves, "GET", "/runs/table/curves", query={"key": key, "ids": ids, "q": q, "points": points}
        )

    def prompts(self, *, first: int, second: int, limit: int | None = None) -> PromptsApartOut:
        """Prompts on which two runs differ most. Prompts are ordered by the mean reward of the responses to each
        held-out prompt, at each run's newest evaluation. A prompt is the same in both if its example has the
        same key. The interval of `mean` is a bootstrap over prompts.
        """
        return self._json(
            PromptsApartOut, "GET", "/runs/table/prompts", query={"first": first, "second": second, "limit": limit}
        )

    def all(
        self, *, q: str | None = None, sort: str | None = None, columns: str | None = None, page_size: int | None = None
    ) -> Iterator[RunTableRow]:
        """Runs that a query finds, in any order. Archived runs are left out unless the query says `is:archived`
        or `is:any`. If `q` cannot be read, the answer is 422, and `place` says where in `q`.
        """
        return self._pages(
            RunTableRow, "/runs/table", query={"q": q, "sort": sort, "columns": columns, "limit": page_size}
        )

    def groups(
        self,
        *,
        by: str,
        q: str | None = None,
        sort: str | None = None,
        columns: str | None = None,
        page_size: int | None = None,
    ) -> Iterator[RunGroupOut]:
        """Runs that a query finds, in groups. Runs with one value are a group, and those without a value are the
        last. A run with several tags is in several groups. Means are over seeds: runs of one seed count once,
        with their mean.
        """
        return self._pages(
            RunGroupOut,
            "/runs/table/groups",
            query={"by": by, "q": q, "sort": sort, "columns": columns, "limit": page_size},
        )

    def count(self, *, q: str | None = None) -> RunCount:
        """The number of runs that a query finds."""
        return self._json(RunCount, "GET", "/runs/table/count", query={"q": q})

    def list_columns(self) -> RunColumnList:
        """The names by which runs can be sorted and filtered."""
        return self._json(RunColumnList, "GET", "/runs/table/columns")

    def complete(self, *, q: str | None = None, at: int | None = None) -> SuggestionList:
        """Continuations of a query."""
        return self._json(SuggestionList, "GET", "/runs/table/complete", query={"q": q, "at": at})

    def act(self, body: RunsActionIn) -> RunChangeOut:
        """Change many runs at once. Changes up to 1,000 runs. Only runs that are over are archived. `stop`
        cannot be undone; resume the runs instead. `pause` is for runs that wait or run, `resume` for paused
        ones; `refused` gives the reason for each run that could not be changed.
        """
        return self._json(RunChangeOut, "POST", "/runs/table/actions", body=body)

    def undo(self, change_id: int) -> RunChangeOut:
        """Undo a change. Undoes what the change did, and nothing else. 409 if it was undone already."""
        return self._json(RunChangeOut, "POST", f"/runs/table/changes/{change_id}/undo")

    def list_views(self) -> RunViewList:
        """Saved views of the table."""
        return self._json(RunViewList, "GET", "/runs/table/views")

    def save_view(self, body: RunViewIn) -> RunViewOut:
        """Save a view of the table. Saves the view for everybody in the workspace. A view with this name is
        replaced.
        """
        return self._json(RunViewOut, "POST", "/runs/table/views", body=body)

    def delete_view(self, view_id: int) -> None:
        """Delete a saved view."""
        self._nothing("DELETE", f"/runs/table/views/{view_id}")

    def choose_view(self, view_id: int) -> None:
        """Open your table with this view."""
        self._nothing("PUT", f"/runs/table/views/{view_id}/default")

    def choose_no_view(self) -> None:
        """Open your table without a view."""
        self._nothing("DELETE", "/runs/table/default")
