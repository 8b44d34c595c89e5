"""Two shared runs, and other runs that are not shared."""

from datetime import UTC, datetime

import pytest

from tests.webapp.experiments.conftest import make_version
from webapp.accounts.workspaces.services import allow_share_links
from webapp.experiments.bulk import StepMetrics
from webapp.experiments.launch import checks, services
from webapp.experiments.metrics import facts, series
from webapp.experiments.models import MetricPoint, Run, ShareLink
from webapp.experiments.sharing import services as sharing
from webapp.inference.models import RegisteredModel

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def set_score(run: Run, key: str, score: float) -> Run:
    facts.keep_metrics(run.experiment.workspace_id, run, series.of_steps([StepMetrics(1, NOON, {key: score})]))
    MetricPoint.objects.create(run=run, key=key, step=1, value=score, time=NOON)
    return run


@pytest.fixture
def allowed(team):
    allow_share_links(team.owner, True)


@pytest.fixture
def two(launch) -> list[Run]:
    """Two runs of one config with the seeds 0 and 1."""
    runs = [launch(name=f"ours {seed}", config={"steps": 4, "seed": seed}) for seed in (0, 1)]
    return [set_score(run, "eval/score", 0.25 + run.config["seed"]) for run in runs]


@pytest.fixture
def secret_run(launch) -> Run:
    """A run of the same workspace that is not shared."""
    return set_score(launch(name="kept back", config={"steps": 5}), "eval/kept_back", 0.777)


@pytest.fixture
def elsewhere(team) -> Run:
    """A run of another workspace."""
    owner = team.outsider
    version = make_version(owner, "foreign", digest="e" * 64)
    RegisteredModel.objects.create(workspace=owner.workspace, name="smollm2-135m-instruct", source="local", path="/m/o")
    choice = checks.DatasetChoice(id=version.dataset_id)
    run = services.launch(owner, recipe="policy", config={"steps": 6}, dataset=choice, name="far away")
    return set_score(run, "eval/far_away", 0.888)


@pytest.fixture
def link(team, allowed, two) -> tuple[ShareLink, str]:
    """A link that the researcher made, as (row, secret)."""
    return sharing.share(team.researcher, two, "For the paper")
