"""Parallel workers begin with the files that take longest."""

from pathlib import Path

from tests.spreading import APART, LONGEST, TOGETHER, Queue

ROOT = Path(__file__).parents[2]


def test_the_longest_files_are_taken_first_and_the_others_in_their_order():
    queue = Queue((file, {f"{file}::test": False}) for file in ("many", LONGEST[3], "some", LONGEST[1], "few"))
    taken = [queue.popitem(last=False) for _ in range(5)]
    assert [file for file, _ in taken] == [LONGEST[1], LONGEST[3], "many", "some", "few"]
    assert all(tests == {f"{file}::test": False} for file, tests in taken) and not queue


def test_the_files_are_there():
    assert all((ROOT / file).exists() for file in APART.union(LONGEST, TOGETHER))
