"""Rows in COPY's binary form are read back from the database without a change."""

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from webapp.datasets.encoding import copy_format

TYPES = {
    "a": "text",
    "b": "int",
    "c": "bigint",
    "d": "double precision",
    "e": "varchar[]",
    "f": "bytea",
    "g": "varchar",
}
text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
cells = st.tuples(
    st.one_of(st.none(), text),
    st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)),
    st.integers(-(2**63), 2**63 - 1),
    st.one_of(st.none(), st.floats(allow_nan=False)),
    st.lists(text, max_size=3),
    st.binary(max_size=30),
    st.one_of(st.none(), text),
)


class RoundTrip(TestCase):
    @settings(max_examples=50, deadline=None)
    @given(st.lists(cells, max_size=4))
    def test_what_is_written_is_read_back(self, rows):
        write = copy_format.writer(list(TYPES.values()))
        columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
        data = b"".join(map(write, rows))
        with connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS copied; CREATE TEMPORARY TABLE copied (n serial, {columns})")
            with cursor.copy("COPY copied (a, b, c, d, e, f, g) FROM STDIN (FORMAT BINARY)") as to:
                to.write(copy_format.HEADER + data + copy_format.TRAILER)
            cursor.execute("SELECT a, b, c, d, e, f, g FROM copied ORDER BY n")
            assert cursor.fetchall() == rows


def test_more_values_than_are_kept_are_written_all_the_same():
    write = copy_format.writer(["int", "varchar"])
    for _ in range(2):
        for number in range(copy_format.KNOWN + 3):
            text = str(number).encode()
            assert write((number, str(number)))[2:] == copy_format.cell(number) + copy_format.sized(text)


def test_half_a_character_is_refused():
    with pytest.raises(ValueError, match="surrogates"):
        copy_format.writer(["text"])(["\ud800"])
