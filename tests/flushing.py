"""Empties the database after a test that commits.

Django truncates every table and then makes all permissions and content types again. That took longer than most of these tests. After a
test, few tables have rows, and these tables have few rows. Deleting them is fifty times as fast.
"""

from typing import Any

from django.db import connection, transaction
from django.test import TransactionTestCase
from psycopg import sql

# migrations made these rows, and tests do not change them
KEPT = {"django_migrations", "django_content_type", "auth_permission"}
_truncate_all = TransactionTestCase._fixture_teardown


def _teardown(case: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        may_set_the_role = cursor.fetchone()[0]
    if may_set_the_role:
        delete_rows()
    else:  # the database is one that DATABASE_URL names
        _truncate_all(case)


def install() -> None:
    TransactionTestCase._fixture_teardown = _teardown


def filled() -> list[str]:
    """The tables that have rows."""
    some = sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})")
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        parts = [some.format(sql.Literal(table), sql.Identifier(table)) for table in tables]
        cursor.execute(sql.SQL(" UNION ALL ").join(parts))
        return [table for (table,) in cursor.fetchall()]


def delete_rows() -> None:
    """Empties all tables that have rows. The role may delete rows in any order, without the triggers that protect them."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table in set(filled()) - KEPT:
            cursor.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
