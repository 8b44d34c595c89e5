"""The administrators' page: its content, its buttons, and the backups that beat starts by itself."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from tests.timeouts import SECONDS
from webapp.backups import drill, queries, restoring, retention, services
from webapp.backups.models import Backup, BackupDrill, BackupPlan, Origin
from webapp.backups.problems import Damaged
from webapp.backups.store import open_store
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict

PAGE = "/installation/backups"
NOW = datetime(2026, 11, 23, 12, 30, tzinfo=UTC)


@pytest.fixture
def plan(db):
    BackupPlan.objects.create(pk=1, hour=2)
    BackupPlan.objects.update(changed_at=NOW - timedelta(days=30))


@pytest.mark.django_db
class TestPage:
    def test_only_administrators_come_in(self, team, as_researcher, as_outsider):
        for each in (as_researcher, as_outsider):
            assert each.get(PAGE).status_code == 403
            assert each.post(f"{PAGE}/start").status_code == 403
            assert each.post(f"{PAGE}/1/cancel").status_code == 403
            assert each.post(f"{PAGE}/drills/start").status_code == 403
            assert each.post(f"{PAGE}/drills/1/cancel").status_code == 403
        assert not Backup.objects.exists() and not BackupDrill.objects.exists()

    def test_without_a_folder_it_says_how_to_set_one(self, as_owner):
        text = as_owner.get(PAGE).content.decode()
        assert "BACKUP_FOLDER" in text and "Back up now" not in text
        as_owner.post(f"{PAGE}/start")
        assert not Backup.objects.exists()

    def test_a_backup_is_started_shown_and_cancelled(self, as_owner, settings, tmp_path):
        settings.BACKUP_FOLDER = tmp_path
        assert "Back up now" in as_owner.get(PAGE).content.decode()
        as_owner.post(f"{PAGE}/start")
        (backup,) = Backup.objects.all()
        text = as_owner.get(PAGE).content.decode()
        assert "A backup is under way" in text and "waiting for a worker" in text and "Back up now" not in text
        as_owner.post(f"{PAGE}/start")
        assert Backup.objects.count() == 1
        as_owner.post(f"{PAGE}/{backup.pk}/cancel")
        assert "cancelled" in as_owner.get(PAGE).content.decode()

    def test_backups_and_drills_are_told(self, as_owner):
        told = {"origin": "command", "folder": "/b", "open": None, "finished_at": NOW, "started_at": NOW}
        Backup.objects.create(
            **told, state="finished", name="2026-11-22T020000Z", size=5 << 20, added=1 << 20, rows=7, files=2
        )
        Backup.objects.create(**told, state="failed", problem="The disk of /b is full.")
        over = {"name": "2026-11-22T020000Z", "finished_at": NOW}
        BackupDrill.objects.create(**over, passed=True, seconds=12, rows=7, files=2)
        BackupDrill.objects.create(**over, passed=False, problem="A page broke.", seconds=3)
        BackupDrill.objects.create(**over, passed=None, problem="Somebody cancelled it.", seconds=1)
        text = as_owner.get(PAGE).content.decode().replace("\xa0", " ")
        for each in (
            "5.0 MB",
            "1.0 MB",
            "7 rows, 2 files",
            "complete",
            "failed",
            "The disk of /b is full.",
            "A page broke.",
        ):
            assert each in text
        assert "was restored in 12" in text and "The last drill failed" in text and "Somebody cancelled it" not in text
        assert "The last drill failed" in as_owner.get("/installation").content.decode()

    def test_the_plan_is_changed_and_audited_and_a_wrong_one_is_told_at_its_field(self, as_owner):
        wrong = as_owner.post(
            PAGE, {"when": "25", "keep_daily": "0", "keep_weekly": "4", "drill_days": "2", "drill_hour": "4"}
        )
        assert wrong.status_code == 422 and wrong.content.count(b'class="error"') == 3
        rest = {"keep_daily": "10", "keep_weekly": "0", "drill_days": "7", "drill_hour": "5"}
        told = {}
        for when in ("3", "every-15", ""):
            as_owner.post(PAGE, {"when": when, **rest})
            kept = BackupPlan.objects.get()
            told[when] = (kept.hour, kept.minutes, kept.keep_daily, kept.keep_weekly, kept.drill_days, kept.drill_hour)
            shown = as_owner.get(PAGE).content.decode()
            assert f'<option value="{when}" selected>' in shown and '<option value="7" selected>' in shown
        assert told == {"3": (3, None, 10, 0, 7, 5), "every-15": (None, 15, 10, 0, 7, 5), "": (None, None, 10, 0, 7, 5)}
        first = AuditEntry.objects.filter(action="backup_plan.changed").order_by("id").first()
        assert (first.detail["hour"], first.detail["drill_days"]) == (3, 7)


class TestPlan:
    def test_it_is_due_once_a_day_behind_its_hour(self, plan):
        assert services.is_due(NOW)
        made = Backup.objects.create(origin=Origin.SCHEDULE, folder="/b", open=None)
        for moment, due in ((NOW.replace(hour=2), False), (NOW, False), (NOW.replace(hour=1), True)):
            Backup.objects.filter(pk=made.pk).update(created_at=moment)
            assert services.is_due(NOW) is due
        Backup.objects.update(origin=Origin.PAGE, created_at=NOW)
        assert services.is_due(NOW)  # backups that a person starts do not follow the plan

    def test_a_plan_does_not_begin_with_the_hour_that_has_passed(self, plan):
        BackupPlan.objects.update(changed_at=NOW)
        assert not services.is_due(NOW) and services.is_due(NOW + timedelta(days=1))

    def test_no_hour_no_backup(self, db):
        assert not services.is_due(NOW)

    def test_every_so_many_minutes(self, plan):
        BackupPlan.objects.update(hour=None, minutes=15)
        assert services.is_due(NOW)
        Backup.objects.create(origin=Origin.SCHEDULE, folder="/b", open=None)
        for minutes, due in ((16, True), (15, True), (14, False)):
            Backup.objects.update(created_at=NOW - timedelta(minutes=minutes))
            assert services.is_due(NOW) is due

    def test_a_drill_is_due_once_in_so_many_days_behind_its_hour(self, plan):
        assert not drill.is_due(NOW)
        BackupPlan.objects.update(drill_days=7, drill_hour=4)
        assert drill.is_due(NOW)
        begun = BackupDrill.objects.create(origin=Origin.SCHEDULE)
        week_ago = NOW.replace(hour=4, minute=1) - timedelta(days=7)
        for moment, due in ((week_ago, True), (week_ago + timedelta(days=1), False), (NOW, False)):
            BackupDrill.objects.filter(pk=begun.pk).update(created_at=moment)
            assert drill.is_due(NOW) is due
        BackupDrill.objects.update(origin=Origin.PAGE, created_at=NOW)
        assert drill.is_due(NOW)

    @pytest.mark.django_db(transaction=True)
    def test_a_round_makes_what_is_due_and_removes_what_is_old(self, team, plan, settings, tmp_path, eager):
        settings.BACKUP_FOLDER, settings.BACKUP_KEY_FILE = tmp_path / "backups", None
        BackupPlan.objects.update(keep_daily=1, keep_weekly=0)
        for _ in range(2):
            services.look()
            Backup.objects.update(created_at=datetime.now(UTC) - timedelta(days=2))
        first, second = Backup.objects.order_by("id")
        assert first.state == second.state == Backup.State.FINISHED and first.name != second.name
        assert first.removed_at and not second.removed_at
        assert open_store(settings.BACKUP_FOLDER, None).names() == [second.name]

    @pytest.mark.django_db(transaction=True)
    def test_what_breaks_while_old_ones_are_removed_leaves_the_new_one_finished(
        self, team, plan, settings, tmp_path, eager, monkeypatch
    ):
        def broken(*told):
            raise ValueError("of a library")

        settings.BACKUP_FOLDER, settings.BACKUP_KEY_FILE = tmp_path / "backups", None
        monkeypatch.setattr(retention, "prune", broken)
        services.look()
        made = Backup.objects.get()
        assert (made.state, made.problem) == (
            Backup.State.FINISHED,
            "Older backups could not be removed: An error happened on the server; its log says more.",
        )
        assert open_store(settings.BACKUP_FOLDER, None).names() == [made.name]


@pytest.mark.django_db(transaction=True)
class TestDrill:
    """Handles the result of a restoration. `test_restoring` makes whole ones."""

    def restored(self, pages):
        return lambda *given, **options: restoring.Restored(9, 3, 2, 100, 1.0, 0, pages)

    def test_one_is_started_by_the_button_and_noted(
        self, team, as_owner, folder, backed_up, monkeypatch, settings, eager
    ):
        backup, settings.BACKUP_FOLDER, settings.BACKUP_KEY_FILE = backed_up(), folder, None
        assert "Try the newest backup" in as_owner.get(PAGE).content.decode()
        monkeypatch.setattr(restoring, "restore", self.restored({"/": 200, "/datasets/1": 200}))
        as_owner.post(f"{PAGE}/drills/start")
        found = BackupDrill.objects.get()
        assert (found.name, found.passed, found.rows, found.files, found.open) == (backup.name, True, 9, 2, None)
        assert found.created_by == team.owner.user and found.seconds is not None
        assert "9 rows and 2 files were restored" in as_owner.get(PAGE).content.decode()
        assert not list(settings.VAR.glob("drill-*"))

    def test_the_command_says_it(self, team, folder, backed_up, monkeypatch, capsys):
        backed_up()
        monkeypatch.setattr(restoring, "restore", self.restored({"/": 200}))
        call_command("backup_drill", str(folder))
        assert "is good: 9 rows and 2 files" in capsys.readouterr().out

    def test_its_progress_is_told_and_it_ends_when_somebody_asks(self, team, as_owner, folder, backed_up, monkeypatch):
        backed_up()
        monkeypatch.setattr(drill, "TELL_EVERY_S", 0.01)
        seen = []

        def restore(*given, say, report, **options):
            say("9 rows are there.")
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline:
                report(30, 100)
                row = BackupDrill.objects.get()
                if row.done and not seen:
                    seen.append(as_owner.get(PAGE).content.decode().replace("\xa0", " "))
                    as_owner.post(f"{PAGE}/drills/{row.pk}/cancel")
                time.sleep(0.01)

        monkeypatch.setattr(restoring, "restore", restore)
        drill.carry_out(drill.start(folder, Origin.PAGE).pk, None)
        found = BackupDrill.objects.get()
        assert (found.passed, found.open, found.problem) == (None, None, "Somebody cancelled it.")
        for words in ("A drill is under way", "30 bytes of 100 bytes", "9 rows are there."):
            assert words in seen[0]
        assert "Try the newest backup</button>" not in seen[0]

    def test_one_whose_process_died_makes_room(self, team, folder):
        lost = drill.start(folder, Origin.PAGE)
        with pytest.raises(Conflict, match="under way already"):
            drill.start(folder, Origin.PAGE)
        BackupDrill.objects.update(started_at=NOW)
        assert drill.start(folder, Origin.PAGE).pk != lost.pk
        lost.refresh_from_db()
        assert (lost.passed, lost.open) == (None, None) and "without a message" in lost.problem

    def test_old_backups_stay_while_one_is_tried(self, team, folder, backed_up, monkeypatch):
        backed_up()

        def restore(*given, **options):
            services.prune(str(folder), None, 1, 0)  # this connection has the lock, but the folder is being read
            return self.restored({})()

        monkeypatch.setattr(restoring, "restore", restore)
        drill.carry_out(drill.start(folder, Origin.PAGE).pk, None)
        assert "is being read; older ones are removed the next time" in BackupDrill.objects.get().problem

    def test_one_that_fails_is_loud(self, team, folder, backed_up, monkeypatch, settings, mailoutbox):
        settings.MAIL_URL = "smtp://mail.example.org"
        backed_up()
        monkeypatch.setattr(restoring, "restore", self.restored({"/": 200, "/datasets/1": 500}))
        with pytest.raises(CommandError, match="/datasets/1 answers 500"):
            call_command("backup_drill", str(folder))
        assert not BackupDrill.objects.get().passed
        (told,) = mailoutbox
        assert (
            told.to == [team.owner.user.email]
            and "/datasets/1 answers 500" in told.body
            and "has failed" in told.subject
        )
        assert queries.outcomes()["drill"] == queries.LastBackup(None, True)
        assert queries.outcomes()["backup"].failed is False

    def test_a_damaged_backup_fails_it(self, team, folder, backed_up, monkeypatch):
        backed_up()

        def damaged(*given, **options):
            raise Damaged("A file of the backup is missing: x.")

        monkeypatch.setattr(restoring, "restore", damaged)
        with pytest.raises(CommandError, match="A file of the backup is missing"):
            call_command("backup_drill", str(folder))
        assert BackupDrill.objects.get().problem == "A file of the backup is missing: x."
