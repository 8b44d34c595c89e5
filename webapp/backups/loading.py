"""Loads rows into an empty database: several tables at a time, each compared with the backup while its indexes are made.

Keys, constraints and indexes are made after the rows are loaded. That is faster, needs no right beyond the owner's, and checks each
reference, as when it was first made.
"""

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from . import rows
from .manifest import TableRows
from .problems import BackupProblem, Cancelled, Damaged
from .rows import Connection, DatabaseTable

AT_ONCE = max(2, min(4, os.cpu_count() or 1))  # tables; each keeps a connection that loads and one that compares
MEMORY = "128MB"  # for an index
Content = Callable[[TableRows, bool], Iterator[bytes]]  # and whether it is to be checked against its digest
At = Callable[[int], None]  # hears of bytes that are done; raises Cancelled where the end is wanted
CONSTRAINTS = """
    SELECT relname, conname, contype::text, pg_get_constraintdef(c.oid),
        CASE WHEN contype IN ('p', 'u') THEN pg_get_indexdef(conindid) END, condeferrable, condeferred
    FROM pg_constraint c JOIN pg_class t ON t.oid = conrelid
    WHERE connamespace = current_schema()::regnamespace AND contype IN ('f', 'u', 'p', 'x')
    ORDER BY relname, conname
"""
INDEXES = """
    SELECT t.relname, i.relname, pg_get_indexdef(indexrelid)
    FROM pg_index JOIN pg_class i ON i.oid = indexrelid JOIN pg_class t ON t.oid = indrelid
    WHERE i.relnamespace = current_schema()::regnamespace
      AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('u', 'p', 'x'))
    ORDER BY t.relname, i.relname
"""
# of a column, as format_type() writes it: a name, perhaps of a schema or in quotes, its numbers, and whether it is an array. Nothing that
# ends one part of a statement and begins another: anybody who can write to the bucket can change a manifest that is not encrypted
_WORD = r'(?:[a-z_][a-z0-9_]*|"[A-Za-z0-9_ ]+")'
TYPE = re.compile(
    rf"{_WORD}(?:\.{_WORD})?(?:\(\d+(?:,\d+)?\))?(?: precision| varying)?(?:\(\d+(?:,\d+)?\))?(?: with(?:out)? time zone)?(?:\[\])*"
)
KINDS = {"p": "PRIMARY KEY", "u": "UNIQUE"}


@dataclass
class Bare:
    """The removed parts of a table: `indexes` that can be made while it is read, `keys` that turn them into constraints, and
    `references`."""

    indexes: list[sql.SQL] = field(default_factory=list)
    keys: list[sql.Composed] = field(default_factory=list)
    references: list[tuple[str, str]] = field(default_factory=list)


class EndedWithOther(Cancelled):
    """Another part has failed, so this one has ended; the other part gives the reason."""

    def __init__(self) -> None:
        super().__init__("Another part could not be restored.")


def load(address: str, kept: Iterable[TableRows], counters: Mapping[str, int], content: Content, at: At) -> None:
    """Fills the tables, whose schema exists, and compares them. Raises BackupProblem; the caller then clears the database."""
    tables = sorted(kept, key=lambda table: table.bytes, reverse=True)
    with rows.connected(address) as connection:
        with connection.transaction():
            _fits(connection, tables)
            before = _names(connection)
            bare = _strip(connection)
        by_name = {table.name: table for table in tables}
        others = [name for name in bare if name not in by_name]
        work = [(name, by_name.get(name)) for name in [*by_name, *others]]
        all_of(lambda told, at: _fill(address, told[0], told[1], bare[told[0]], content, at), work, at)
        for name, found in bare.items():
            for constraint, definition in found.references:
                unproven = sql.SQL(f"{definition} NOT VALID")
                connection.execute(_text("ALTER TABLE {} ADD CONSTRAINT {} {}", name, constraint, unproven))
        all_of(lambda told, at: _prove(address, told[0], told[1]), [(name, found) for name, found in bare.items()], at)
        for name in bare:
            connection.execute(_text("ALTER TABLE {} ENABLE TRIGGER USER", name))
        _count_on(connection, counters)
        if lost := before - _names(connection):
            raise BackupProblem(f"The new database lacks keys or indexes: {', '.join(sorted(lost))}.")
        connection.execute("ANALYZE")


def all_of(work: Callable[[Any, At], None], over: Iterable[Any], at: At) -> None:
    """Does several at a time. The first failure ends the others, and so does Ctrl-C."""
    ended = threading.Event()

    def told(more: int) -> None:
        if ended.is_set():
            raise EndedWithOther
        at(more)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        begun = [pool.submit(work, each, told) for each in over]
        try:
            done, _ = wait(begun, return_when=FIRST_EXCEPTION)
            for each in begun:
                if each in done:
                    each.result()
        except BaseException:
            ended.set()
            pool.shutdown(cancel_futures=True)
            raise


def _names(connection: Connection) -> set[str]:
    """The names of constraints and indexes. The text of a condition may change when it is read again, and mean the same."""
    found = [told for query in (CONSTRAINTS, INDEXES) for told in connection.execute(query).fetchall()]
    return {f"{told[0]}.{told[1]}" for told in found}


