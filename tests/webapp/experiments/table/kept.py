"""Fixtures of a module whose tests all begin with the same runs: these are made once, by the module's `begin(make, cast)`. Each test gets
copies of them.
"""

from copy import deepcopy

import pytest
from django.test import override_settings

from tests.cast import make_cast
from tests.webapp.experiments.conftest import launching, make_model, make_version
from tests.webapp.experiments.table.conftest import making_runs

__all__ = ["cast", "kept", "mine", "model", "version"]


@pytest.fixture(scope="module")
def kept(making, request):
    with making(), override_settings(MAX_RUNNING_RUNS=None):
        cast = make_cast()
        version, model = make_version(cast.owner), make_model(cast)
        runs = request.module.begin(making_runs(launching(cast, version)), cast)
    return {"cast": cast, "version": version, "model": model, "runs": runs}


@pytest.fixture
def mine(db, kept):
    return deepcopy(kept)


@pytest.fixture
def cast(mine):
    return mine["cast"]


@pytest.fixture
def version(mine):
    return mine["version"]


@pytest.fixture
def model(mine):
    return mine["model"]
