"""What was backed up comes back: every row, every file, in another place; or a sentence says why not."""

import os
import threading
from contextlib import contextmanager
from itertools import count

import pytest
from django.core.management import call_command
from django.db import connection

from tests.upgrade import make
from webapp.annotation.models import Project
from webapp.annotation.services import queue
from webapp.backups import rows
from webapp.localstack.postgres import Postgres

MOVED = "inference_registeredmodel"  # its rows name files of the installation
TORN = (
    "SELECT count(*) FROM annotation_answer a LEFT JOIN annotation_assignment s ON s.id = a.assignment_id WHERE s.id IS NULL",
    "SELECT count(*) FROM annotation_assignment s WHERE state = 'submitted' AND NOT EXISTS "
    "(SELECT FROM annotation_answer a WHERE a.assignment_id = s.id)",
    "SELECT count(*) FROM datasets_datasetversion v WHERE (counts->>'examples')::int <> "
    "(SELECT count(*) FROM datasets_versionmember m WHERE m.version_id = v.id)",
)


@pytest.fixture(autouse=True)
def same_umask():
    before = os.umask(0)
    os.umask(before)
    yield
    os.umask(before)


def texts(seen: rows.Connection) -> dict[str, bytes]:
    """All rows of all tables, as text."""
    return {table.name: b"".join(rows.copy_out(seen, table, lambda _: None)) for table in rows.tables(seen)}


def files(var) -> dict[str, bytes]:
    places = (path for folder in ("runs", "models") for path in (var / folder).rglob("*") if path.is_file())
    return {path.relative_to(var).as_posix(): path.read_bytes() for path in places if ".partial" not in str(path)}


@contextmanager
def annotating(workspace):
    """Its people annotate, each as fast as the database lets them."""
    over, given = threading.Event(), count()

    def work(person) -> None:
        while not over.is_set():
            for project in Project.objects.order_by("id"):
                for seat in queue.claim(person, project)[:1]:
                    queue.submit(person, seat, make.content(project.kind, next(given), True))
        connection.close()

    people = [threading.Thread(target=work, args=[each]) for each in workspace.memberships.all()]
    for each in people:
        each.start()
    try:
        yield
    finally:
        over.set()
        for each in people:
            each.join()


def test_all_that_an_installation_holds_at_one_moment_comes_back(
    installation, folder, backed_up, key_file, home, settings, monkeypatch, capsys
):
    before, tables = {}, rows.tables

    def look(seen):
        """What the snapshot saw, read again by itself."""
        monkeypatch.setattr(rows, "tables", tables)
        before.update(texts(seen))
        return tables(seen)

    monkeypatch.setattr(rows, "tables", look)
    with annotating(installation.workspace):
        backup = backed_up(key_file=key_file)
    call_command("restore", str(folder), into=home, key_file=key_file)
    assert "Restored and compared" in capsys.readouterr().out
    assert backup.rows == sum(data.count(b"\n") for data in before.values())
    assert (home / "secret_key").read_text() == settings.SECRET_KEY
    assert files(settings.VAR) == files(home) and len(files(home)) == 5
    server = Postgres(home, durable=False)
    server.start()
    try:
        with rows.snapshot(server.url()) as seen:
            after = texts(seen)
            torn = [seen.execute(query.encode()).fetchone() for query in TORN]
    finally:
        server.stop()
    assert after.keys() == before.keys()
    assert {name for name in before if before[name] != after[name]} == {MOVED}
    assert before[MOVED].replace(str(settings.VAR).encode(), str(home).encode()) == after[MOVED]
    assert torn == [(0,), (0,), (0,)]
