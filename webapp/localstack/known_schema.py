"""Whether `upgrade` has already run for exactly this code and this database: then the start need not wait for it.

What `manage.py upgrade` does and prints depends on the code and on the schema. Both are recorded after it has succeeded; while neither
changes, it would do the same.
"""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import psycopg
from django.conf import settings

from webapp.machine.places import facts, write_facts

FACTS = "schema"
BASE = Path(settings.BASE_DIR)
# The migrations that were applied, and what the tables look like: a database from a backup, or one that somebody altered, differs
SCHEMA = (
    "SELECT app, name FROM django_migrations",
    """
    SELECT attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull, attcollation::regcollation, attidentity,
           pg_get_expr(adbin, adrelid)
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND attnum > 0 AND NOT attisdropped
    """,
    """
    SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = current_schema()::regnamespace
    """,
    "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()",
    "SELECT tgenabled, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
)


def is_current(url: str) -> bool:
    """Whether the last successful `upgrade` saw this code, and left the database at `url` as it is now."""
    known = facts(settings.VAR, FACTS)
    return bool(known) and known == {"code": _code(), "schema": _schema(url)}


def remember(url: str) -> None:
    """Records a successful `upgrade`. If the record does not fit on the disk, `upgrade` simply runs again."""
    if found := _schema(url):
        with suppress(OSError):
            write_facts(settings.VAR, FACTS, code=_code(), schema=found)


def _code() -> str:
    """A digest of our code, with models and migrations, and of the packages, some of which bring their own."""
    found = sha256()
    for path in sorted([BASE / "requirements.lock", *BASE.glob("webapp/**/*.py")]):
        found.update(f"{path.relative_to(BASE)}\n".encode() + path.read_bytes())
    return found.hexdigest()


def _schema(url: str) -> str:
    """A digest of the schema; empty if the database does not answer."""
    try:
        with psycopg.connect(url, connect_timeout=2) as connection:
            rows = [sorted(map(str, connection.execute(query).fetchall())) for query in SCHEMA]
    except psycopg.Error:
        return ""
    return sha256(str(rows).encode()).hexdigest()
