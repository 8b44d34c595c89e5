import tracemalloc

import pytest
from django.db import ProgrammingError, connection

from webapp.accounts.models import ApiToken, Membership
from webapp.accounts.tokens.services import create_token
from webapp.core.database import prepared

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


def test_a_row_by_its_fields_is_the_one_that_django_gives(team, django_assert_num_queries):
    token = create_token(team.researcher, "of a script")[0]
    tokens = prepared.RowBy(lambda: ApiToken.objects.select_related("user"), "digest")
    places = prepared.RowBy(lambda: Membership.objects.select_related("workspace"), "user_id", "workspace_id")
    for _ in range(2):
        with django_assert_num_queries(2):
            found, place = tokens(token.digest), places(team.researcher.user_id, team.workspace.pk)
            assert (found, found.areas, found.user) == (token, token.areas, team.researcher.user)
            assert (place, place.workspace) == (team.researcher, team.workspace)
    named = prepared.RowBy(lambda: ApiToken.objects.filter(name="of a script").exclude(prefix=""), "user_id", "pk")
    assert named(team.researcher.user_id, token.pk) == token and named(team.owner.user_id, token.pk) is None
    assert tokens("x") is None and places(team.outsider.user_id, team.workspace.pk) is None


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
