"""Databases of earlier commits, filled by their own code (see `make.py`), can be upgraded, and every page opens."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

from tests.upgrade.crawl import POINT
from webapp.accounts import areas

HERE = Path(__file__).parent
DUMPS = sorted((HERE / "dumps").glob("*.sql"))
PAGES = ("/datasets/", "/projects/", "/runs/", "/evaluations/", "/judges/", "/settings/", "/api/v1/runs")
pytestmark = [pytest.mark.slow]


def server() -> dict[str, Any]:
    """The address of the database server. It is known after the tests' database was started."""
    known: dict[str, Any] = settings.DATABASES["default"]
    return {"host": known["HOST"], "user": known["USER"], "password": known["PASSWORD"] or None}


@contextmanager
def database(dump: Path) -> Iterator[str]:
    """The name of a database filled with a dump."""
    told = server()
    name = f"upgrade_{dump.stem}_{os.getpid()}"
    with psycopg.connect(dbname="postgres", autocommit=True, **told) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            with psycopg.connect(dbname=name, autocommit=True, **told) as made:
                made.execute(dump.read_text())
            yield name
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def stored_points(name: str) -> list[list[object]]:
    """The points as every commit before stored them: one row for each point."""
    read = sql.SQL("SELECT {} FROM experiments_metricpoint").format(sql.SQL(", ").join(map(sql.Identifier, POINT)))
    with psycopg.connect(dbname=name, **server()) as made:
        return in_order(made.execute(read).fetchall())


TEACH = """
WITH big AS (
    INSERT INTO inference_registeredmodel (id, name, source, path, description, facts, created_at, workspace_id)
    SELECT 1000, 'big', source, '/models/big', description, facts, created_at, workspace_id FROM inference_registeredmodel WHERE id = 1
    RETURNING id
)
UPDATE experiments_run SET teacher_id = big.id FROM big RETURNING experiments_run.id, model_id, teacher_id
"""
"""Gives each run a second model to learn from, as was possible when models were named in columns."""


def named_models(name: str) -> list[tuple[object, ...]]:
    """The models that the runs must name after the upgrade. There are none if the slots are rows already."""
    with psycopg.connect(dbname=name, autocommit=True, **server()) as made:
        column = (
            "SELECT FROM information_schema.columns WHERE (table_name, column_name) = ('experiments_run', 'teacher_id')"
        )
        runs = made.execute(TEACH).fetchall() if made.execute(column).fetchone() is not None else []
    slots = (("base", "model.name"), ("teacher", "objective.teacher"))
    return [(run, *slot, model) for run, *models in sorted(runs) for slot, model in zip(slots, models, strict=True)]


def slots(name: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dbname=name, **server()) as made:
        return made.execute("SELECT run_id, role, path, model_id FROM experiments_runslot ORDER BY 1, id").fetchall()


def in_order(rows: Iterable[Iterable[object]]) -> list[list[object]]:
    return sorted(map(list, rows), key=lambda row: row[:3])


@pytest.fixture(scope="module")
def crawler(tmp_path_factory) -> Iterator[subprocess.Popen[str]]:
    """A process that upgrades and checks one database after the other. Its messages are in `errors`."""
    known, var = server(), tmp_path_factory.mktemp("var")
    url = f"postgresql://{known['user']}@/postgres?host={str(known['host']).replace('/', '%2F')}"
    env = {**os.environ, "DATABASE_URL": url, "TOUCHSTONE_VAR": str(var)}
    command = [sys.executable, "-m", "tests.upgrade.crawl"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (var / "errors").open("w") as errors:
        process = subprocess.Popen(command, env=env, cwd=HERE.parents[1], stderr=errors, **pipes)
        process.errors = var / "errors"  # type: ignore[attr-defined]
        with process:
            yield process


def test_there_are_databases_to_upgrade():
    assert len(DUMPS) >= 3
    assert any("teacher_id bigint" in dump.read_text() for dump in DUMPS), "runs whose models become slots"


@pytest.mark.parametrize("dump", DUMPS, ids=lambda dump: dump.stem)
def test_every_page_opens_after_the_upgrade(crawler, dump):
    with database(dump) as name:
        points, named = stored_points(name), named_models(name)
        print(name, file=crawler.stdin, flush=True)
        said = crawler.stdout.readline()
        kept = slots(name)
    assert said.strip(), crawler.errors.read_text()[-3000:]
    told = json.loads(said)
    bad = {address: status for address, status in told["opened"].items() if status not in (200, 302)}
    assert not bad
    assert len(told["opened"]) > 100
    # because no services run
    assert {address for address, status in told["unlinked"].items() if status >= 500} <= {"/readyz"}
    assert all(any(address.startswith(page) for address in told["opened"]) for page in PAGES)
    assert told["search"] > 0 and told["publishes"]
    assert in_order(told["points"]) == points != []
    assert not named or kept == named
    assert told["tokens"] == [areas.rights_in_all_areas("write")]  # the tokens keep the rights that they had
    before, after, all_of_them = told["responses"]
    assert before == [all_of_them[0], 0] and after == all_of_them and all_of_them[0] > 0
