"""Fixtures of a module whose tests all begin with the same runs: these are made once, by the module's `begin(make, team)`. Each test gets
copies of them.
"""

from copy import deepcopy

import pytest
from django.test import override_settings

from tests.team import make_team
from tests.webapp.experiments.conftest import launching, make_model, make_version
from tests.webapp.experiments.table.conftest import making_runs

__all__ = ["team", "kept", "mine", "model", "version"]


@pytest.fixture(scope="module")
def kept(making, request):
    with making(), override_settings(MAX_RUNNING_RUNS=None):
        team = make_team()
        version, model = make_version(team.owner), make_model(team)
        runs = request.module.begin(making_runs(launching(team, version)), team)
    return {"team": team, "version": version, "model": model, "runs": runs}


@pytest.fixture
def mine(db, kept):
    return deepcopy(kept)


@pytest.fixture
def team(mine):
    return mine["team"]


@pytest.fixture
def version(mine):
    return mine["version"]


@pytest.fixture
def model(mine):
    return mine["model"]
