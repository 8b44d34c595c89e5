"""Runs over the API: the list, one run, its log, and runs side by side."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query

from trainer.config import RECIPES
from trainer.contracts import RunState
from webapp.accounts.access import require
from webapp.core.database.paging import Limit, page
from webapp.core.problems import Invalid
from webapp.core.requests.numbers import whole_number
from webapp.core.requests.strict_query import OneOf

from .. import access, serializers
from .. import schemas as s
from ..lifecycle import line_page
from ..models import LOGGED
from ..parameters import EachKey, JoinedKeys, RunId, keys_of, router, run_of
from . import comparability
from . import history as run_history
from . import queries as runs_queries
from .schemas import CompareOut, ExperimentList, HistoryOut, LineOut, LogOut, RunList

MAX_COMPARED = 8


@router.get("/experiments", response=ExperimentList, summary="Experiments, newest first", tags=["experiments"])
def experiments(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    membership = access.may_read(require(request))
    found = page(runs_queries.experiments(membership.workspace_id), cursor, limit)
    return {"items": [serializers.experiment(row, row.run_count) for row in found.items], "next": found.next}  # type: ignore[attr-defined]


@router.get("/runs", response=RunList, summary="Runs, newest first")
def runs(
    request: HttpRequest,
    cursor: str | None = None,
    limit: Limit = 50,
    experiment: Annotated[int | None, Query(lt=2**63)] = None,
    state: Literal["active"] | RunState | None = None,
    recipe: Annotated[str, OneOf((*RECIPES, LOGGED))] | None = None,
) -> dict[str, Any]:
    membership = access.may_read(require(request))
    wanted = runs_queries.filtered_runs(membership.workspace_id, experiment=experiment, state=state, recipe=recipe)
    found = page(runs_queries.with_outputs(wanted), cursor, limit)
    return {"items": [serializers.run(row) for row in found.items], "next": found.next}


@router.get("/runs/compare", response=CompareOut, summary="The differences of runs: configs and curves")
def compare(
    request: HttpRequest,
    ids: str,
    joined: JoinedKeys = None,
    each: EachKey = [],  # noqa: B006  read, never changed
    max_points: Annotated[int, Query(ge=2, le=2000)] = 300,
) -> dict[str, Any]:
    """`ids`: up to 8 runs, separated by commas; `keys` and `key`: metric keys, by default what their recipes show on top."""
    membership = require(request)
    wanted = list(dict.fromkeys(whole_number(part.strip()) for part in ids.split(",") if part.strip()))
    if not 1 <= len(wanted) <= MAX_COMPARED or None in wanted:
        raise Invalid("These runs cannot be compared.", {"ids": f"1 to {MAX_COMPARED} run ids, separated by commas"})
    rows = [access.run_read(membership, run_id) for run_id in wanted if run_id is not None]
    keys = keys_of(joined, each)
    found = runs_queries.compare(rows, runs_queries.top_keys(rows) if keys is None else keys, max_points)
    return found | {
        "unlike": {str(row.id): why for row, why in zip(rows, comparability.unlike(rows), strict=True) if why}
    }


@router.get(
    "/runs/line",
    response=LineOut,
    summary="The runs and jobs under way and waiting, in which order and until about when",
)
def line(request: HttpRequest) -> dict[str, Any]:
    """Runs of other workspaces appear without details. Times are null if nobody knows them."""
    return line_page.whole(access.may_read(require(request)).workspace_id).json()


@router.get("/runs/{run_id}", response=s.RunOut, summary="One run")
def run(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    return serializers.run(run_of(request, run_id))


@router.get("/runs/{run_id}/log", response=LogOut, summary="The log's newest lines, or those after one")
def log(
    request: HttpRequest,
    run_id: RunId,
    after_seq: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
    before_seq: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> dict[str, Any]:
    """`before_seq`: the lines just before that one, to read backwards."""
    return runs_queries.log(run_of(request, run_id), after_seq, before_seq=before_seq)


@router.get("/runs/{run_id}/history", response=HistoryOut, summary="Every change of a run's state: when, who and why")
def history(request: HttpRequest, run_id: RunId, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    """The entries come from the audit log, newest first."""
    found, following = run_history.events(run_of(request, run_id), cursor, limit)
    return {"items": [event.json() for event in found], "next": following}
