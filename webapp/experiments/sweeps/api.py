"""Sweeps over the API: launch, watch, stop, continue, add trials. Reading needs the role reviewer, changing anything researcher."""

from dataclasses import asdict
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Path, Router, Status
from pydantic import Field

from trainer.config import ConfigInvalid, FieldProblem
from webapp.accounts.access import require
from webapp.accounts.models import Membership
from webapp.core.database.paging import Limit, page
from webapp.core.problems import Conflict, Invalid

from .. import access, queries
from ..launch.schemas import choice
from ..launch.services import merged
from ..models import Sweep, SweepTrial
from ..parameters import LaunchKey
from . import bases, contour, failed_runs, reading, services
from . import schemas as s
from .checking import Wish

router = Router(tags=["sweeps"])
SweepId = Path[Annotated[int, Field(ge=1, lt=2**63)]]
TAKEN = ("method", "metric", "better", "seeds", "trials", "at_once", "seed", "first_rung", "factor", "together", "name")


@router.get("/sweeps", response=s.SweepList, summary="Sweeps, newest first")
def sweeps(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    membership = access.may_read(require(request))
    found = page(queries.sweeps(membership.workspace_id), cursor, limit)
    return {"items": [_sweep(row) for row in found.items], "next": found.next}


@router.post("/sweeps", response={201: s.SweepStandingOut}, summary="Launch a sweep")
def launch(request: HttpRequest, payload: s.SweepIn, idempotency_key: LaunchKey = None) -> Status[dict[str, Any]]:
    """422 with every wrong field; then nothing is launched. Workers launch the trials, some at a time."""
    membership = access.may_write(require(request))
    sweep = services.launch(membership, _wish(membership, payload), idempotency_key)
    return Status(201, _standing(membership, sweep.pk))


@router.get("/sweeps/{sweep_id}", response=s.SweepStandingOut, summary="The state of a sweep, and its best trial")
def sweep(request: HttpRequest, sweep_id: SweepId) -> dict[str, Any]:
    return _standing(require(request), sweep_id)


@router.get("/sweeps/{sweep_id}/trials", response=s.SweepTrialList, summary="Trials of a sweep, in their order")
def trials(request: HttpRequest, sweep_id: SweepId, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    row = access.sweep_read(require(request), sweep_id)
    found = page(row.trials.all(), cursor, limit, order="number")
    shown = {each.trial.pk: each for each in reading.standing(row).rows}
    return {"items": [_trial(shown[each.pk]) for each in found.items if each.pk in shown], "next": found.next}


@router.get("/sweeps/{sweep_id}/contour", response=s.SweepContourOut, summary="The metric over two keys of a sweep")
def contour_of(request: HttpRequest, sweep_id: SweepId, x: str = "", y: str = "") -> dict[str, Any]:
    """`x` and `y` are keys of the sweep whose values are numbers; without them, the first two are taken. 409 for a sweep without two such keys."""
    found = reading.standing(access.sweep_read(require(request), sweep_id))
    sides = contour.numeric_axes(found.axes)
    if len(sides) < 2:
        raise Conflict("A contour needs two keys of the sweep that have more than one value, all of them numbers.")
    wrong = {
        name: f"must be one of {', '.join(sides)}" for name, path in (("x", x), ("y", y)) if path and path not in sides
    }
    if x and x == y:
        wrong["y"] = "must be another key than x"
    if wrong:
        raise Invalid("These keys cannot be the sides of a contour.", wrong)
    x = x or next(path for path in sides if path != y)
    y = y or next(path for path in sides if path != x)
    return asdict(contour.make_contour(sides[x], sides[y], found.known))


@router.post("/sweeps/{sweep_id}/trials", response=s.SweepStandingOut, summary="Add trials")
def add_trials(request: HttpRequest, sweep_id: SweepId, payload: s.SweepTrialsIn) -> dict[str, Any]:
    """Works for a sweep that is over, too. 409 for a grid, which is complete."""
    membership = require(request)
    services.add(membership, access.sweep_write(membership, sweep_id), payload.trials)
    return _standing(membership, sweep_id)


@router.post("/sweeps/{sweep_id}/stop", response=s.SweepStandingOut, summary="Stop a sweep and its runs")
def stop(request: HttpRequest, sweep_id: SweepId) -> dict[str, Any]:
    """Harmless if it is over. Its runs give up their present steps and save, each with a checkpoint."""
    membership = require(request)
    services.stop(membership, access.sweep_write(membership, sweep_id))
    return _standing(membership, sweep_id)


@router.post("/sweeps/{sweep_id}/resume", response=s.SweepStandingOut, summary="Continue a stopped sweep")
def resume(request: HttpRequest, sweep_id: SweepId) -> dict[str, Any]:
    """Launches the trials that are left. Stopped runs stay stopped; each can be resumed by itself."""
    membership = require(request)
    services.resume(membership, access.sweep_write(membership, sweep_id))
    return _standing(membership, sweep_id)


@router.post(
    "/sweeps/{sweep_id}/failed/resume", response=s.SweepRunsResumedOut, summary="Resume the failed runs of a sweep"
)
def resume_failed(request: HttpRequest, sweep_id: SweepId) -> dict[str, Any]:
    """Each continues from its last checkpoint, or begins again. `refused` has the others with the reason: a limit that is used up, a config
    that is no longer valid, a trial that was stopped early. A sweep that has finished is under way again. A second request finds no failed run.
    409 while the sweep is stopping, or if it ended before all of its trials were launched."""
    membership = require(request)
    return asdict(failed_runs.resume_failed(membership, access.sweep_write(membership, sweep_id)))


def _wish(membership: Membership, payload: s.SweepIn) -> Wish:
    base = _base(membership, payload)
    given = {name: getattr(payload, name) for name in TAKEN} | {"limits": payload.limits.limits()}
    axes: list[Any] = [axis.model_dump() for axis in payload.axes]
    if base is None:
        missing = [name for name in ("recipe", "dataset") if getattr(payload, name) is None]
        if missing or payload.recipe is None or payload.dataset is None:
            raise ConfigInvalid([FieldProblem(name, "give a value, or name a run or a sweep") for name in missing])
        return Wish(
            payload.recipe, payload.config, choice(payload.dataset), axes, experiment=payload.experiment, **given
        )
    if payload.recipe not in (None, base.recipe):
        raise Invalid(f"This {base.kind} has another recipe.", {"recipe": f"leave it out, or write {base.recipe!r}"})
    said = payload.model_fields_set
    return Wish(
        recipe=base.recipe,
        config=merged(base.config, payload.config),
        dataset=choice(payload.dataset) if payload.dataset is not None else base.dataset,
        axes=axes if "axes" in said else [axis.json() for axis in base.axes],
        source=base.run,
        experiment=payload.experiment or base.experiment,
        **(given | {name: value for name, value in base.search.items() if name not in said}),
    )


def _base(membership: Membership, payload: s.SweepIn) -> bases.SweepBase | None:
    if payload.run is not None and payload.sweep is not None:
        raise Invalid("A sweep starts from one thing.", {"sweep": "name a run or a sweep, not both"})
    if payload.sweep is not None:
        return bases.of_sweep(access.sweep_write(membership, payload.sweep))
    return bases.of_run(access.run_write(membership, payload.run)) if payload.run is not None else None


def _standing(membership: Membership, sweep_id: int) -> dict[str, Any]:
    row = access.sweep_read(membership, sweep_id)
    best = reading.standing(row).best
    return {**_sweep(row), "best": _trial(best) if best else None}


def _sweep(row: Sweep) -> dict[str, Any]:
    same = ("id", "name", "state", "state_reason", "recipe", "axes", "method", "metric", "seeds", "at_once", "seed")
    return {
        **{
            name: getattr(row, name)
            for name in (*same, "first_rung", "factor", "together", "limits", "created_at", "ended_at")
        },
        "experiment": row.experiment.name,
        "run": row.source_id,
        "better": "higher" if row.higher else "lower",
        "trials": row.wanted,
        "launched": row.trial_count,  # type: ignore[attr-defined]
        "over": row.over_count,  # type: ignore[attr-defined]
    }


def _trial(row: reading.TrialRow) -> dict[str, Any]:
    early = row.early if row.trial.state == SweepTrial.State.PRUNED else None  # else it came to its end all the same
    value, step = early or (None, None)
    return {
        "number": row.trial.number,
        "state": row.state,
        "values": row.trial.values,
        "estimate": {name: getattr(row.estimate, name) for name in ("value", "low", "high", "n", "missing")},
        "stopped_at": step,
        "value_there": value,
        "problem": row.trial.problem,
        "runs": [
            {
                "run": each.run.pk,
                "seed": each.seed,
                "state": each.run.state,
                "state_reason": each.run.state_reason,
                "value": each.value,
            }
            for each in row.runs
        ],
    }
