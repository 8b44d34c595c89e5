"""A repeated key is found, also if hashes collide, and is reported with its first place."""

import numpy as np
import pytest
from django.db import connection

from webapp.datasets.encoding import copy_format
from webapp.datasets.ingest import duplicates
from webapp.datasets.ingest.duplicates import Repeat, SeenKeys

COLUMNS = {"key": "text", "digest": "text", "file": "int", "line": "bigint"}
pytestmark = pytest.mark.django_db


def write(rows):
    with connection.cursor() as cursor:
        copy_format.copy(cursor, "keys", COLUMNS, map(copy_format.writer(list(COLUMNS.values())), rows))


@pytest.fixture
def seen_keys():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE keys (key text, digest text, file int, line bigint)")
    write([("a", "A", 0, 1), ("b", "B", 0, 2)])
    return SeenKeys("keys")


def test_keys_of_the_table_and_of_the_batch_repeat(seen_keys):
    found = seen_keys.repeats(1, ["c", "b", "c", "d"], [1, 2, 3, 4], ["C", "B", "other", "D"])
    assert found == {1: Repeat(1, 2, "b", 0, 2, same=True), 2: Repeat(1, 3, "c", 1, 1, same=False)}
    write([("c", "C", 1, 1), ("d", "D", 1, 4)])
    assert seen_keys.repeats(2, ["d", "e"], [7, 8], ["else", "E"]) == {0: Repeat(2, 7, "d", 1, 4, same=False)}


def test_different_keys_of_one_hash_do_not_repeat(seen_keys, monkeypatch):
    monkeypatch.setattr(duplicates, "_hashes", lambda keys: np.zeros(len(keys), np.int64))
    assert seen_keys.repeats(1, ["x", "y"], [1, 2], ["X", "Y"]) == {}
    write([("x", "X", 1, 1), ("y", "Y", 1, 2)])
    assert seen_keys.repeats(1, ["z", "x"], [3, 4], ["Z", "X"]) == {1: Repeat(1, 4, "x", 1, 1, same=True)}


def test_memory_stays_in_few_runs(seen_keys):
    for batch in range(100):
        assert not seen_keys.repeats(0, [f"{batch}:{i}" for i in range(10)], list(range(10)), ["D"] * 10)
    assert len(seen_keys._runs) <= 10 and sum(map(len, seen_keys._runs)) == 1002
