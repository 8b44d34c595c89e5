"""docs/changes.md says which files a change touches. The files exist, they contain the named parts, and the counts are right."""

import re
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (?P<change>[^|]+) \| (?P<count>\d+) \| (?P<which>[^|]+) \|$", re.MULTILINE)
FILE = re.compile(r"`(?P<path>[^`]+)`(?: \((?P<name>[^)]+)\))?")
MOST = 3  # the number of files in the median change


@dataclass(frozen=True)
class Change:
    count: int
    files: tuple[tuple[str, str], ...]  # the path, and a text that the file contains or ""


def listed() -> dict[str, Change]:
    text = (ROOT / "docs" / "changes.md").read_text()
    return {
        row["change"]: Change(
            int(row["count"]), tuple((file["path"], file["name"] or "") for file in FILE.finditer(row["which"]))
        )
        for row in ROW.finditer(text)
    }


CHANGES = listed()


def test_there_are_twenty_changes_or_more_and_the_median_is_small():
    assert len(CHANGES) >= 20
    assert median(change.count for change in CHANGES.values()) <= MOST


@pytest.mark.parametrize("change", CHANGES)
def test_the_files_of_a_change_are_counted_and_there(change):
    found = CHANGES[change]
    assert found.count == len(set(found.files)) == len(found.files)
    for path, name in found.files:
        if "NAME" in path:
            assert (ROOT / path).parent.is_dir(), path
            assert not name
        else:
            assert name in (ROOT / path).read_text(), f"{path} has no {name}"
