"""A report of the researcher's, and runs for its blocks."""

import pytest

from tests.webapp.experiments.conftest import launch, model, places_enough, version  # noqa: F401 - fixtures
from webapp.reports import services

CHART = "```chart\nmetric: reward/mean\nruns: {run}\n```"


@pytest.fixture
def report(cast):
    return services.create(cast.researcher, "What we saw", "## Words\nSeen.")
