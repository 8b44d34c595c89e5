"""`make test-fast` leaves out tests that need the database, and tests that train."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import refuse_hidden_marks

ROOT = Path(__file__).parents[2]


def test_who_asks_for_the_database_is_marked_by_whatever_fixture(request, team):
    assert request.node.get_closest_marker("database")


def test_who_does_not_is_not(request):
    assert not request.node.get_closest_marker("database")


def test_what_it_leaves_out_is_there():
    told = subprocess.run(["make", "-n", "test-fast"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    left_out = re.findall(r"--ignore=(\S+)", told)
    assert "tests/trainer/loops" in left_out and all((ROOT / path).exists() for path in left_out)
    assert "not database" in told and "not slow" in told


def test_a_file_with_a_mark_that_its_text_does_not_name_is_refused(request):
    """The Makefile finds the files of the browser and of the stack by their text, and would never run this one."""
    refuse_hidden_marks([request.node])
    request.node.add_marker("browser")
    with pytest.raises(pytest.UsageError, match=r"into test_fast\.py \(browser\)"):
        refuse_hidden_marks([request.node])
