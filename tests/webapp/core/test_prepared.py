import tracemalloc

import pytest
from django.db import ProgrammingError, connection

from webapp.core import prepared

pytestmark = pytest.mark.django_db


def test_a_statement_is_planned_once_and_gives_what_it_gives(django_assert_num_queries):
    for number in range(4):
        with django_assert_num_queries(1):
            assert prepared.rows("SELECT %(n)s::int + 1, 'prepared once'", {"n": number}) == [
                (number + 1, "prepared once")
            ]
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%%prepared once%%'")
        assert cursor.fetchone() == (1,)


def test_a_statement_that_returns_nothing_says_how_many_rows_it_has_written():
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE written (n int)")
    for count in (3, 0, 2):
        statement = "INSERT INTO written SELECT generate_series(1, %(count)s::int)"
        assert prepared.run(statement, {"count": count}) == count


def test_errors_are_the_ones_of_django():
    with pytest.raises(ProgrammingError):
        prepared.rows("SELECT nothing", [])


def test_a_connection_keeps_no_statement_that_never_runs_again():
    """The list would keep the last hundred statements with their values. These are the batches of runs, up to 4 MB each, on every
    connection of a web process.
    """
    prepared.rows("SELECT 'prepared'", [])
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(60):
            with connection.cursor() as cursor:
                cursor.execute("SELECT length(%s)", [f"{number:05}" * 20_000])
                assert cursor.fetchone() == (100_000,)
            prepared.rows("SELECT 'prepared'", [])
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000 < 60 * 100_000
