"""A few runs that differ in everything that the table reads."""

import pytest
from django.utils import timezone

from webapp.experiments.bulk import StepMetrics
from webapp.experiments.metrics import facts, series
from webapp.experiments.models import Run


@pytest.fixture
def make(launch):
    """`make(name, lr=1e-5, seed=0, state="finished", score=0.5)`: a run with a last value of eval/score, if one is given."""
    return run_maker(launch)


def run_maker(launch):
    def _make(
        name: str, *, state: str = "finished", scores=(), membership=None, experiment=None, seed=0, **optim
    ) -> Run:
        config = {"steps": 4, "seed": seed, **({"optim": optim} if optim else {})}
        run = launch(membership, name=name, config=config, experiment=experiment)
        Run.objects.filter(pk=run.pk).update(state=state)
        run.refresh_from_db()
        if scores:
            steps = [StepMetrics(step, timezone.now(), {"eval/score": score}) for step, score in enumerate(scores, 1)]
            facts.keep_metrics(run.experiment.workspace_id, run, series.of_steps(steps))
        return run

    return _make
