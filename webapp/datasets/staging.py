"""Where an import gathers its rows before any of them becomes visible: a temporary table of this connection.

Nothing here survives the connection, so a worker that dies leaves nothing behind, and the final move into the real
tables is one transaction.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from trainer.contracts import Example

from . import search

EXCERPT = 300
COLUMNS = (
    "line key digest canonical excerpt split domain source criteria_count verifiable_count response_count "
    "preference_count verifiers search"
)
CREATE = """
    CREATE TEMPORARY TABLE import_rows (
        line bigint, key text, digest text, canonical text, excerpt text, split text, domain text, source text,
        criteria_count int, verifiable_count int, response_count int, preference_count int, verifiers text[],
        search tsvector
    )
"""


@contextmanager
def table() -> Iterator[None]:
    """The empty staging table, dropped at the end: connections go back to a pool."""
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS import_rows")
        cursor.execute(CREATE)
    try:
        yield
    finally:
        # in a broken transaction the table goes with the rollback
        if connection.is_usable() and not connection.needs_rollback:
            with connection.cursor() as cursor:
                cursor.execute("DROP TABLE IF EXISTS import_rows")


def copy(prepared: Iterable[tuple[Any, ...]]) -> None:
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY import_rows ({', '.join(COLUMNS.split())}) FROM STDIN") as to,
    ):
        for columns in prepared:
            to.write_row(columns)


def prepare(line: int, example: Example) -> tuple[Any, ...]:
    """The example as a row of the table. Raises ValueError when it holds what JSON or Postgres text cannot."""
    canonical = example.canonical()
    criteria = example.rubric.criteria if example.rubric else ()
    verifiers = [criterion.verifier.name for criterion in criteria if criterion.verifier]
    texts = [message.content for message in example.prompt]
    texts += [criterion.text for criterion in criteria]
    texts += [response.text for response in example.responses]
    asked = next((m.content for m in reversed(example.prompt) if m.role == "user"), example.prompt[-1].content)
    return (
        line,
        example.key,
        example.digest_of(canonical),
        canonical,
        " ".join(asked[: 2 * EXCERPT].replace("\0", " ").split())[:EXCERPT],
        example.split or "",
        example.domain,
        example.source,
        len(criteria),
        len(verifiers),
        len(example.responses),
        len(example.preferences),
        sorted(set(verifiers)),
        search.document("\n".join((example.key, *texts))),
    )


def repeated_keys() -> Iterator[tuple[int, str, int]]:
    """(line, key, line of the first) of every row whose key came before; these rows are taken out."""
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


def facts() -> tuple[dict[str, int], dict[str, dict[str, int]], str]:
    """Counts by kind, facets for the filters, and the version digest of the staged rows."""
    with connection.cursor() as cursor:
        cursor.execute("""
            SELECT count(*), count(*) FILTER (WHERE split = 'train'), count(*) FILTER (WHERE split = 'heldout'),
                   count(*) FILTER (WHERE criteria_count > 0), coalesce(sum(criteria_count), 0),
                   coalesce(sum(verifiable_count), 0), coalesce(sum(response_count), 0),
                   coalesce(sum(preference_count), 0),
                   encode(sha256(coalesce(string_agg(digest || E'\n', '' ORDER BY digest COLLATE "C"), '')::bytea), 'hex')
            FROM import_rows
        """)
        row = cursor.fetchone()
        names = "examples train heldout rubrics criteria verifiable_criteria responses preferences"
        counts = dict(zip(names.split(), map(int, row[:-1]), strict=True))
        return counts, {facet: _facet(cursor, column) for facet, column in FACETS.items()}, row[-1]


FACETS = {"domain": "domain", "source": "source", "verifier": "unnest(verifiers)"}
FACET_VALUES = 100  # the commonest; the filter takes any value


def _facet(cursor: Any, column: str) -> dict[str, int]:
    cursor.execute(
        f"SELECT value, count(*) FROM (SELECT {column} AS value FROM import_rows) AS v "  # noqa: S608  constants above
        f"WHERE value <> '' GROUP BY value ORDER BY count(*) DESC, value LIMIT {FACET_VALUES}"
    )
    return dict(cursor.fetchall())


def move(dataset_id: int, version_id: int) -> None:
    """Stores the staged rows as examples, where they are new, and lists them all in the version, in file order."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO datasets_example (dataset_id, key, digest, canonical, excerpt, split, domain, source,
                criteria_count, response_count, preference_count, verifiers, search, created_at)
            SELECT %s, key, digest, canonical, excerpt, split, domain, source,
                criteria_count, response_count, preference_count, verifiers, search, now()
            FROM import_rows ORDER BY line
            ON CONFLICT (dataset_id, digest) DO NOTHING
            """,
            [dataset_id],
        )
        cursor.execute(
            """
            INSERT INTO datasets_versionmember (version_id, example_id, position)
            SELECT %s, example.id, row_number() OVER (ORDER BY staged.line) - 1
            FROM import_rows AS staged
            JOIN datasets_example AS example ON example.dataset_id = %s AND example.digest = staged.digest
            """,
            [version_id, dataset_id],
        )
