"""Rows of tables: values that JSON cannot represent, and headers that cannot be read."""

import io
import json
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from webapp.files.records import RowProblem
from webapp.files.rows import rows


def parquet(**columns: list) -> list:
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream)
    stream.seek(0)
    return [row for _, row in rows(stream, "table.parquet")]


def test_values_of_parquet_become_values_of_json() -> None:
    [row] = parquet(
        text=["é"],
        turns=[[{"role": "user", "content": "hi"}]],
        score=[float("nan")],
        scores=[[0.5, float("nan")]],
        at=[datetime(2026, 1, 2, 3, tzinfo=UTC)],
        day=[{"of": date(2026, 1, 2)}],
        price=[Decimal("1.50")],
    )
    assert row == {
        "text": "é",
        "turns": [{"role": "user", "content": "hi"}],
        "score": None,
        "scores": [0.5, None],
        "at": "2026-01-02T03:00:00+00:00",
        "day": {"of": "2026-01-02"},
        "price": "1.50",
    }


def test_bytes_are_refused_where_they_stand() -> None:
    found = parquet(text=["a", "b"], image=[{"bytes": b"\x89PNG"}, None])
    assert found == [
        RowProblem(1, "image", "holds bytes, which an example cannot hold; leave the column out"),
        {"text": "b", "image": None},
    ]


def test_a_column_named_twice_is_refused_before_one_hides_the_other() -> None:
    found = list(rows(io.BytesIO(b"prompt,chosen,prompt\na,b,c\n"), "table.csv"))
    assert found == [(1, RowProblem(1, "prompt", "the header names this column twice, and only one could be read"))]
    assert list(rows(io.BytesIO(b"prompt,,\na,,\n"), "table.csv")) == [(2, {"prompt": "a", "": ""})]


def test_a_header_that_is_not_utf8_is_refused_because_no_page_could_show_its_names() -> None:
    utf16 = "prompt,chosen\nä?,ö\n".encode("utf-16")
    assert list(rows(io.BytesIO(utf16), "table.csv")) == [
        (1, RowProblem(1, "", "the name of column 1 is not UTF-8 text"))
    ]
    latin = "prompt,größe\na,b\n".encode("latin-1")
    assert list(rows(io.BytesIO(latin), "table.csv")) == [
        (1, RowProblem(1, "", "the name of column 2 is not UTF-8 text"))
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"samples": [{"id": number, "text": "x" * 1_000} for number in range(8_000)]}, "longer than 8 MB"),
        ({"text": "x" * 9_000_000}, "longer than 8 MB"),
        (b'{\n"a": nope,\n"b": "' + b"x" * 8_000_000 + b'"}', "not JSON from here on: Expecting value at column 6"),
    ],
)
def test_an_object_that_is_too_long_is_not_called_malformed(content: Any, says: str) -> None:
    text = content if isinstance(content, bytes) else json.dumps(content, indent=1).encode()
    [(line, problem)] = rows(io.BytesIO(text), "log.json")
    assert line == 1 and isinstance(problem, RowProblem) and says in problem.reason


def test_an_archive_inside_another_one_is_one_problem_and_not_one_for_each_line() -> None:
    """A folder of Inspect's logs holds several."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as out:
        out.writestr("a.json", "line\n" * 100)
    [(line, problem)] = rows(io.BytesIO(packed.getvalue()), "2026-11-30.eval")
    assert line == 1 and isinstance(problem, RowProblem) and "import it by itself" in problem.reason


def test_a_row_of_a_table_is_named_by_the_line_where_it_starts() -> None:
    table = b'question,answer\n"Q1","two\nlines"\n\n"Q2 over\ntwo lines"\nQ3,a,b\nQ4,"never closed\nQ5,a\n'
    assert list(rows(io.BytesIO(table), "table.csv")) == [
        (2, {"question": "Q1", "answer": "two\nlines"}),
        (5, RowProblem(5, "answer", "the row ends before this column")),
        (7, RowProblem(7, "", "more cells than the header has columns: 1 too many")),
        (8, RowProblem(8, "", "not CSV from here on: a quotation mark that opens a cell of this row is never closed")),
    ]
