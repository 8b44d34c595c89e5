"""A spreadsheet that opens an export runs nothing. Names and labels come from people, and cells that begin like a formula are quoted."""

import json
import re
from pathlib import Path

import pytest

from webapp.core.text.spreadsheets import guarded

STATIC = Path(__file__).parents[3] / "webapp" / "static" / "js"
FORMULAS = ["=1+1", "+1", "@SUM(A1)", "-cmd|' /C calc'!A0", "\t=1", "\r=1", "\n=1", "\uff1d1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_answers_are_quoted(text):
    assert guarded(text) == f"'{text}"
    assert guarded(-1) == -1


@pytest.mark.browser
def test_what_the_pages_write_is_quoted(chromium):
    page = chromium.new_page()
    page.route("http://t/**", lambda route: route.fulfill(body="<p>", content_type="text/html"))
    page.goto("http://t/")
    module = "data:text/javascript," + "".join(f"%{byte:02x}" for byte in (STATIC / "csv.js").read_bytes())
    rows = [["step", *FORMULAS, 'a "name"'], [-1, 0.5, *[""] * 8]]
    got = page.evaluate(f"async (rows) => (await import({json.dumps(module)})).csv(rows)", rows)
    quoted = [f'"\'{text}"' for text in FORMULAS]
    assert got == ",".join(['"step"', *quoted, '"a ""name"""']) + "\r\n" + ",".join(["-1", "0.5", *['""'] * 8])


def test_every_csv_of_the_pages_is_made_by_that_function():
    """Another `join(",")` of cells was the reason why charts wrote labels without quoting."""
    found = [
        path.name
        for path in STATIC.rglob("*.js")
        if path.name != "csv.js" and re.search(r"text/csv", path.read_text()) and "csv([" not in path.read_text()
    ]
    assert found == []
