"""The table of runs in the API. Reading it and starring runs need the role reviewer; changing runs and saving views need researcher."""

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Path, Query, Router, Status
from pydantic import Field

from webapp.accounts.access import require
from webapp.accounts.models import Membership
from webapp.core.database.paging import Limit
from webapp.core.problems import Invalid

from .. import access as runs
from .. import serializers
from ..models import Run
from . import access, columns, completion, grouping, queries, services
from . import schemas as s
from .language import QueryProblem
from .models import RunChange, RunTag, RunView
from .queries import Layout

router = Router(tags=["runs"])
Id = Path[Annotated[int, Field(ge=1, lt=2**63)]]
Text = Annotated[str, Query(max_length=1000, description="A query: see docs/runs-table.md")]


@router.get("/runs/table", response=s.RunTable, summary="Runs that a query finds, in any order")
def table(
    request: HttpRequest,
    q: Text = "",
    sort: Annotated[
        str, Query(max_length=210, description="A column; with - in front, the greatest values come first")
    ] = "-created",
    shown: Annotated[str, Query(alias="columns", max_length=5000, description="Names, separated by commas")] = "",
    cursor: str | None = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """Archived runs are left out unless the query says `is:archived` or `is:any`. If `q` cannot be read, the answer is 422, and `place`
    says where in `q`."""
    membership = runs.may_read(require(request))
    layout = Layout(q, sort, split(shown))
    try:
        found = queries.page(membership, layout, cursor, limit)
    except QueryProblem as problem:
        raise queries.invalid_query(problem) from problem
    items = [_row(row) for row in found.rows]
    return {"items": items, "next": found.next, "sort": found.order.name, "unknown": found.unknown}


def split(names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))


def _row(row: queries.RunRow) -> dict[str, Any]:
    return {
        "run": serializers.run(row.run, config=False),
        "tags": list(row.tags),
        "group": row.run.group,
        "notes": row.run.notes,
        "starred": row.starred,
        "archived_at": row.run.archived_at,
        "values": {cell.column.name: cell.value for cell in row.cells if cell.column.pk is not None},
    }


@router.get("/runs/table/groups", response=s.RunGroupList, summary="Runs that a query finds, in groups")
def groups(
    request: HttpRequest,
    by: Annotated[
        str,
        Query(min_length=1, max_length=210, description="`tag`, `model`, `recipe`, …, or a path: `config.optim.lr`"),
    ],
    q: Text = "",
    sort: Annotated[
        str, Query(max_length=210, description="By the mean of a column, by `by` itself, or by the newest run")
    ] = "-created",
    shown: Annotated[str, Query(alias="columns", max_length=5000, description="Names, separated by commas")] = "",
    cursor: str | None = None,
    limit: Limit = 50,
) -> dict[str, Any]:
    """Runs with one value are a group, and those without a value are the last. A run with several tags is in several groups. Means are over
    seeds: runs of one seed count once, with their mean."""
    membership = runs.may_read(require(request))
    try:
        found = grouping.page(membership, Layout(q, sort, split(shown), by), cursor, limit)
    except QueryProblem as problem:
        raise queries.invalid_query(problem) from problem
    told = {"next": found.next, "sort": found.order.name, "unknown": found.unknown, "partial": found.partial}
    return told | {"items": [_group(row) for row in found.rows]}


def _group(row: grouping.GroupRow) -> dict[str, Any]:
    cells = {
        cell.column.name: {
            "mean": cell.estimate.json() if cell.estimate else None,
            "value": cell.value,
            "different": cell.differ,
        }
        for cell in row.cells
        if cell.column.pk is not None
    }
    told = {"value": row.value, "query": row.query, "runs": list(row.ids), "seeds": list(row.seeds)}
    return told | {"states": dict(row.states), "values": cells}


@router.get("/runs/table/count", response=s.RunCount, summary="The number of runs that a query finds")
def count(request: HttpRequest, q: Text = "") -> dict[str, Any]:
    try:
        number, more = queries.count(runs.may_read(require(request)), q)
    except QueryProblem as problem:
        raise queries.invalid_query(problem) from problem
    return {"count": number, "more": more}


@router.get(
    "/runs/table/columns", response=s.RunColumnList, summary="The names by which runs can be sorted and filtered"
)
def list_columns(request: HttpRequest) -> dict[str, Any]:
    membership = runs.may_read(require(request))
    items = [_named(name) for name in (*columns.names_of(membership.workspace_id), *columns.PICTURES)]
    return {"items": items, "next": None}


def _named(name: str) -> dict[str, str]:
    kind = "fact" if name in columns.FACTS or name in columns.PICTURES else "metric"
    return {"name": name, "label": columns.label(name), "kind": "config" if name.startswith(columns.CONFIG) else kind}


@router.get("/runs/table/complete", response=s.SuggestionList, summary="Continuations of a query")
def complete(
    request: HttpRequest,
    q: Text = "",
    at: Annotated[int, Query(ge=0, le=1000, description="The position of the cursor")] = 0,
) -> dict[str, Any]:
    found = completion.suggestions(runs.may_read(require(request)), q, at)
    return {"items": [vars(each) for each in found], "next": None}