def _strip(connection: Connection) -> dict[str, Bare]:
    """Removes references, keys, indexes and triggers of all tables; returns what they were."""
    constraints, indexes = (connection.execute(query).fetchall() for query in (CONSTRAINTS, INDEXES))
    bare = {table.name: Bare() for table in rows.tables(connection)}
    for table, name, kind, definition, index, deferrable, deferred in constraints:
        if kind == "f":
            bare[table].references.append((name, definition))
        elif index:
            bare[table].indexes.append(sql.SQL(index))
            late = sql.SQL(" DEFERRABLE" * deferrable + " INITIALLY DEFERRED" * deferred)
            parts = (table, name, sql.SQL(KINDS[kind]), name, late)
            bare[table].keys.append(_text("ALTER TABLE {} ADD CONSTRAINT {} {} USING INDEX {}{}", *parts))
        else:
            bare[table].keys.append(_text("ALTER TABLE {} ADD CONSTRAINT {} {}", table, name, sql.SQL(definition)))
    for table, _, definition in indexes:
        bare[table].indexes.append(sql.SQL(definition))
    for table, name, *_ in sorted(constraints, key=lambda told: told[2] != "f"):  # references first: they rest on keys
        connection.execute(_text("ALTER TABLE {} DROP CONSTRAINT {}", table, name))
    for _, name, _ in indexes:
        connection.execute(_text("DROP INDEX {}", name))
    for name in bare:
        connection.execute(_text("ALTER TABLE {} DISABLE TRIGGER USER", name))
    return bare


def _fill(address: str, name: str, table: TableRows | None, bare: Bare, content: Content, at: At) -> None:
    """Loads one table. None: it has the rows that its migration gave it, and only loses and gets its indexes."""
    with rows.connected(address) as connection, ThreadPoolExecutor(1) as beside:
        compared = None
        if table is not None:
            try:
                _copy_in(connection, table, content(table, False), at)
            except psycopg.DataError:
                _look_at(content(table, True))
                raise
            compared = beside.submit(_compared, address, table, content, at)
        connection.execute(f"SET maintenance_work_mem = '{MEMORY}'")
        for index in bare.indexes:
            connection.execute(index)
        if compared:
            compared.result()
        for key in bare.keys:
            connection.execute(key)


def _copy_in(connection: Connection, table: TableRows, blocks: Iterator[bytes], at: At) -> None:
    """Empties and loads the table in one transaction: then the server writes each row once, already final, and no log of it if it may."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(_text("TRUNCATE {}", table.name))
        with cursor.copy(rows.copy(table.name, table.columns, "FROM STDIN (FREEZE)")) as copy:
            for block in blocks:
                copy.write(block)
                at(len(block))


def _compared(address: str, table: TableRows, content: Content, at: At) -> None:
    try:
        with rows.connected(address) as connection:
            compare(connection, table, at)
    except Damaged:
        _look_at(content(table, True))  # tells, if it was not right before it was loaded
        raise


def compare(connection: Connection, table: TableRows, at: At) -> None:
    """Reads a table again. Raises Damaged if it is not what was backed up."""
    found, counts = sha256(), list[int]()
    for block in rows.copy_out(connection, DatabaseTable(table.name, table.columns), counts.append):
        found.update(block)
        at(len(block))
    if counts != [table.rows]:
        raise Damaged(f"The table {table.name} was restored with {counts[0]:,} rows; the backup says {table.rows:,}.")
    if found.hexdigest() != table.digest:
        raise Damaged(f"The table {table.name} was restored with other contents than the backup says.")


def _look_at(blocks: Iterator[bytes]) -> None:
    for _ in blocks:
        pass


def _prove(address: str, name: str, bare: Bare) -> None:
    if bare.references:
        with rows.connected(address) as connection:
            for constraint, _ in bare.references:
                connection.execute(_text("ALTER TABLE {} VALIDATE CONSTRAINT {}", name, constraint))


def _count_on(connection: Connection, counters: Mapping[str, int]) -> None:
    there = {name for (name,) in connection.execute("SELECT sequencename FROM pg_sequences").fetchall()}
    for name, value in counters.items():
        if name in there:
            connection.execute("SELECT setval(quote_ident(%s)::regclass, %s)", [name, value])


def _fits(connection: Connection, kept: list[TableRows]) -> None:
    there = {table.name: set(table.columns) for table in rows.tables(connection)}
    for table in kept:
        if table.name not in there:
            raise BackupProblem(f"The backup has a table {table.name} that this program does not know.")
        if missing := there[table.name] - set(table.columns):
            raise BackupProblem(f"The table {table.name} of the backup lacks columns: {', '.join(sorted(missing))}.")
        for column, kind in zip(table.columns, table.types, strict=True):
            if column not in there[table.name]:  # nobody writes it any more; its database is older than its migrations
                if not TYPE.fullmatch(kind):
                    raise BackupProblem(
                        f"The column {table.name}.{column} of the backup has an unknown type: {kind[:60]!r}."
                    )
                connection.execute(_text("ALTER TABLE {} ADD COLUMN {} {}", table.name, column, sql.SQL(kind)))


def _text(pattern: LiteralString, *parts: str | sql.SQL) -> sql.Composed:
    """Texts among `parts` are names; the others are what the server itself told."""
    return sql.SQL(pattern).format(*(part if isinstance(part, sql.SQL) else sql.Identifier(part) for part in parts))
