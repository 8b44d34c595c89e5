"""The administrators' page: what it shows, what its buttons do, and when beat starts a backup by itself."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from webapp.backups import drill, restoring, services
from webapp.backups.models import Backup, BackupDrill, BackupPlan
from webapp.backups.problems import Damaged
from webapp.backups.store import open_store
from webapp.core.models import AuditEntry

PAGE = "/installation/backups"
NOW = datetime(2026, 11, 23, 12, 30, tzinfo=UTC)


@pytest.fixture
def plan(db):
    BackupPlan.objects.create(pk=1, hour=2)
    BackupPlan.objects.update(changed_at=NOW - timedelta(days=30))


@pytest.mark.django_db
class TestPage:
    def test_only_administrators_come_in(self, cast, as_researcher, as_outsider):
        for each in (as_researcher, as_outsider):
            assert each.get(PAGE).status_code == 403
            assert each.post(f"{PAGE}/start").status_code == 403
            assert each.post(f"{PAGE}/1/cancel").status_code == 403
        assert not Backup.objects.exists()

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
        BackupDrill.objects.create(name="2026-11-22T020000Z", passed=True, seconds=12)
        BackupDrill.objects.create(name="2026-11-22T020000Z", passed=False, problem="A page broke.", seconds=3)
        text = as_owner.get(PAGE).content.decode().replace("\xa0", " ")
        for each in (
            "5.0 MB",
            "1.0 MB",
            "7 rows, 2 files",
            "whole",
            "failed",
            "The disk of /b is full.",
            "A page broke.",
        ):
            assert each in text
        assert "came back in 12" in text

    def test_the_plan_is_changed_and_audited_and_a_wrong_one_is_told_at_its_field(self, as_owner):
        wrong = as_owner.post(PAGE, {"hour": "25", "keep_daily": "0", "keep_weekly": "4"})
        assert wrong.status_code == 422 and wrong.content.count(b'class="error"') == 2
        as_owner.post(PAGE, {"hour": "3", "keep_daily": "10", "keep_weekly": "0"})
        kept = BackupPlan.objects.get()
        assert (kept.hour, kept.keep_daily, kept.keep_weekly) == (3, 10, 0)
        assert AuditEntry.objects.get(action="backup_plan.changed").detail["hour"] == 3
        as_owner.post(PAGE, {"hour": "", "keep_daily": "10", "keep_weekly": "0"})
        assert BackupPlan.objects.get().hour is None


class TestPlan:
    def test_it_is_due_once_a_day_behind_its_hour(self, plan):
        assert services.is_due(NOW)
        made = Backup.objects.create(origin=Backup.Origin.SCHEDULE, folder="/b", open=None)
        for moment, due in ((NOW.replace(hour=2), False), (NOW, False), (NOW.replace(hour=1), True)):
            Backup.objects.filter(pk=made.pk).update(created_at=moment)
            assert services.is_due(NOW) is due
        Backup.objects.update(origin=Backup.Origin.PAGE, created_at=NOW)
        assert services.is_due(NOW)  # what somebody starts by hand is not the plan's

    def test_a_plan_does_not_begin_with_the_hour_that_has_passed(self, plan):
        BackupPlan.objects.update(changed_at=NOW)
        assert not services.is_due(NOW) and services.is_due(NOW + timedelta(days=1))

    def test_no_hour_no_backup(self, db):
        assert not services.is_due(NOW)

    @pytest.mark.django_db(transaction=True)
    def test_a_round_makes_what_is_due_and_removes_what_is_old(self, cast, plan, settings, tmp_path, eager):
        settings.BACKUP_FOLDER, settings.BACKUP_KEY_FILE = tmp_path / "backups", None
        BackupPlan.objects.update(keep_daily=1, keep_weekly=0)
        for _ in range(2):
            services.look()
            Backup.objects.update(created_at=datetime.now(UTC) - timedelta(days=2))
        first, second = Backup.objects.order_by("id")
        assert first.state == second.state == Backup.State.FINISHED and first.name != second.name
        assert first.removed_at and not second.removed_at
        assert open_store(settings.BACKUP_FOLDER, None).names() == [second.name]

    def test_what_no_worker_took_is_queued_again(self, db, monkeypatch):
        sent = []
        monkeypatch.setattr(services, "enqueue", lambda *told: sent.append(told))
        waiting = Backup.objects.create(origin=Backup.Origin.PAGE, folder="/b")
        services.look()
        assert sent == []
        Backup.objects.update(seen_at=datetime.now(UTC) - timedelta(minutes=5))
        services.look()
        services.look()
        assert sent == [("workers.backups.make", waiting.pk)]


@pytest.mark.django_db(transaction=True)
class TestDrill:
    """What is made of a restoration; `test_restoring` does whole ones."""

    def restored(self, pages):
        return lambda *given, **options: restoring.Restored(9, 3, 2, 100, 1.0, 0, pages)

    def test_one_that_passed_is_noted(self, cast, folder, backed_up, monkeypatch, capsys, settings):
        backup = backed_up()
        monkeypatch.setattr(restoring, "restore", self.restored({"/": 200, "/datasets/1": 200}))
        call_command("backup_drill", str(folder))
        found = BackupDrill.objects.get()
        assert (found.name, found.passed, found.rows, found.files) == (backup.name, True, 9, 2)
        assert "is good: 9 rows and 2 files" in capsys.readouterr().out
        assert not list(settings.VAR.glob("drill-*"))

    def test_a_page_that_does_not_open_fails_it(self, cast, folder, backed_up, monkeypatch):
        backed_up()
        monkeypatch.setattr(restoring, "restore", self.restored({"/": 200, "/datasets/1": 500}))
        with pytest.raises(CommandError, match="/datasets/1 answers 500"):
            call_command("backup_drill", str(folder))
        assert not BackupDrill.objects.get().passed

    def test_a_damaged_backup_fails_it(self, cast, folder, backed_up, monkeypatch):
        backed_up()

        def damaged(*given, **options):
            raise Damaged("A file of the backup is missing: x.")

        monkeypatch.setattr(restoring, "restore", damaged)
        with pytest.raises(CommandError, match="A file of the backup is missing"):
            call_command("backup_drill", str(folder))
        assert drill.BackupDrill.objects.get().problem == "A file of the backup is missing: x."