@router.post("/runs/table/actions", response={201: s.RunChangeOut}, summary="Change many runs at once")
def act(request: HttpRequest, payload: s.RunsActionIn) -> Status[dict[str, Any]]:
    """Changes up to 1,000 runs. Only runs that are over are archived. `stop` cannot be undone; resume the runs instead. `pause` is for runs
    that wait or run,
    `resume` for paused ones; `refused` gives the reason for each run that could not be changed."""
    membership = runs.may_write(require(request))
    ids = chosen(membership, payload.runs, payload.q)
    if payload.action == "stop":
        asked = services.stop(membership, ids)
        return Status(201, {"id": None, "action": "stop", "word": "", "changed": asked, "undone_at": None})
    if payload.action in ("pause", "resume"):
        moved = services.pause if payload.action == "pause" else services.resume
        done, refused = moved(membership, ids)
        told = {"id": None, "action": payload.action, "word": "", "changed": done, "undone_at": None}
        return Status(201, told | {"refused": refused})
    act = {"archive": services.archive, "restore": services.restore}.get(payload.action)
    if act is not None:
        return Status(201, _change(act(membership, ids)))
    word = {"tag": services.tag, "untag": services.untag, "group": services.group}[payload.action]
    return Status(201, _change(word(membership, ids, payload.word)))


def chosen(membership: Membership, ids: list[int], query: str | None) -> list[int]:
    """The ids of the chosen runs. Raises Invalid if there are more than can be changed at once."""
    if query is None:
        return queries.ids_of(membership, ids)
    try:
        found = list(queries.find_runs(membership, query).values_list("pk", flat=True)[: services.MAX_AT_ONCE + 1])
    except QueryProblem as problem:
        raise queries.invalid_query(problem) from problem
    if len(found) > services.MAX_AT_ONCE:
        raise Invalid("The query finds too many runs.", {"q": f"at most {services.MAX_AT_ONCE:,} at once"})
    return found


def _change(row: RunChange) -> dict[str, Any]:
    changed = {"action": row.kind, "word": row.word, "changed": len(row.runs), "undone_at": row.undone_at}
    return {"id": row.pk if row.runs else None, **changed}


@router.post("/runs/table/changes/{int:change_id}/undo", response=s.RunChangeOut, summary="Undo a change")
def undo(request: HttpRequest, change_id: Id) -> dict[str, Any]:
    """Undoes what the change did, and nothing else. 409 if it was undone already."""
    membership = require(request)
    return _change(services.undo(membership, access.change_write(membership, change_id)))


@router.get("/runs/table/views", response=s.RunViewList, summary="Saved views of the table")
def list_views(request: HttpRequest) -> dict[str, Any]:
    membership = runs.may_read(require(request))
    mine = queries.chosen_view(membership)
    return {"items": [_view(row, mine) for row in queries.views(membership.workspace_id)], "next": None}


def _view(row: RunView, mine: RunView | None) -> dict[str, Any]:
    fields = {name: getattr(row, name) for name in ("name", "query", "sort", "columns", "folded")}
    return {"id": row.pk, "is_default": mine is not None and mine.pk == row.pk, "group": row.group_by, **fields}


@router.post("/runs/table/views", response={201: s.RunViewOut}, summary="Save a view of the table")
def save_view(request: HttpRequest, payload: s.RunViewIn) -> Status[dict[str, Any]]:
    """Saves the view for everybody in the workspace. A view with this name is replaced."""
    membership = runs.may_write(require(request))
    layout = Layout(payload.query, payload.sort, tuple(payload.columns) or columns.USUAL, payload.group)
    view = services.save_view(membership, payload.name, layout, payload.folded)
    return Status(201, _view(view, queries.chosen_view(membership)))


@router.delete("/runs/table/views/{int:view_id}", response={204: None}, summary="Delete a saved view")
def delete_view(request: HttpRequest, view_id: Id) -> Status[None]:
    membership = require(request)
    services.delete_view(membership, access.view_write(membership, view_id))
    return Status(204, None)


@router.put("/runs/table/views/{int:view_id}/default", response={204: None}, summary="Open your table with this view")
def choose_view(request: HttpRequest, view_id: Id) -> Status[None]:
    membership = require(request)
    services.choose_view(membership, access.view_read(membership, view_id))
    return Status(204, None)


@router.delete("/runs/table/default", response={204: None}, summary="Open your table without a view")
def choose_no_view(request: HttpRequest) -> Status[None]:
    services.choose_view(runs.may_read(require(request)), None)
    return Status(204, None)


@router.put("/runs/{int:run_id}/star", response=s.RunLabelsOut, summary="Star a run for yourself")
def star(request: HttpRequest, run_id: Id, payload: s.StarIn) -> dict[str, Any]:
    membership = require(request)
    run = runs.run_read(membership, run_id)
    services.star(membership, run, payload.starred)
    return _labels(membership, run)


@router.get(
    "/runs/{int:run_id}/labels", response=s.RunLabelsOut, summary="Labels, columns and notes of people on a run"
)
def labels(request: HttpRequest, run_id: Id) -> dict[str, Any]:
    membership = require(request)
    return _labels(membership, runs.run_read(membership, run_id))


@router.patch("/runs/{int:run_id}/labels", response=s.RunLabelsOut, summary="Change tags, notes and group of a run")
def write_labels(request: HttpRequest, run_id: Id, payload: s.RunLabelsIn) -> dict[str, Any]:
    """Absent labels stay as they are."""
    membership = require(request)
    run = runs.run_write(membership, run_id)
    if payload.tags is not None:
        services.set_tags(membership, run, payload.tags)
    if payload.group is not None:
        services.group(membership, [run.pk], payload.group)
    if payload.notes is not None:
        services.write_notes(membership, run, payload.notes)
    return _labels(membership, run)


def _labels(membership: Membership, run: Run) -> dict[str, Any]:
    row = Run.objects.only("notes", "group").get(pk=run.pk)
    tags = list(RunTag.objects.filter(run=run).order_by("name").values_list("name", flat=True))
    starred = run.stars.filter(user=membership.user).exists()
    return {"tags": tags, "notes": row.notes, "group": row.group, "starred": starred}
