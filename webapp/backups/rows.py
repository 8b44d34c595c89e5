"""The database as streams of COPY text, table by table, from one snapshot. `loading` brings them back.

The text of a table is the same after it was loaded again: rows lie in the order in which they came. So its SHA-256 proves a restoration,
for any version of the server, on any machine and port.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql

BLOCK = 1 << 20
# Texts of values must not depend on the settings of a server, nor their order on what others read at the same time
FIXED = {
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "synchronize_seqscans": "off",
    "client_encoding": "UTF8",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
TABLES = """
    SELECT relname, ARRAY(
        SELECT ARRAY[attname, format_type(atttypid, atttypmod)]::text[] FROM pg_attribute
        WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum
    )
    FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY relname
"""
SEQUENCES = """
    SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = current_schema() AND last_value IS NOT NULL
"""
Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class DatabaseTable:
    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...] = ()


@contextmanager
def connected(address: Mapping[str, Any] | str) -> Iterator[Connection]:
    """`address`: as psycopg takes it, a text or parameters."""
    told = {"conninfo": address} if isinstance(address, str) else dict(address)
    with psycopg.connect(**told, autocommit=True) as connection:
        for name, value in FIXED.items():
            connection.execute("SELECT set_config(%s, %s, false)", [name, value])
        yield connection


@contextmanager
def snapshot(address: Mapping[str, Any] | str) -> Iterator[Connection]:
    """A connection that sees the database as of its first query, and keeps nobody from writing."""
    with connected(address) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        with connection.transaction():
            yield connection


def tables(connection: Connection) -> list[DatabaseTable]:
    found = connection.execute(TABLES).fetchall()
    return [DatabaseTable(name, tuple(c for c, _ in columns), tuple(t for _, t in columns)) for name, columns in found]


def sequences(connection: Connection) -> dict[str, int]:
    return {str(name): int(value) for name, value in connection.execute(SEQUENCES).fetchall()}


def copy_out(connection: Connection, table: DatabaseTable, counted: Callable[[int], None]) -> Iterator[bytes]:
    """The rows of a table in blocks of about a megabyte; `counted` gets the number of rows at the end."""
    waiting = bytearray()
    with connection.cursor() as cursor:
        with cursor.copy(copy(table.name, table.columns, "TO STDOUT")) as copied:
            for row in copied:
                waiting += row
                if len(waiting) >= BLOCK:
                    yield bytes(waiting)
                    waiting.clear()
        if waiting:
            yield bytes(waiting)
        counted(cursor.rowcount)


def copy(table: str, columns: Iterable[str], how: LiteralString) -> sql.Composed:
    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    return sql.SQL("COPY {} ({}) {}").format(sql.Identifier(table), listed, sql.SQL(how))
