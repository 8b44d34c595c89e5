"""A packed array is to the database what the driver's own list is, also where values are missing, not finite or outside ASCII."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import DataError

from webapp.core.database import packed_arrays, prepared

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 12, 1, 12, 0, 0, 123456, tzinfo=UTC)
LISTS = [
    ("int[]", packed_arrays.integers, [0, -1, 2**31 - 1]),
    ("bigint[]", packed_arrays.bigints, [1, -(2**63), 2**63 - 1]),
    ("text[]", packed_arrays.texts, ["", 'a,b {"c"} \\ NULL', "héllo 日本 😀"]),
    ("float8[]", packed_arrays.doubles, [0.1, None, float("inf"), -0.0, 3]),
    (
        "timestamptz[]",
        packed_arrays.times,
        [NOON, datetime(1999, 1, 1, tzinfo=UTC), NOON.astimezone(timezone(timedelta(hours=5)))],
    ),
]


@pytest.mark.parametrize(("kind", "pack", "values"), LISTS, ids=[kind for kind, _, _ in LISTS])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_it_is_the_list_of_the_driver(kind, pack, values, count):
    given = values[:count]
    for _ in range(3):  # the statement is prepared from its second run on
        statement = f"SELECT %(packed)b::{kind} = %(listed)s::{kind}, cardinality(%(packed)b::{kind})"  # noqa: S608  ours
        [(same, number)] = prepared.rows(statement, {"packed": pack(given), "listed": given})
        assert (same, number) == (True, count)


def test_documents_are_stored_as_they_are():
    given = [{"edges": [0.1, 2.5e-7], "name": "ü"}, None, []]
    packed = packed_arrays.documents(None if each is None else json.dumps(each).encode() for each in given)
    statement = "SELECT each::text FROM unnest(%(packed)b::jsonb[]) WITH ORDINALITY AS one(each, place) ORDER BY place"
    found = prepared.rows(statement, {"packed": packed})
    assert [None if each is None else json.loads(each) for (each,) in found] == given


def test_not_a_number_stays_one():
    [(found,)] = prepared.rows("SELECT %(packed)b::float8[]", {"packed": packed_arrays.doubles([float("nan"), None])})
    assert found[0] != found[0] and found[1] is None


def test_a_text_that_the_database_cannot_hold_is_refused():
    with pytest.raises(DataError):
        prepared.rows("SELECT %(packed)b::text[]", {"packed": packed_arrays.texts(["a\x00b"])})
