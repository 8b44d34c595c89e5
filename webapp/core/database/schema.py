"""Is the database's schema the one that this code was written for?

`migrate` believes what its table says has been applied. A database made by a migration that was changed afterwards passes it,
and then a page fails over a column that is not there. Here the tables themselves are looked at: columns with type, null and
collation, primary keys, references, the indexes and constraints that models name, and the triggers of migrations.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.apps import apps
from django.core.cache import cache
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import RunSQL
from django.db.models import Field, ForeignKey, Model

OURS = "webapp."
LOOK_EVERY_S = 60
TRIGGER = re.compile(r"CREATE\s+(?:OR REPLACE\s+)?(?:CONSTRAINT\s+)?TRIGGER\s+(\w+)\s.*?\sON\s+(\w+)", re.I | re.S)
DROPPED = re.compile(r"DROP\s+TRIGGER\s+(?:IF EXISTS\s+)?(\w+)\s+ON\s+(\w+)", re.I)
COLUMNS = """
    SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull, coalesce(collname, ''),
           atthasdef OR attidentity <> ''
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid LEFT JOIN pg_collation ON pg_collation.oid = attcollation
    WHERE relname = ANY(%s) AND relkind = 'r' AND pg_table_is_visible(pg_class.oid) AND attnum > 0 AND NOT attisdropped
"""
KEYS = """
    SELECT conrelid::regclass::text, contype, ARRAY(
        SELECT attname::text FROM unnest(conkey) WITH ORDINALITY AS place(number, turn)
        JOIN pg_attribute ON attrelid = conrelid AND attnum = place.number ORDER BY turn
    ), coalesce(confrelid::regclass::text, '')
    FROM pg_constraint WHERE contype IN ('p', 'f') AND conrelid::regclass::text = ANY(%s)
"""
NAMES = """
    SELECT tablename, indexname FROM pg_indexes WHERE tablename = ANY(%s)
    UNION SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE conrelid::regclass::text = ANY(%s)
"""
TRIGGERS = """
    SELECT relname, tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid WHERE NOT tgisinternal
"""


class DatabaseColumn(NamedTuple):
    type: str
    filled: bool  # NOT NULL
    collation: str = ""
    fills_itself: bool = True


def state() -> str:
    """`current` or `differs`, checked once a minute at most."""
    found: str = (
        cache.get_or_set("schema", lambda: "differs" if differences() else "current", LOOK_EVERY_S) or "differs"
    )
    return found


def differences() -> list[str]:
    """The differences between the database and the schema that the code expects, in words; nothing if they agree.

    Columns that nobody writes any more count only if they refuse a row without them. Indexes and triggers that somebody added are no
    difference.
    """
    if waiting := _waiting():
        return [f"not applied: {name}" for name in waiting]
    models = [model for model in apps.get_models(include_auto_created=True) if _ours(model)]
    tables = [model._meta.db_table for model in models]
    columns, keys, names = _columns(tables), _keys(tables), _rows(NAMES, tables, tables)
    found: list[str] = []
    for model in models:
        table = model._meta.db_table
        if table not in columns:
            found.append(f"there is no table {table}")
            continue
        found += _of_columns(table, dict(_expected(model)), columns[table])
        found += _of_keys(model, keys[table])
        named = {each.name for each in (*model._meta.indexes, *model._meta.constraints)}
        found += [f"{table}: there is no {name}" for name in sorted(named) if (table, name) not in names]
    there = _rows(TRIGGERS)
    return found + [f"{table}: there is no trigger {name}" for table, name in sorted(_triggers() - there)]


def _ours(model: type[Model]) -> bool:
    return (apps.get_app_config(model._meta.app_label).name.startswith(OURS)) and model._meta.managed


def _waiting() -> list[str]:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def _rows(query: str, *values: Any) -> set[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, values or None)
        return set(cursor.fetchall())


def _columns(tables: list[str]) -> dict[str, dict[str, DatabaseColumn]]:
    found: dict[str, dict[str, DatabaseColumn]] = defaultdict(dict)
    for table, name, *rest in _rows(COLUMNS, tables):
        found[table][name] = DatabaseColumn(*rest)
    return found


def _keys(tables: list[str]) -> dict[str, set[tuple[str, tuple[str, ...], str]]]:
    with connection.cursor() as cursor:
        cursor.execute(KEYS, [tables])
        found: dict[str, set[tuple[str, tuple[str, ...], str]]] = defaultdict(set)
        for table, kind, columns, target in cursor.fetchall():
            found[table.strip('"')].add((kind, tuple(columns), target.strip('"')))
    return found


def _expected(model: type[Model]) -> Iterator[tuple[str, DatabaseColumn]]:
    for field in model._meta.local_concrete_fields:
        kind = field.db_type(connection)
        if kind is not None and field.column is not None:  # a key of several columns has none of its own
            yield (
                field.column,
                DatabaseColumn(_as_shown(kind), not _null(field), getattr(field, "db_collation", None) or ""),
            )


def _null(field: Field[Any, Any]) -> bool:
    return bool(field.null or field.generated)


def _as_shown(kind: str) -> str:
    """A type as Postgres shows it: `numeric(12, 6)` is `numeric(12,6)`."""
    kind = "time without time zone" if kind == "time" else kind
    return re.sub(r"^varchar", "character varying", kind).replace(", ", ",").replace("bool ", "boolean ")


def _of_columns(table: str, expected: dict[str, DatabaseColumn], there: dict[str, DatabaseColumn]) -> Iterator[str]:
    for name, column in expected.items():
        if name not in there:
            yield f"{table} has no column {name}"
        elif there[name].type != column.type:
            yield f"{table}.{name} is {there[name].type}, not {column.type}"
        elif there[name].filled != column.filled:
            yield f"{table}.{name} {'must not' if there[name].filled else 'may'} be null"
        elif column.collation and there[name].collation != column.collation:
            yield f"{table}.{name} is ordered by {there[name].collation or 'nothing'}, not by {column.collation}"
    for name in there.keys() - expected.keys():
        if there[name].filled and not there[name].fills_itself:
            yield f"{table} has a column {name} that this version does not fill"


def _of_keys(model: type[Model], there: set[tuple[str, tuple[str, ...], str]]) -> Iterator[str]:
    table = model._meta.db_table
    key = tuple(str(field.column) for field in model._meta.pk_fields)
    kept = {columns for kind, columns, _ in there if kind == "p"}
    if kept and kept != {key}:  # a table may do without: nobody looks for hits by their id
        yield f"{table}: its primary key is not ({', '.join(key)})"
    for field in model._meta.local_concrete_fields:
        if isinstance(field, ForeignKey) and getattr(field, "db_constraint", False):
            target = field.remote_field.model._meta.db_table
            if ("f", (field.column,), target) not in there:
                yield f"{table}.{field.column} does not refer to {target}"


def _triggers() -> set[tuple[str, str]]:
    """(table, name) of those that the SQL of our migrations leaves behind."""
    loader = MigrationLoader(None)
    found: set[tuple[str, str]] = set()
    for node in loader.graph.leaf_nodes():
        for key in loader.graph.forwards_plan(node):
            migration = loader.graph.nodes[key]
            if not apps.get_app_config(key[0]).name.startswith(OURS):
                continue
            for operation in migration.operations:
                if isinstance(operation, RunSQL) and isinstance(operation.sql, str):
                    found -= {(table, name) for name, table in DROPPED.findall(operation.sql)}
                    found |= {(table, name) for name, table in TRIGGER.findall(operation.sql)}
    return found
