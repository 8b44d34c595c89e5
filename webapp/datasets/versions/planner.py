"""Tells the database how many rows the tables of examples have, by ANALYZE. It plans queries by that, and would learn it only minutes later."""

from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable

ANALYZE_FROM = 5_000  # from this many rows on, the planner's statistics are renewed
WAITS_S = 20  # an autovacuum makes room after one second
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
    """Renews the statistics of these tables, each in a transaction of its own, and waits a little for what holds one: an ANALYZE that began
    before our rows were there would not know them.

    Within a transaction, each table is held until it ends, and to wait for another one that does the same could be for ever. So those that
    are held then are left out.
    """
    named = ", ".join(f"{table} {SEARCHED[table]}" for table in tables)
    with connection.cursor() as cursor:
        if connection.in_atomic_block:
            cursor.execute(f"ANALYZE (SKIP_LOCKED) {named}")
            return
        cursor.execute("SET lock_timeout = %s", [f"{WAITS_S}s"])
        try:
            cursor.execute(f"ANALYZE {named}")
        except OperationalError as error:
            if not isinstance(error.__cause__, LockNotAvailable):
                raise
        finally:
            cursor.execute("RESET lock_timeout")
