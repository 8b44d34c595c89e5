"""Tells the database how many rows the tables of examples have, by ANALYZE. It plans queries by that, and would learn it only minutes later."""

from django.db import connection

ANALYZE_FROM = 5_000  # from this many rows on, the planner's statistics are renewed
EXAMPLES, MEMBERS = "datasets_example", "datasets_versionmember"
# only those columns of examples that queries search; the others, with wide texts, take a second
SEARCHED = {EXAMPLES: "(id, dataset_id, key, digest)", MEMBERS: ""}


def analyze(rows: int) -> None:
    """Call it after this many rows were added."""
    if rows >= ANALYZE_FROM:
        _analyze(*SEARCHED)


def analyze_emptied(*tables: str) -> None:
    """Call it after rows were added to these tables. It does nothing if the database knows of rows in them.

    A table from which all rows were removed keeps its pages, and seems empty however many rows follow. To read a whole index then seems
    as quick as to search it, so a join compares each row with all others.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE oid = ANY(%s::regclass[]) AND reltuples = 0", [list(tables)])
        emptied = [name for (name,) in cursor.fetchall()]
    if emptied:
        _analyze(*emptied)


def _analyze(*tables: str) -> None:
    """Renews the statistics of these tables, except of those that another transaction holds, which renews them itself. To wait for one
    could be for ever: each table is held until its transaction ends, and that one may wait for a table of ours."""
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE (SKIP_LOCKED) {', '.join(f'{table} {SEARCHED[table]}' for table in tables)}")
