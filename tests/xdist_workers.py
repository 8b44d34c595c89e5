"""Workers of xdist are forked from one process that has imported the tests, instead of each importing all of them. To import the tests takes
as long as to run hundreds of them, and twice as long in a new clone, where Python compiles them and pytest rewrites their asserts.
"""

import json
import shlex
from collections.abc import Iterable
from typing import Any

import pytest

from tests import fork_server

ARGUMENTS = "TESTS_TO_IMPORT"


def fork(config: pytest.Config, specs: Iterable[Any]) -> None:
    """Lets xdist start these workers as forks of a process that has imported the tests which the command line of `config` names."""
    told = {ARGUMENTS: json.dumps([str(each) for each in config.invocation_params.args])}
    command = shlex.join(fork_server.command("tests.xdist_worker", ("tests.imported_tests",), **told))
    for spec in specs:
        spec.python = command
