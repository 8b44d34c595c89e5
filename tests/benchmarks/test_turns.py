"""Two processes that work in turns: their order, their output, and one that ends early."""

import sys
from pathlib import Path

import pytest

from benchmarks.turns import alternate

SIDE = """
import json, sys
place, log, most = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number, _ in enumerate(sys.stdin):
    if number == most:
        sys.exit(3)
    with open(log, "a") as file:
        file.write("AB"[place])
    print(json.dumps({"s": 10.0 * place + number, "cpu_s": 1.0, "mib": 2.0}), flush=True)
"""


def commands(log: Path, most: int = 99) -> list[list[str]]:
    return [[sys.executable, "-S", "-c", SIDE, str(place), str(log), str(most)] for place in (0, 1)]


def test_neighbours_alternate_who_is_first_and_the_warm_up_is_left_out(tmp_path):
    ours, peer = alternate(commands(tmp_path / "log"), 3)
    assert (tmp_path / "log").read_text() == "BA" + "AB" + "BA" + "AB"
    assert [each["s"] for each in ours] == [1, 2, 3]
    assert [each["s"] for each in peer] == [11, 12, 13]


def test_a_side_that_ends_early_ends_the_measurement_with_its_status(tmp_path):
    with pytest.raises(SystemExit, match="ended with status 3"):
        alternate(commands(tmp_path / "log", most=2), 3)
