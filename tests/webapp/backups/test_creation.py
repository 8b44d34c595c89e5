"""Several backups: their cost, their ends, and the state after a failure."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from webapp.accounts.models import User
from webapp.backups import files, manifest, places, rows, services
from webapp.backups.models import Backup, Origin
from webapp.backups.store import open_store
from webapp.core.background import jobs
from webapp.core.problems import Conflict
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[3]
MODEL = "models/tiny/model.safetensors"


@pytest.fixture
def lab(team, settings):
    """The folder with the files of a registered model in a workspace."""
    folder = settings.VAR / "models" / "tiny"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights" * 50_000)
    (folder / "config.json").write_text("{}")
    RegisteredModel.objects.create(workspace=team.workspace, name="tiny", source="local", path=str(folder))
    RegisteredModel.objects.create(workspace=team.workspace, name="far", source="local", path="/srv/models/far")
    return folder


def size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # it has its final name by now
        return 0


def newest(folder: Path) -> manifest.Manifest:
    store = open_store(folder, None)
    return manifest.read(store, manifest.newest(store))


def test_a_second_backup_copies_only_what_is_new(lab, folder, backed_up, monkeypatch):
    first = backed_up()
    read, content = [], files.content
    monkeypatch.setattr(files, "content", lambda file: read.append(file.path) or content(file))
    second = backed_up()
    assert read == [] and second.added < first.added / 2 and second.size >= first.size
    (lab / "config.json").write_text('{"hidden": 1}')
    backed_up()
    assert read == ["models/tiny/config.json"]
    assert len(open_store(folder, None).names()) == 3


def test_what_happens_after_the_snapshot_is_in_the_next_backup(lab, folder, backed_up, monkeypatch):
    """While the first backup copies, another function writes rows, removes the files and closes their folder."""
    tables = rows.tables

    def meanwhile(seen):
        shutil.rmtree(lab)
        User.objects.create_user("late@example.org")
        return tables(seen)

    people = User.objects.count()
    monkeypatch.setattr(rows, "tables", meanwhile)
    backed_up()
    monkeypatch.undo()
    found = newest(folder)
    assert {table.name: table.rows for table in found.tables}["accounts_user"] == people
    kept = {file.path: file.digest for file in found.files}
    assert b"".join(open_store(folder, None).read(kept[MODEL])) == b"weights" * 50_000
    assert found.elsewhere == ("/srv/models/far",) and found.lost == ()
    backed_up()
    later = newest(folder)
    assert {table.name: table.rows for table in later.tables}["accounts_user"] == people + 1
    assert later.files == () and later.lost == ("models/tiny",)


def test_nothing_pinned_stays(lab, backed_up, settings):
    backed_up()
    assert not (settings.VAR / files.PINNED).exists()


def test_one_at_a_time_and_a_dead_one_makes_room(lab, folder, backed_up):
    waiting = services.start(folder, Origin.PAGE)
    with pytest.raises(Conflict, match="under way already"):
        services.start(folder, Origin.COMMAND)
    Backup.objects.filter(pk=waiting.pk).update(state=Backup.State.RUNNING)  # and then its process died
    assert backed_up().state == Backup.State.FINISHED
    waiting.refresh_from_db()
    assert waiting.state == Backup.State.FAILED and "without a message" in waiting.problem


def test_one_under_way_ends_when_somebody_asks(lab, folder, monkeypatch):
    monkeypatch.setattr(jobs, "STOP_LOOK_S", 0)
    backup = services.start(folder, Origin.PAGE)
    tables = rows.tables
    monkeypatch.setattr(rows, "tables", lambda seen: services.stop(backup) or tables(seen))
    services.carry_out(backup.pk, None)
    backup.refresh_from_db()
    assert backup.state == Backup.State.CANCELLED and backup.open is None
    assert open_store(folder, None).names() == []
    with pytest.raises(Conflict):
        services.stop(backup)


def test_a_disk_without_room_is_told_before_and_while_files_are_copied(lab, folder, backed_up, monkeypatch):
    (first,) = [backed_up().name]
    (lab / "model.safetensors").write_bytes(b"other" * 50_000)
    monkeypatch.setattr(places.FolderPlace, "free", lambda place: 1000)
    assert "has 1000\N{NO-BREAK SPACE}bytes free; this backup needs " in backed_up(Backup.State.FAILED).problem
    monkeypatch.undo()

    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield b""

    monkeypatch.setattr(files, "content", full)
    assert "is full. Free some space" in backed_up(Backup.State.FAILED).problem
    monkeypatch.undo()
    assert open_store(folder, None).names() == [first]
    backed_up()


def test_a_killed_backup_leaves_the_earlier_one_and_the_next_completes(lab, folder, backed_up, settings):
    first = backed_up().name
    with (lab / "large.safetensors").open("wb") as file:
        file.truncate(2_000_000_000)  # it takes no room here, and is long enough to copy
    database = settings.DATABASES["default"]
    address = f"postgresql://{database['USER']}@/{database['NAME']}?host={database['HOST'].replace('/', '%2F')}"
    process = subprocess.Popen(
        [sys.executable, "manage.py", "backup", str(folder)],
        env={**os.environ, "DATABASE_URL": address, "TOUCHSTONE_VAR": str(settings.VAR)},
        cwd=ROOT,
    )
    try:
        deadline = time.monotonic() + 120
        while not any(size(path) > 10_000_000 for path in folder.glob("*.partial")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert open_store(folder, None).names() == [first]
    (lab / "large.safetensors").unlink()
    while not services.end_lost(timedelta(0)):  # the database needs a moment to see that the process has ended
        assert time.monotonic() < deadline
        time.sleep(0.05)
    second = backed_up()
    assert open_store(folder, None).names() == [first, second.name]
    assert not list(folder.rglob("*.partial")) and not (settings.VAR / files.PINNED).exists()


def test_the_command_says_what_it_did_and_what_to_keep(lab, folder, capsys):
    call_command("backup", str(folder))
    said = capsys.readouterr().out
    assert "2 files" in said and "elsewhere: /srv/models/far" in said and "secret_key" in said
    assert newest(folder).key is None
    with pytest.raises(CommandError, match="at least 12 characters|cannot be read"):
        call_command("backup", str(folder), key_file=folder / "none")
