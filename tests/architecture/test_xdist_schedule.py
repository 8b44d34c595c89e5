"""Parallel workers begin with the files that take longest."""

import os
import subprocess
import sys
from pathlib import Path

from tests.timeouts import SECONDS
from tests.xdist_schedule import APART, LONGEST, TOGETHER, Queue

ROOT = Path(__file__).parents[2]


def test_the_longest_files_are_taken_first_and_the_others_in_their_order():
    queue = Queue((file, {f"{file}::test": False}) for file in ("many", LONGEST[3], "some", LONGEST[1], "few"))
    taken = [queue.popitem(last=False) for _ in range(5)]
    assert [file for file, _ in taken] == [LONGEST[1], LONGEST[3], "many", "some", "few"]
    assert all(tests == {f"{file}::test": False} for file, tests in taken) and not queue


def test_so_are_the_tests_of_a_long_file_that_is_spread():
    apart = [f"{LONGEST[0]}::test_{name}" for name in "ab"]
    queue = Queue((unit, {}) for unit in ("many", apart[0], LONGEST[1], apart[1]))
    assert LONGEST[0] in APART
    assert [queue.popitem(last=False)[0] for _ in range(4)] == [*apart, LONGEST[1], "many"]


def test_the_files_are_there():
    files = APART.union(set(LONGEST) - TOGETHER.keys(), *TOGETHER.values())
    assert all((ROOT / file).exists() for file in files)
    assert sum(map(len, TOGETHER.values())) == len(set().union(*TOGETHER.values()) - APART - set(LONGEST))


def test_a_worker_that_dies_takes_only_its_own_test_with_it(tmp_path: Path) -> None:
    """A worker dies, for example, if a test runs for more than ten minutes. The other tests continue, and the run ends."""
    (tmp_path / "conftest.py").write_text(
        "from tests.xdist_schedule import Spreading\n"
        "def pytest_xdist_make_scheduler(config, log):\n"
        "    return Spreading(config, log)\n"
    )
    for number in range(8):
        (tmp_path / f"test_{number}.py").write_text("def test_it(): pass\n")
    (tmp_path / "test_last.py").write_text("import os\ndef test_it(): os._exit(3)\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "xdist",
        "-n",
        "1",
        "--dist",
        "loadfile",
        "-p",
        "no:cacheprovider",
    ]
    run = subprocess.run(
        [*command, "-c", "/dev/null", f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # loading plugins takes longer than these tests
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert "1 failed, 8 passed" in run.stdout, run.stdout + run.stderr
