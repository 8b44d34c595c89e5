"""Every term of docs/glossary.md leads to a file or a page that exists."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| (?P<term>[^|]+) \| (?P<meaning>[^|]+) \| (?P<where>[^|]+) \|$", re.MULTILINE)
PLACE = re.compile(r"`([\w./]+)`|\]\(([\w./-]+)\)")
TERMS = [row for row in ROW.finditer((DOCS / "glossary.md").read_text()) if row["term"] not in ("term", "---")]


def test_it_holds_the_terms_that_are_easily_taken_for_others():
    named = " ".join(row["term"] for row in TERMS)
    assert len(TERMS) >= 35
    assert all(word in named for word in ("policy", "recipe", "protocol", "claim", "schedule"))


@pytest.mark.parametrize("row", TERMS, ids=lambda row: row["term"])
def test_a_term_says_what_it_means_and_where_it_is(row):
    places = PLACE.findall(row["where"])
    assert places and row["meaning"].endswith((".", ")."))
    for path, page in places:
        there = DOCS.parent / path if path else DOCS / page
        assert there.is_file(), f"{row['term']}: {path or page} is not there"
