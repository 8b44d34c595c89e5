"""docs/architecture.md walks through the code: its files and names exist, and it says when it enters a room again."""

import re
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WALK = re.compile(r"^## (?P<title>.+)$\n(?P<text>(?:(?!^## ).*\n?)*)", re.MULTILINE)
STEP = re.compile(r"^\| (?P<step>[^|]+) \| `(?P<path>[^`]+)`(?: \((?P<name>\w+)\))? \|$", re.MULTILINE)
PATH = re.compile(r"`((?:webapp|trainer|workers|tests)/[\w./-]+)`")
AGAIN = "(*again*)"

PAGE = (ROOT / "docs" / "architecture.md").read_text()
WALKS = {walk["title"]: list(STEP.finditer(walk["text"])) for walk in WALK.finditer(PAGE)}


def rows(text: str) -> int:
    return sum(line.startswith("| ") for line in text.splitlines())


def test_the_page_has_four_walks_and_every_row_is_read():
    assert len(WALKS) == 4
    heads = 2 * len(WALKS)  # without the head of each table and the rule below it
    assert rows(PAGE) == heads + sum(map(len, WALKS.values()))


@pytest.mark.parametrize("title", WALKS)
def test_files_and_names_of_a_walk_are_there(title):
    for step in WALKS[title]:
        text = (ROOT / step["path"]).read_text()
        if name := step["name"]:
            assert re.search(rf"^\s*(?:(?:async )?def|class) {name}\b|\b{name}\(", text, re.MULTILINE), step[0]


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_enters_each_room_once_or_says_that_it_comes_back(title):
    entered = [list(steps) for _, steps in groupby(WALKS[title], key=lambda step: Path(step["path"]).parent)]
    seen = set()
    for steps in entered:
        room = Path(steps[0]["path"]).parent
        assert (room in seen) == (AGAIN in steps[0]["step"]), f"{room}: {steps[0]['step']}"
        seen.add(room)


def test_what_the_text_names_is_there():
    for path in PATH.findall(PAGE):
        assert (ROOT / path).exists(), path
