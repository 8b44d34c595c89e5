"""Databases of earlier commits, filled by their own code (see `make.py`), survive the upgrade: every page opens."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from psycopg import sql

from webapp.accounts import areas

HERE = Path(__file__).parent
DUMPS = sorted((HERE / "dumps").glob("*.sql"))
PAGES = ("/datasets/", "/projects/", "/runs/", "/evaluations/", "/judges/", "/settings/", "/api/v1/runs")
pytestmark = [pytest.mark.slow]


@pytest.fixture
def database(request):
    """The address of a database filled with a dump."""
    host = settings.DATABASES["default"]["HOST"]
    user, name = settings.DATABASES["default"]["USER"], f"upgrade_{request.param.stem}_{os.getpid()}"
    told = {"host": host, "user": user, "password": settings.DATABASES["default"]["PASSWORD"] or None}
    with psycopg.connect(dbname="postgres", autocommit=True, **told) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            with psycopg.connect(dbname=name, autocommit=True, **told) as made:
                made.execute(request.param.read_text())
            yield f"postgresql://{user}@/{name}?host={host.replace('/', '%2F')}"
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_there_are_databases_to_upgrade():
    assert len(DUMPS) >= 3


@pytest.mark.parametrize("database", DUMPS, ids=lambda dump: dump.stem, indirect=True)
def test_every_page_opens_after_the_upgrade(database, tmp_path):
    env = {**os.environ, "DATABASE_URL": database, "TOUCHSTONE_VAR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.upgrade.crawl"], env=env, cwd=HERE.parents[1], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    bad = {address: status for address, status in told["opened"].items() if status not in (200, 302)}
    assert not bad
    assert len(told["opened"]) > 100
    assert {address for address, status in told["unlinked"].items() if status >= 500} <= {"/readyz"}  # without services
    assert all(any(address.startswith(page) for address in told["opened"]) for page in PAGES)
    assert told["search"] > 0 and told["publishes"]
    assert told["tokens"] == [areas.everywhere("write")]  # they keep what they could
