"""An empty database without the processor time of migrations. It is made once, kept as SQL, and copied for each process.

The migrations took eleven seconds in each test process, mostly for Django's models of every state between two migrations. The result is
kept in `.pytest_cache`, under a name that changes with the migrations and the packages. Django migrates the copy as well, and finds nothing
to do.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql

from webapp.localstack.postgres import DATABASE, Postgres

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".pytest_cache"
TEMPLATE = "test_schema"
READING = ("--no-psqlrc", "--quiet", "--output=/dev/null", "--set=ON_ERROR_STOP=1")
PROGRAMS = (
    "TEST_POSTGRES_PROGRAMS"  # the programs of the embedded server; not set if the server is not the embedded one
)


@contextmanager
def template() -> Iterator[None]:
    """In this context, databases of tests are copied from the template, by one process at a time. The first process makes the template."""
    if PROGRAMS not in os.environ:
        yield
        return
    with psycopg.connect(dbname="postgres", autocommit=True, **_server()) as server:
        server.execute("SELECT pg_advisory_lock(1)")  # until the connection ends
        there = _exists(server) or _read(server)
        if there:
            of_tests: Any = settings.DATABASES["default"]["TEST"]
            of_tests["TEMPLATE"] = TEMPLATE
        yield
        if not there:
            made = connection.settings_dict["NAME"]
            connection.close()  # nobody may be connected to a database that is copied
            copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            server.execute(copy.format(sql.Identifier(TEMPLATE), sql.Identifier(made)))
            _write()


def schema_file() -> Path:
    """The file for these migrations and packages."""
    digest = sha256()
    for path in sorted([ROOT / "requirements.lock", *ROOT.glob("webapp/*/migrations/*.py")]):
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return KEPT / f"schema-{digest.hexdigest()[:16]}.sql"


def read_into(server: Postgres) -> None:
    """Fills the database of the product on a server that has just been made."""
    command = [str(server.install / "bin" / "psql"), *READING, f"--host={server.socket_dir}"]
    subprocess.run(
        [*command, f"--username={server.user}", f"--dbname={DATABASE}", f"--file={schema_file()}"], check=True
    )


def _server() -> dict[str, Any]:
    return {"host": settings.DATABASES["default"]["HOST"], "user": settings.DATABASES["default"]["USER"]}


def _exists(server: psycopg.Connection) -> bool:
    return bool(server.execute("SELECT 1 FROM pg_database WHERE datname = %s", [TEMPLATE]).fetchone())


def _read(server: psycopg.Connection) -> bool:
    """Makes the template from the kept SQL; False if there is none."""
    if not (path := schema_file()).exists():
        return False
    server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
    _program("psql", *READING, f"--file={path}")
    return True


def _write() -> None:
    KEPT.mkdir(exist_ok=True)
    part, whole = KEPT / f"{os.getpid()}.sql", schema_file()
    _program("pg_dump", f"--file={part}")
    part.rename(whole)
    for old in set(KEPT.glob("schema-*.sql")) - {whole}:  # another process may be about to read the current one
        old.unlink(missing_ok=True)


def _program(name: str, *options: str) -> None:
    told = _server()
    where = [f"--host={told['host']}", f"--username={told['user']}", f"--dbname={TEMPLATE}"]
    subprocess.run([str(Path(os.environ[PROGRAMS], name)), *where, *options], check=True)
