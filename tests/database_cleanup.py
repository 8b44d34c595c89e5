"""Empties the database after a test that commits.

Django truncates every table and then makes all permissions and content types again. That took longer than most of these tests. After a
test, few tables have rows, and these tables have few rows. Deleting them is fifty times as fast.

It has a connection of its own, which stays. The connection of a test ends with the test, and the next one must read again what the server
knows of each table: looking through all tables takes it some fifty times as long.
"""

from contextlib import suppress
from typing import Any

import psycopg
from django.db import connection
from django.test import TransactionTestCase
from psycopg import sql

# migrations made these rows, and tests do not change them
KEPT = {"django_migrations", "django_content_type", "auth_permission"}
TABLES = """
    SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relkind IN ('r', 'p') AND nspname NOT IN ('pg_catalog', 'pg_toast') AND pg_table_is_visible(pg_class.oid)
    ORDER BY relname
"""
_truncate_all = TransactionTestCase._fixture_teardown  # type: ignore[attr-defined]
_open: dict[str, psycopg.Connection] = {}


def _teardown(case: Any) -> None:
    if _may_set_the_role():
        connection.close()  # so that a transaction that a test has left open holds no rows
        delete_rows()
    else:  # the database is one that DATABASE_URL names
        _truncate_all(case)


def install() -> None:
    TransactionTestCase._fixture_teardown = _teardown  # type: ignore[attr-defined]


def close() -> None:
    """Before the database is removed."""
    while _open:
        _open.popitem()[1].close()


def tables_with_rows() -> list[str]:
    """The tables that have rows."""
    some, server = sql.SQL("SELECT {} WHERE EXISTS (SELECT FROM {})"), _server()
    tables = [name for (name,) in server.execute(TABLES, prepare=True)]
    parts = [some.format(sql.Literal(table), sql.Identifier(table)) for table in tables]
    return [table for (table,) in server.execute(sql.SQL(" UNION ALL ").join(parts), prepare=True)]


def delete_rows() -> None:
    """Empties all tables that have rows. The role may delete rows in any order, without the triggers that protect them."""
    with _server().transaction():
        _server().execute("SET LOCAL session_replication_role = replica")
        for table in set(tables_with_rows()) - KEPT:
            _server().execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))


def _may_set_the_role() -> bool:
    found = _server().execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
    return bool(found and found[0])


def _server() -> psycopg.Connection:
    told: dict[str, Any] = {
        key: connection.settings_dict[key.upper()] or None for key in ("user", "password", "host", "port")
    }
    told |= {key: value for key, value in connection.settings_dict["OPTIONS"].items() if key != "pool"}
    name = connection.settings_dict["NAME"]
    if name in _open:
        with suppress(psycopg.OperationalError):  # a test may have ended all connections
            if _open[name].info.transaction_status != psycopg.pq.TransactionStatus.IDLE or _open[name].execute(""):
                return _open[name]
        _open.pop(name).close()
    _open[name] = psycopg.connect(dbname=name, autocommit=True, **told)
    return _open[name]
