"""Fixtures of a module whose tests all begin with the same runs: these are made once, by the module's `begin(make, team)`. Each test gets
copies of them.
"""

from copy import deepcopy

import pytest
from django.test import override_settings

from tests.team import make_team
from tests.webapp.experiments.conftest import make_model, make_version, run_launcher
from tests.webapp.experiments.table.conftest import run_maker

__all__ = ["team", "module_runs", "runs_copy", "model", "version"]


@pytest.fixture(scope="module")
def module_runs(module_rows, request):
    with module_rows(), override_settings(MAX_RUNNING_RUNS=None):
        team = make_team()
        version, model = make_version(team.owner), make_model(team)
        runs = request.module.begin(run_maker(run_launcher(team, version)), team)
    return {"team": team, "version": version, "model": model, "runs": runs}


@pytest.fixture
def runs_copy(db, module_runs):
    return deepcopy(module_runs)


@pytest.fixture
def team(runs_copy):
    return runs_copy["team"]


@pytest.fixture
def version(runs_copy):
    return runs_copy["version"]


@pytest.fixture
def model(runs_copy):
    return runs_copy["model"]
