"""A temporary table of this connection, in which the rows of a new version are gathered before any of them becomes visible.

The table ends with its connection, so a worker that dies leaves nothing behind. The final move into the real tables is one transaction.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from trainer.contracts import Example

from ..columns.derive import COLUMNS, columns
from ..index import postings
from . import planner

NAMES = ", ".join(COLUMNS)
CREATE = "CREATE TEMPORARY TABLE import_rows (line bigint, " + ", ".join(f"{n} {t}" for n, t in COLUMNS.items()) + ")"


@contextmanager
def table() -> Iterator[None]:
    """The empty staging table. It is dropped at the end, because connections go back to a pool."""
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS import_rows")
        cursor.execute(CREATE)
    try:
        yield
    finally:
        # in a broken transaction, the rollback removes the table
        if connection.is_usable() and not connection.needs_rollback:
            with connection.cursor() as cursor:
                cursor.execute("DROP TABLE IF EXISTS import_rows")


def copy(prepared: Iterable[tuple[Any, ...]]) -> None:
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY import_rows (line, {NAMES}) FROM STDIN") as to,
    ):
        for row in prepared:
            to.write_row(row)


def prepare(line: int, example: Example) -> tuple[Any, ...]:
    """The example as a row of the table. Raises ValueError if it holds what JSON or Postgres text cannot."""
    return (line, *columns(example))


def repeated_keys() -> Iterator[tuple[int, str, int]]:
    """(line, key, line of the first) of every row whose key came before. These rows are removed."""
    with connection.cursor() as cursor:
        cursor.execute("""
            WITH seen AS (
                SELECT line, key, min(line) OVER (PARTITION BY key) AS first,
                       row_number() OVER (PARTITION BY key ORDER BY line) AS turn
                FROM import_rows
            ), gone AS (
                DELETE FROM import_rows USING seen
                WHERE import_rows.line = seen.line AND seen.turn > 1
            )
            SELECT line, key, first FROM seen WHERE turn > 1 ORDER BY line
        """)
        yield from cursor.fetchall()


def facts(rows: str = "import_rows") -> tuple[dict[str, int], dict[str, dict[str, int]], str]:
    """Counts by kind, facets for the filters, and the version digest of the staged rows, or of those of the table
    expression `rows`, which comes from code and never from people."""
    with connection.cursor() as cursor:
        cursor.execute(f"""
            SELECT count(*), count(*) FILTER (WHERE split = 'train'), count(*) FILTER (WHERE split = 'heldout'),
                   count(*) FILTER (WHERE criteria_count > 0), coalesce(sum(criteria_count), 0),
                   coalesce(sum(verifiable_count), 0), coalesce(sum(response_count), 0),
                   coalesce(sum(preference_count), 0),
                   encode(sha256(coalesce(string_agg(digest || E'\n', '' ORDER BY digest COLLATE "C"), '')::bytea), 'hex')
            FROM {rows}
        """)  # noqa: S608  a constant, or a number from `versions`
        row = cursor.fetchone()
        names = "examples train heldout rubrics criteria verifiable_criteria responses preferences"
        counts = dict(zip(names.split(), map(int, row[:-1]), strict=True))
        return counts, {facet: _facet(cursor, column, rows) for facet, column in FACETS.items()}, row[-1]


FACETS = {"domain": "domain", "source": "source", "verifier": "unnest(verifiers)"}
FACET_VALUES = 100  # the most frequent ones; the filter accepts any value


def _facet(cursor: Any, column: str, rows: str) -> dict[str, int]:
    cursor.execute(
        f"SELECT value, count(*) FROM (SELECT {column} AS value FROM {rows}) AS v "  # noqa: S608  constants above
        f"WHERE value <> '' GROUP BY value ORDER BY count(*) DESC, value LIMIT {FACET_VALUES}"
    )
    return dict(cursor.fetchall())


def move(dataset_id: int, version_id: int) -> None:
    """Stores the staged rows as examples, if they are new, and lists them all in the version, in file order."""
    store(dataset_id)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO datasets_versionmember (version_id, example_id, position)
            SELECT %s, example.id, row_number() OVER (ORDER BY staged.line) - 1
            FROM import_rows AS staged
            JOIN datasets_example AS example ON example.dataset_id = %s AND example.digest = staged.digest
            """,
            [version_id, dataset_id],
        )
    planner.analyze_emptied(planner.MEMBERS)


def store(dataset_id: int) -> None:
    """Stores the staged rows with new content as examples of the dataset."""

    def insert() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO datasets_example (dataset_id, {NAMES}, created_at) "  # noqa: S608  constants
                f"SELECT %s, {NAMES}, now() FROM import_rows ORDER BY line ON CONFLICT (dataset_id, digest) DO NOTHING",
                [dataset_id],
            )

    postings.add_new(dataset_id, insert)
    planner.analyze_emptied(planner.EXAMPLES)


def move_over(dataset_id: int, version_id: int, base_id: int) -> None:
    """Stores the staged rows, and lists the examples of version `base_id` again. Each staged row replaces the example with its key; rows
    with new keys follow at the end."""
    store(dataset_id)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO datasets_versionmember (version_id, example_id, position)
            WITH fresh AS (
                SELECT staged.key, staged.line, example.id FROM import_rows AS staged
                JOIN datasets_example AS example ON example.dataset_id = %(dataset)s AND example.digest = staged.digest
            ), listed AS (
                SELECT old.key, member.example_id, member.position FROM datasets_versionmember AS member
                JOIN datasets_example AS old ON old.id = member.example_id WHERE member.version_id = %(base)s
            )
            SELECT %(version)s, coalesce(fresh.id, listed.example_id),
                   row_number() OVER (ORDER BY listed.position NULLS LAST, fresh.line) - 1
            FROM listed FULL JOIN fresh USING (key)
            """,
            {"dataset": dataset_id, "base": base_id, "version": version_id},
        )
    planner.analyze_emptied(planner.MEMBERS)
