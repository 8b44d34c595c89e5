"""The database as streams of COPY text, table by table, from one snapshot; and back into an empty one.

The text of a table is the same after it was loaded again: rows lie in the order in which they came. So its SHA-256 proves a
restoration, whatever the server's version, machine or port.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from .manifest import TableRows
from .problems import BackupProblem

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
CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), contype = 'f'
    FROM pg_constraint
    WHERE connamespace = current_schema()::regnamespace AND contype IN ('f', 'u', 'p', 'x') AND conrelid <> 0
    ORDER BY contype = 'f', conname
"""
INDEXES = """
    SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid)
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = current_schema()::regnamespace
      AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('u', 'p', 'x'))
    ORDER BY relname
"""
Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True)
class Table:
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
    """A connection that sees the database as it is at its first query, and keeps nobody from writing."""
    with connected(address) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        with connection.transaction():
            yield connection


def tables(connection: Connection) -> list[Table]:
    found = connection.execute(TABLES).fetchall()
    return [Table(name, tuple(c for c, _ in columns), tuple(t for _, t in columns)) for name, columns in found]


def sequences(connection: Connection) -> dict[str, int]:
    return {str(name): int(value) for name, value in connection.execute(SEQUENCES).fetchall()}


def copy_out(connection: Connection, table: Table, counted: Callable[[int], None]) -> Iterator[bytes]:
    """The rows of a table in blocks of about a megabyte; `counted` hears at the end how many there were."""
    waiting = bytearray()
    with connection.cursor() as cursor:
        with cursor.copy(_copy(table.name, table.columns, "TO STDOUT")) as copy:
            for row in copy:
                waiting += row
                if len(waiting) >= BLOCK:
                    yield bytes(waiting)
                    waiting.clear()
        if waiting:
            yield bytes(waiting)
        counted(cursor.rowcount)


def load(
    connection: Connection,
    kept: Iterable[TableRows],
    counters: Mapping[str, int],
    content: Callable[[TableRows], Iterator[bytes]],
) -> None:
    """Fills the tables, whose schema is there, in one transaction: all of it, or none. Raises BackupProblem.

    Keys, constraints and indexes are made after the rows are there. That is faster, it needs no right but that of the
    owner, and each reference is looked at, as when it was first made.
    """
    kept = list(kept)
    with connection.transaction():
        _fits(connection, kept)
        names = sql.SQL(", ").join(sql.Identifier(table.name) for table in kept)
        connection.execute("SET LOCAL maintenance_work_mem = '256MB'")
        connection.execute(sql.SQL("TRUNCATE {}").format(names))
        with _bare(connection, [table.name for table in kept]), connection.cursor() as cursor:
            for table in kept:
                with cursor.copy(_copy(table.name, table.columns, "FROM STDIN")) as copy:
                    for block in content(table):
                        copy.write(block)
        there = {name for (name,) in connection.execute("SELECT sequencename FROM pg_sequences").fetchall()}
        for name, value in counters.items():
            if name in there:
                connection.execute("SELECT setval(quote_ident(%s)::regclass, %s)", [name, value])
    connection.execute("ANALYZE")


def _fits(connection: Connection, kept: list[TableRows]) -> None:
    there = {table.name: set(table.columns) for table in tables(connection)}
    for table in kept:
        if table.name not in there:
            raise BackupProblem(f"The backup has a table {table.name} that this program knows nothing of.")
        if missing := there[table.name] - set(table.columns):
            raise BackupProblem(f"The table {table.name} of the backup lacks columns: {', '.join(sorted(missing))}.")
        for column, kind in zip(table.columns, table.types, strict=True):
            if column not in there[table.name]:  # nobody writes it any more; its database is older than its migrations
                connection.execute(_text("ALTER TABLE {} ADD COLUMN {} {}", *_named(table.name, column), kind))


@contextmanager
def _bare(connection: Connection, names: list[str]) -> Iterator[None]:
    """For the block, tables without references, keys, indexes and triggers; then as they were."""
    constraints = connection.execute(CONSTRAINTS).fetchall()
    for table, name, _, _ in reversed(constraints):  # references first: they rest on keys
        connection.execute(_text("ALTER TABLE {} DROP CONSTRAINT {}", table, sql.Identifier(name)))
    indexes = connection.execute(INDEXES).fetchall()
    for name, _ in indexes:
        connection.execute(_text("DROP INDEX {}", name))
    for name in names:
        connection.execute(sql.SQL("ALTER TABLE {} DISABLE TRIGGER USER").format(sql.Identifier(name)))
    yield
    for table, name, definition, refers in constraints:
        if not refers:
            connection.execute(_text("ALTER TABLE {} ADD CONSTRAINT {} {}", table, sql.Identifier(name), definition))
    for _, definition in indexes:
        connection.execute(_text("{}", definition))
    for table, name, definition, refers in constraints:
        if refers:
            connection.execute(_text("ALTER TABLE {} ADD CONSTRAINT {} {}", table, sql.Identifier(name), definition))
    for name in names:
        connection.execute(sql.SQL("ALTER TABLE {} ENABLE TRIGGER USER").format(sql.Identifier(name)))


def _named(*names: str) -> Iterator[sql.Identifier]:
    return map(sql.Identifier, names)


def _text(pattern: LiteralString, *parts: str | sql.Identifier) -> sql.Composed:
    """Texts among `parts` are what the server itself told, quoted by it where that is needed."""
    told = [part if isinstance(part, sql.Identifier) else sql.SQL(part) for part in parts]
    return sql.SQL(pattern).format(*told)


def _copy(table: str, columns: Iterable[str], how: LiteralString) -> sql.Composed:
    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    return sql.SQL("COPY {} ({}) {}").format(sql.Identifier(table), listed, sql.SQL(how))
