"""Importing this module imports the tests that the variable names: see `tests.xdist_workers`."""

import gc
import json
import os
import sys
from contextlib import suppress
from importlib import import_module

import pytest

from tests.pages import compile_templates
from tests.xdist_workers import ARGUMENTS

LATE = ("scipy.optimize", "scipy.sparse", "scipy.stats")


class Importer:
    """Imports modules of tests and makes no tests of them."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        waiting = list(session.perform_collect(genitems=False))
        while waiting:
            node = waiting.pop()
            if isinstance(node, pytest.Module):
                with suppress(BaseException):  # the worker imports it again, and says what is wrong
                    node.obj  # noqa: B018  imports it
            elif isinstance(node, pytest.Collector):
                waiting += node.ihook.pytest_make_collect_report(collector=node).result or ()
        return True


def load() -> None:
    """The fork server has a line to say on its output, so pytest must be silent there."""
    kept, silent = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    try:
        pytest.main([*json.loads(os.environ.pop(ARGUMENTS)), "-n0"], plugins=[Importer()])
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(silent)
    # each worker would do this at the first use
    if "webapp.urls" in sys.modules:
        compile_templates()
    for name in LATE:
        import_module(name)
    if "tests.webapp.security.test_scim" in sys.modules:
        import_module("webapp.identity.scim.views")
    gc.collect()
    gc.freeze()


load()
