"""A report of the researcher, and runs for its blocks."""

import pytest
from django.utils import timezone

from tests.webapp.experiments.conftest import launch, model, places_enough, version  # noqa: F401 - fixtures
from webapp.experiments import table_facts
from webapp.experiments.models import MetricPoint, Rollout
from webapp.reports import services

CHART = "```chart\nmetric: reward/mean\nruns: {run}\n```"


@pytest.fixture
def report(team):
    return services.create(team.researcher, "What we saw", "## Words\nSeen.")


@pytest.fixture
def seeds(team, launch):  # noqa: F811
    """Two runs that differ only in their seed, with three points each and a last value, and a rollout of the first."""
    made = [launch(config={"steps": 60, "seed": seed}) for seed in (0, 1)]
    for place, run in enumerate(made):
        values = [0.1 + place, 0.2 + place, 0.3 + place]
        at = timezone.now()
        MetricPoint.objects.bulk_create(
            [
                MetricPoint(run=run, step=i + 1, key="reward/mean", value=value, time=at)
                for i, value in enumerate(values)
            ]
        )
        fact = table_facts.Fact("metric", "reward/mean", number=values[-1], low=values[0], high=values[-1], step=3)
        table_facts.keep(team.workspace.pk, run.pk, [fact])
    Rollout.objects.create(
        run=made[0], step=2, phase="train", group=3, index=1, example_key="e0", reward=0.75, content=RECORD
    )
    return made


RECORD = {
    "prompt": "Name a colour <b>",
    "response": "Red, as ever.",
    "criteria": [
        {"text": "Names a colour", "points": 3, "kind": "hard", "verdict": {"met": True, "note": "It says red."}},
        {"text": "Apologises", "points": -4, "kind": "hard", "verdict": {"met": None}},
    ],
    "parts": [{"name": "rubric", "value": 0.75, "shadow": False}, {"name": "length", "value": None, "shadow": True}],
}
