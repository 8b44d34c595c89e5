import json
import os
from pathlib import Path

import pytest
from django.db import connection

from webapp.datasets.ingest import services
from webapp.datasets.models import ImportJob

ROOT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("TOUCHSTONE_SHARED", ROOT.parent / "shared"))


@pytest.fixture
def import_rows(team, tmp_path):
    """Imports bytes, text or rows for the researcher, in this process. Returns the finished job."""

    def run(content, name="demo", file_name="rows.jsonl", **options) -> ImportJob:
        if isinstance(content, list):
            content = "".join(json.dumps(row) + "\n" for row in content)
        path = tmp_path / file_name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        job = services.start_import(team.researcher, path, name=name, queue=False, **options)
        services.run_import(job.pk)
        job.refresh_from_db()
        return job

    return run


OF_EXAMPLES = ["datasets_example", "datasets_versionmember"]


def make_seem_empty():
    """Lets the database believe until the end of the test that all rows of the tables of examples were removed."""
    with connection.cursor() as cursor:
        if not cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()[0]:
            pytest.skip("only a superuser may write statistics")
        cursor.execute("UPDATE pg_class SET relpages = 1, reltuples = 0 WHERE relname = ANY(%s)", [OF_EXAMPLES])


def known_rows() -> list[int]:
    """The rows that the database knows of in the tables of examples and of members."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = ANY(%s) ORDER BY relname", [OF_EXAMPLES])
        return [int(count) for (count,) in cursor.fetchall()]


def row(key="e1", **extra):
    return {"key": key, "prompt": [{"role": "user", "content": f"Prompt of {key}"}], **extra}


@pytest.fixture
def shared():
    """The path of a real file. If the file is missing, it skips the test and says where the file was expected."""

    def find(name: str) -> Path:
        path = SHARED / "data" / name
        if not path.exists():
            pytest.skip(f"needs {path}; set TOUCHSTONE_SHARED to the folder that holds data/")
        return path

    return find
