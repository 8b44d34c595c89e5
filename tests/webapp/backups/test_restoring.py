"""A backup is restored in another place with every row and every file, or a sentence gives the reason why not."""

import os
import threading
import time
from contextlib import contextmanager, nullcontext
from itertools import count

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from tests.timeouts import SECONDS
from tests.upgrade import make
from webapp.accounts.models import Workspace
from webapp.annotation.models import Project
from webapp.annotation.work import queue
from webapp.backups import creation, loading, manifest, restoring, rows
from webapp.backups.models import Backup
from webapp.backups.problems import BackupProblem, Damaged
from webapp.backups.store import open_store
from webapp.core import encryption
from webapp.localstack.postgres import Postgres
from webapp.webhooks.models import Webhook

from .conftest import WHERE

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
    """People annotate during the backup, each as fast as the database allows."""
    over, given = threading.Event(), count()

    def work(person) -> None:
        while not over.wait(0.02):
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


def sealed_before(settings) -> None:
    """SECRET_KEY was changed, but a webhook's secret is still sealed with the former key, because nobody has run `reencrypt`."""
    webhook = Webhook.objects.get_or_create(
        workspace=Workspace.objects.order_by("id").first(), url="https://x.example/hook", defaults={"events": []}
    )[0]
    Webhook.objects.exclude(pk=webhook.pk).delete()
    Webhook.objects.filter(pk=webhook.pk).update(secret=encryption.seal("of before"))
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = (
        "the key that came after the first one did",
        [settings.SECRET_KEY],
    )


def test_all_that_an_installation_holds_at_one_moment_comes_back(
    installation, server, key_file, home, settings, monkeypatch, capsys
):
    """This backup is in a bucket. The next one is in a folder."""
    before, tables = {}, rows.tables
    sealed_before(settings)

    def look(seen):
        """Reads the rows of the snapshot by other means."""
        monkeypatch.setattr(rows, "tables", tables)
        before.update(texts(seen))
        return tables(seen)

    monkeypatch.setattr(rows, "tables", look)
    with annotating(installation.workspace):
        call_command("backup", WHERE, key_file=key_file)
    backup = Backup.objects.get()
    call_command("restore", WHERE, into=home, key_file=key_file)
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
            (packed,) = seen.execute("SELECT count(*) FROM experiments_point WHERE step >= 1000").fetchone()
            (secret,) = seen.execute("SELECT secret FROM webhooks_webhook").fetchone()
    finally:
        server.stop()
    assert after.keys() == before.keys()
    assert {name for name in before if before[name] != after[name]} == {MOVED, "webhooks_webhook"}
    settings.SECRET_KEY_FALLBACKS = []
    # the backup had the former key, and after the restoration it is not needed any more
    assert encryption.unseal(secret) == "of before"
    assert before[MOVED].replace(str(settings.VAR).encode(), str(home).encode()) == after[MOVED]
    assert torn == [(0,), (0,), (0,)]
    assert packed == 600 and after["experiments_metricstretch"].count(b"\n") == 8


@pytest.fixture
def older(team, folder):
    """A backup of a release before the migrations of backups, with a column that no longer exists."""
    recorder = MigrationRecorder(connection)
    ours = [each for each in recorder.applied_migrations() if each[0] == "backups"]
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE webhooks_webhook ADD COLUMN of_before varchar(20)")
        for each in ours:
            recorder.record_unapplied(*each)
        try:
            made = creation.make(open_store(folder, None, create=True), lambda done, total: None)[1]
        finally:
            for each in ours:
                recorder.record_applied(*each)
            cursor.execute("ALTER TABLE webhooks_webhook DROP COLUMN of_before")
    return made.model_copy(update={"tables": tuple(t for t in made.tables if not t.name.startswith("backups_"))})


@pytest.mark.django_db(transaction=True)
def test_a_backup_of_an_older_release_is_upgraded_in_a_database_of_ones_own(older, folder, database, home):
    new, store = database(f"backup_new_{os.getpid()}"), open_store(folder, None)
    restoring.restore(store, older, home, database=new)
    with psycopg.connect(new) as server:
        people = server.execute("SELECT count(*) FROM accounts_user").fetchone()
        applied = server.execute("SELECT count(*) FROM django_migrations").fetchone()
        assert server.execute("SELECT count(*), count(of_before) FROM webhooks_webhook").fetchone() == (0, 0)
        assert server.execute("SELECT count(*) FROM backups_backup").fetchone() == (0,)  # the upgrade made this table
    assert (people, applied) == ((5,), (MigrationRecorder.Migration.objects.count(),))
    assert applied[0] > len(older.migrations)
    with pytest.raises(BackupProblem, match="The database is not empty: it has a table"):
        restoring.restore(store, older, home.parent / "again", database=new)
    assert [path.name for path in (home.parent / "again").iterdir()] == ["secret_key"]


@pytest.fixture
def small(team, backed_up, folder):
    """A backup of a workspace, and its store."""
    backed_up()
    return open_store(folder, None)


