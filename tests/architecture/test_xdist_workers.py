"""Parallel workers are forked from a process that has imported the tests."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.timeouts import SECONDS

ROOT = Path(__file__).parents[2]
OPTIONS = "-q -p xdist -n 2 --dist loadfile -p no:cacheprovider --continue-on-collection-errors -c /dev/null"
CONFTEST = """
from tests import xdist_workers
from tests.xdist_schedule import Spreading
def pytest_xdist_setupnodes(config, specs):
    xdist_workers.fork(config, specs)
def pytest_xdist_make_scheduler(config, log):
    return Spreading(config, log)
"""
TESTS = """
import os
from pathlib import Path
HERE = Path(__file__).parent
(HERE / f"imported-{os.getpid()}").touch()
def test_one():
    (HERE / f"ran-{os.getpid()}").touch()
def test_two():
    (HERE / f"ran-{os.getpid()}").touch()
    assert os.environ["PYTEST_XDIST_WORKER"] == "gw0", "what it asserts is rewritten"
def test_three():
    os._exit(3)
"""


def test_tests_are_imported_once_and_fail_as_usual(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for number in range(2):
        (tmp_path / f"test_{number}.py").write_text(TESTS)
    (tmp_path / "test_broken.py").write_text("import no_such_module")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *shlex.split(f"{OPTIONS} --rootdir={tmp_path} {tmp_path}")],
        cwd=ROOT,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # loading plugins takes longer than these tests
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    imported, ran = (
        [each.name.partition("-")[2] for each in tmp_path.glob(f"{what}-*")] for what in ("imported", "ran")
    )
    assert len(imported) == 1 and len(ran) >= 2 and imported[0] not in ran
    assert "No module named 'no_such_module'" in run.stdout
    assert "AssertionError: what it asserts is rewritten" in run.stdout and "assert 'gw1' == 'gw0'" in run.stdout
    assert run.stdout.count("crashed while running") >= 2, run.stdout + run.stderr
