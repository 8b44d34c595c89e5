"""The run and the project whose access these tests try."""

import pytest

from tests.webapp.annotation.conftest import make_version as pairs
from tests.webapp.experiments.conftest import launch, model, run, version  # noqa: F401 - fixtures
from webapp.annotation.projects import services as projects


@pytest.fixture
def project(team):
    made = projects.create(team.researcher, name="Colours", kind="pairwise", dataset=pairs(team.owner))
    return projects.set_state(team.researcher, made, "open")