@pytest.mark.django_db(transaction=True)
class TestRefusals:
    def test_a_folder_that_is_not_empty(self, small, tmp_path):
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "notes.txt").write_text("mine")
        with pytest.raises(CommandError, match=r"mine is not empty: it contains notes\.txt"):
            call_command("restore", small.place.title, into=tmp_path / "mine")
        assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"

    def test_a_backup_of_a_newer_release(self, small, tmp_path):
        kept = manifest.read(small, manifest.newest(small))
        newer = kept.model_copy(update={"migrations": (*kept.migrations, ("core", "9999_later")), "version": "9.0"})
        with pytest.raises(BackupProblem, match=r"made by Touchstone 9\.0, which is newer .* core\.9999_later"):
            restoring.restore(small, newer, tmp_path / "new")
        assert not (tmp_path / "new").exists()

    def test_a_form_of_a_newer_release(self, small):
        small.write_manifest("2999-01-01T000000Z", b'{"format":3,"all":"new"}')
        with pytest.raises(CommandError, match="A newer version of Touchstone made this backup"):
            call_command("restore", small.place.title, into="/nowhere")

    def test_a_wrong_or_missing_key(self, small, key_file):
        with pytest.raises(CommandError, match="are not encrypted"):
            call_command("restore", small.place.title, into="/nowhere", key_file=key_file)

    def test_no_backup_at_all(self, tmp_path):
        with pytest.raises(CommandError, match="There are no backups in"):
            call_command("restore", str(tmp_path), into="/nowhere")

    def test_rows_that_are_not_what_was_backed_up(self, small):
        kept = manifest.read(small, manifest.newest(small))
        users = next(table for table in kept.tables if table.name == "accounts_user")
        odd = users.model_copy(update={"digest": "0" * 64})
        few = users.model_copy(update={"rows": users.rows + 1})
        with rows.snapshot(creation.address()) as seen:
            loading.compare(seen, users, lambda more: None)
            with pytest.raises(Damaged, match="accounts_user was restored with other contents"):
                loading.compare(seen, odd, lambda more: None)
            with pytest.raises(Damaged, match="accounts_user was restored with 5 rows; the backup says 6"):
                loading.compare(seen, few, lambda more: None)

    @pytest.mark.parametrize(
        "kind",
        ["integer DEFAULT pg_sleep(0)", "integer; SELECT 1", "integer CHECK (true)", "text, ADD b text", "text\n", ""],
    )
    def test_a_type_of_a_column_that_is_more_than_a_type(self, kind):
        with rows.connected(creation.address()) as seen, seen.transaction(force_rollback=True):
            (users,) = (table for table in rows.tables(seen) if table.name == "accounts_user")
            odd = manifest.TableRows(
                name=users.name, columns=(*users.columns, "odd"), types=(*users.types, kind), rows=0, bytes=0, digest=""
            )
            with pytest.raises(BackupProblem, match=r"The column accounts_user\.odd of the backup has an unknown type"):
                loading._fits(seen, [odd])
            loading._fits(seen, [odd.model_copy(update={"types": (*users.types, "character varying(20)[]")})])
            assert "odd" in next(table.columns for table in rows.tables(seen) if table.name == "accounts_user")

    def test_every_type_of_the_database_is_a_type(self):
        with rows.snapshot(creation.address()) as seen:
            kinds = {kind for table in rows.tables(seen) for kind in table.types}
        others = {
            '"char"',
            "numeric(10,2)",
            "timestamp(3) without time zone",
            "bit varying(8)",
            'public."Mood"',
            "text[]",
        }
        assert len(kinds) > 5 and not [kind for kind in kinds | others if not loading.TYPE.fullmatch(kind)]

    @pytest.mark.parametrize("failing", ["_rows", "_file"])
    def test_what_fails_first_ends_the_other_half_and_is_told(self, small, tmp_path, monkeypatch, failing):
        """Rows and files are restored at the same time. An error in one is reported without waiting for the end of the other."""
        both, turns = threading.Barrier(2), []

        def fails(*told):
            both.wait(SECONDS)
            raise Damaged("the reason")

        def goes_on(*told):
            both.wait(SECONDS)
            while len(turns) < 100 * SECONDS:
                turns.append(told[-1](0))
                time.sleep(0.01)

        kept = manifest.read(small, manifest.newest(small))
        one = manifest.KeptFile(path="one", bytes=1, modified=1, digest="0" * 64)
        monkeypatch.setattr(restoring, "_Inside", lambda *told: nullcontext())
        for name in ("_rows", "_file"):
            monkeypatch.setattr(restoring, name, fails if name == failing else goes_on)
        with pytest.raises(Damaged, match="the reason"):
            restoring.restore(
                small, kept.model_copy(update={"files": (one,)}), tmp_path / "new", database="postgresql:///none"
            )
        assert len(turns) < 100 * SECONDS, "the other one has gone on to its end"

    def test_ctrl_c_leaves_undone_what_waits(self, monkeypatch):
        begun = []

        def interrupted(*told, **options):
            raise KeyboardInterrupt

        def work(number, at):
            begun.append(number)
            time.sleep(0.01)
            at(1)

        monkeypatch.setattr(loading, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            loading.all_of(work, range(200), lambda more: None)
        assert len(begun) < 100

    def test_a_file_outside_of_the_folder(self, small, tmp_path):
        kept = manifest.read(small, manifest.newest(small))
        evil = manifest.KeptFile(path="../evil", bytes=1, modified=1, digest="0" * 64)
        with pytest.raises(Damaged, match="outside of its folder"):
            restoring._files(small, kept.model_copy(update={"files": (evil,)}), tmp_path / "new", lambda more: None)
