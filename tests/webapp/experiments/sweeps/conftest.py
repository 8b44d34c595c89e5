"""A run for sweeps, sweeps that are launched from it, and runs with results."""

import pytest

from webapp.experiments.launch import checks
from webapp.experiments.models import Run, Sweep, SweepRun
from webapp.experiments.sweeps import rounds, services
from webapp.experiments.sweeps.checking import Wish

from ..conftest import Trainer

RATES = {"path": "optim.lr", "values": [1e-4, 3e-4, 1e-3]}
LOSS = "eval/rubric_score"


@pytest.fixture
def wish(run):
    """The sweep that the researcher asks for. Keywords replace the defaults."""

    def _wish(**given) -> Wish:
        plain = {
            "recipe": run.recipe,
            "config": run.config,
            "dataset": checks.DatasetChoice(id=run.data.dataset_id),
            "axes": [RATES],
            "method": "grid",
            "seeds": 2,
            "at_once": 3,
            "source": run,
            "experiment": "rates",
        }
        return Wish(**(plain | given))

    return _wish


@pytest.fixture
def sweep(team, wish):
    """A sweep with its first trials launched."""

    def _sweep(membership=None, **given) -> Sweep:
        row = services.launch(membership or team.researcher, wish(**given))
        rounds.advance(row.pk)
        row.refresh_from_db()
        return row

    return _sweep


def runs(sweep: Sweep, trial: int) -> list[Run]:
    rows = SweepRun.objects.filter(trial__sweep=sweep, trial__number=trial).select_related("run").order_by("seed")
    return [row.run for row in rows]


def begin(run: Run) -> Trainer:
    Run.objects.filter(id=run.id).update(state="starting", ray_job_id=f"run-{run.id}-1", next_try_at=None)
    process = Trainer(run)
    running = process.event("state", state="running")
    assert process.post(running, begins=running["seq"]).status_code == 200
    return process


def measure(process: Trainer, step: int, value: float, key: str) -> None:
    assert process.post(process.event("metrics", step, values={key: value})).status_code == 200


def finish(run: Run, value: float | None, key: str) -> None:
    process = begin(run)
    begins = process.seq  # this attempt begins here
    if value is not None:
        measure(process, 4, value, key)
    assert process.post(process.event("state", 4, state="finished", summary={}), begins=begins).status_code == 200
