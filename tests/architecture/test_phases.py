"""Parts of the tests run at the same time. Every failure is reported, and a failure by chance is called flaky."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from scripts import phases

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = """
good:
\t@echo all is well
bad:
\t@echo something broke; exit 3
slow:
\t@touch slow-began; while [ ! -e quick-ran ]; do sleep 0.05; done; echo slow ends
quick:
\t@while [ ! -e slow-began ]; do sleep 0.05; done; touch quick-ran
nice:
\t@nice
works:
\t@timeout 60 {python} -c "import time; all(time.process_time() < 1.2 for _ in iter(int, 1))"
tests:
\t@{python} -m pytest -q -p xdist -n 1 -c pytest.ini --rootdir . test_it.py
"""
SUITE = """
from pathlib import Path

def test_well():
    with Path("runs").open("a") as file:
        file.write("well ")

def test_chance():
    with Path("runs").open("a") as file:
        file.write("chance ")
    assert Path("runs").read_text().count("chance") > {failures}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(phases, "ROOT", tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # loading plugins takes longer than these tests
    (tmp_path / "Makefile").write_text(MAKEFILE.format(python=sys.executable))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def test_a_part_that_fails_keeps_no_other_from_running_and_decides(folder, capsys):
    assert phases.main(["bad,good"]) == 1
    said = capsys.readouterr().out
    assert "something broke\n" in said and "== bad failed (2)" in said  # the exit status of make
    assert "all is well\n" in said and "== good passed" in said
    assert phases.main(["good"]) == 0


@pytest.mark.parametrize("lanes", [["slow", "quick"], ["quick", "slow"]])
def test_lanes_run_beside_each_other(folder, lanes):
    """Each part waits for the other, so they would never end if they ran one after the other."""
    assert phases.main(lanes) == 0


def test_all_lanes_but_the_first_yield(folder, capsys):
    ours = os.nice(0)  # this test itself may run in a lane that yields
    assert phases.main(["good,nice"]) == 0
    assert f"output\n{ours}\n" in capsys.readouterr().out
    assert phases.main(["good", "nice"]) == 0
    assert f"output\n{min(ours + 5, 19)}\n" in capsys.readouterr().out


def test_the_summary_has_the_processor_time_of_all_that_a_part_started(folder, capsys):
    assert phases.main(["works", "good"]) == 0
    works, good = capsys.readouterr().out.splitlines()[-2:]
    assert works.split()[1] == good.split()[1] == "passed"
    assert works.split()[-1] in ("0:01", "0:02") and good.split()[-1] == "0:00"


def test_a_part_that_cannot_start_has_failed(folder, monkeypatch):
    def broken(self, *options):
        raise OSError("no more processes")

    monkeypatch.setattr(phases.MakePhase, "run", broken)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    assert phases.main(["good"]) == 1


@pytest.mark.parametrize(
    ("failures", "options", "code"), [(1, ["--again"], 0), (2, ["--again"], 1), (1, [], 1), (0, ["--again"], 0)]
)
def test_a_test_that_failed_by_chance_is_run_once_more_and_named(folder, capsys, failures, options, code):
    (folder / "test_it.py").write_text(SUITE.format(failures=failures))
    assert phases.main([*options, "tests"]) == code
    runs = (folder / "runs").read_text().split()
    assert runs == ["well", "chance"] + ["chance"] * (options == ["--again"] and failures > 0)
    flaky = "FLAKY: test_it.py::test_chance failed, and passed by itself"
    assert (flaky in capsys.readouterr().out) == (options == ["--again"] and failures == 1)


def test_an_error_in_the_log_of_a_test_is_not_another_test(folder, capsys):
    (folder / "test_it.py").write_text(
        "import logging\nfrom pathlib import Path\n\ndef test_it():\n    logging.getLogger('lab').error('no worker')\n"
        "    there = Path('ran').exists()\n    Path('ran').touch()\n    assert there\n"
    )
    assert phases.main(["--again", "tests"]) == 0
    shown = capsys.readouterr().out
    assert "ERROR    lab:" in shown and "FLAKY: test_it.py::test_it failed, and passed by itself" in shown


def test_a_test_whose_tidying_up_fails_too_is_one_test(folder, capsys):
    (folder / "test_it.py").write_text(
        "import pytest\nfrom pathlib import Path\n\n@pytest.fixture\ndef page():\n    yield\n    assert Path('ran').exists()\n\n"
        "def test_page(page):\n    assert Path('ran').exists()\n\ndef test_last():\n    Path('ran').touch()\n"
    )
    assert phases.main(["--again", "tests"]) == 0
    said = capsys.readouterr().out
    assert "1 failed, 1 passed, 1 error" in said
    assert "FLAKY: test_it.py::test_page failed, and passed by itself" in said


def test_tests_whose_common_fixture_failed_by_chance_are_one_failure(folder, capsys):
    (folder / "test_it.py").write_text(
        "import pytest\nfrom pathlib import Path\n\n@pytest.fixture(scope='module')\ndef made():\n    there = Path('ran').exists()\n"
        "    Path('ran').touch()\n    assert there\n\n"
        "@pytest.mark.parametrize('n', range(6))\ndef test_n(made, n):\n    pass\n"
    )
    assert phases.main(["--again", "tests"]) == 0
    said = capsys.readouterr().out
    assert "6 errors" in said and "FLAKY: test_it.py::test_n[5] failed, and passed by itself" in said


def test_more_than_a_few_failures_are_no_chance(folder, capsys):
    (folder / "test_it.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_n(n):\n    open('runs', 'a').write('x')\n    assert 0\n"
    )
    assert phases.main(["--again", "tests"]) == 1
    assert (folder / "runs").read_text() == "x" * (phases.A_FEW + 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_reaches_what_runs_and_is_waited_for(folder, number):
    """The part tidies up for a while, and its status comes after that."""
    long = "long:\n\t@trap 'sleep 0.3; touch tidied; exit 1' INT; touch began; while :; do sleep 0.05; done\n"
    (folder / "Makefile").write_text(long)
    program = f"import pathlib, sys; from scripts import phases; phases.ROOT = pathlib.Path({str(folder)!r}); "
    program += "sys.exit(phases.main(['long']))"

    def hear() -> None:
        """A process that a shell starts in the background ignores Ctrl-C, and so do its children."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    running = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, preexec_fn=hear)
    while not (folder / "began").exists():
        time.sleep(0.02)
    running.send_signal(number)
    assert running.wait() == 130
    assert (folder / "tidied").exists()
