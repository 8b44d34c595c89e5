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


def test_errors_are_the_ones_of_django():
    with pytest.raises(ProgrammingError):
        prepared.rows("SELECT nothing", [])
