import json
import os
from pathlib import Path

import pytest

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
