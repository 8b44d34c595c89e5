"""All writes about backups: one backup is under way at a time, reports its progress, and ends if somebody asks for it."""

import logging
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import Membership, Role, User
from webapp.core.auditing import audit
from webapp.core.background import jobs
from webapp.core.database import locks
from webapp.core.problems import Conflict, Problem
from webapp.core.tasks import enqueue
from webapp.webhooks.services import announce

from . import alarm, creation, drill, manifest, queries, retention
from .models import Backup, BackupPlan, Origin
from .problems import BackupProblem, Cancelled
from .store import open_store, passphrase_of

logger = logging.getLogger(__name__)
QUIET = timedelta(seconds=60)  # nobody has told of a backup for this long: perhaps its process died
BACKUP = jobs.JobKind(
    Backup.objects.all(), locks.Work.BACKUP, "workers.backups.make", open=Q(open=True), only=0, again=False
)


def start(folder: str | Path, origin: Origin, by: User | None = None, *, queue: bool = False) -> Backup:
    """Makes the row of a backup that waits for `carry_out`; with `queue`, a worker does it. Raises Conflict while one is under way."""
    end_lost(timedelta(0))
    try:
        with transaction.atomic():
            backup = Backup.objects.create(folder=str(folder), origin=origin, created_by=by)
            if queue:
                enqueue("workers.backups.make", backup.pk)
    except IntegrityError:
        raise Conflict("A backup is under way already.", code="under_way") from None
    return backup


def start_here(origin: Origin, by: User | None = None) -> Backup:
    """Starts a backup into BACKUP_FOLDER, by a worker. Raises Conflict, or BackupProblem if there is no such setting."""
    if settings.BACKUP_FOLDER is None:
        raise BackupProblem("BACKUP_FOLDER is not set, so there is nowhere to put a backup.")
    return start(settings.BACKUP_FOLDER, origin, by, queue=True)


def carry_out(pk: int, key_file: Path | None) -> None:
    """Makes the backup that `start` prepared, in one process at a time. A Problem ends it and is stored as its reason."""
    with BACKUP.claimed(pk, started_at=timezone.now()) as backup:
        if backup is None:
            return
        try:
            _make(backup, key_file)
            backup.state = Backup.State.FINISHED
            if backup.origin == Origin.SCHEDULE:
                _prune_by_plan(backup, key_file)
        except Cancelled:
            backup.state = Backup.State.CANCELLED
        except Problem as problem:
            backup.state, backup.problem = Backup.State.FAILED, str(problem)[:1000]
        except Exception as error:
            logger.exception("%s failed", backup)
            backup.state, backup.problem = Backup.State.FAILED, _words(error)
        finally:
            if backup.state == Backup.State.RUNNING:  # Ctrl-C
                backup.state = Backup.State.CANCELLED
            with transaction.atomic():
                BACKUP.save(backup, *RESULT, open=None, finished_at=timezone.now())
                if backup.state == Backup.State.FAILED:
                    _announce(backup)
        if backup.state == Backup.State.FAILED and backup.origin == Origin.SCHEDULE:
            alarm.alert_administrators("A backup by plan has failed", f"{backup.folder}: {backup.problem}")


RESULT = ("state", "problem", "name", "encrypted", "done", "total", "size", "added", "rows", "files")


def _words(error: Exception) -> str:
    """The error in words. The system's own words help the person who runs the machine; other errors are ours to look up."""
    return (
        f"{error.filename or 'A file'}: {error.strerror}."
        if isinstance(error, OSError) and error.strerror
        else jobs.BROKE
    )


def _make(backup: Backup, key_file: Path | None) -> None:
    store = open_store(backup.folder, passphrase_of(key_file), create=True)
    backup.encrypted = store.key is not None
    report = jobs.JobReport(BACKUP, backup, Cancelled("Somebody cancelled this backup."))
    backup.name, made = creation.make(store, report.at)
    backup.size, backup.added = made.size, made.added
    backup.rows, backup.files, backup.done, backup.total = made.rows, len(made.files), made.size, made.size


def _prune_by_plan(backup: Backup, key_file: Path | None) -> None:
    """Removes old backups by the plan. If that fails, the backup does not count as failed; a remark says so."""
    plan = queries.plan()
    try:
        prune(backup.folder, key_file, plan.keep_daily, plan.keep_weekly)
    except (Problem, OSError) as problem:
        backup.problem = f"Older backups could not be removed: {problem}"[:1000]
    except Exception:
        logger.exception("older backups of %s could not be removed", backup.folder)
        backup.problem = f"Older backups could not be removed: {jobs.BROKE}"


def stop(backup: Backup) -> None:
    """A waiting backup ends at once; one under way ends within a second or two. Raises Conflict if it is over."""
    if not BACKUP.ask_to_stop(backup.pk, state=Backup.State.CANCELLED, open=None, finished_at=timezone.now()):
        raise Conflict("This backup is over.", code="no_such_move")


def end_lost(quiet: timedelta = QUIET) -> int:
    """Ends backups that a dead process left under way; returns how many. A living process holds its lock."""
    words = "Its process ended without a message. Earlier backups are as they were; what was copied is used again."
    end = {"state": Backup.State.FAILED, "open": None, "finished_at": timezone.now(), "problem": words}
    with transaction.atomic():
        under_way = list(Backup.objects.filter(open=True).values_list("pk", flat=True))
        ended = BACKUP.end_lost(quiet, **end)
        for backup in Backup.objects.filter(pk__in=under_way, state=Backup.State.FAILED) if ended else ():
            _announce(backup)
    return ended


def _announce(backup: Backup) -> None:
    """Tells the workspaces that an administrator owns: backups belong to the installation, not to a workspace."""
    owners = Membership.objects.filter(role=Role.OWNER, user__is_administrator=True, user__is_active=True)
    told = {"backup": backup.pk, "name": str(backup), "origin": backup.origin, "reason": backup.problem}
    for workspace_id in sorted(set(owners.values_list("workspace_id", flat=True))):
        announce(workspace_id, "backup.failed", told)


def change_plan(by: User, **told: int | None) -> None:
    """Changes fields of the plan; the audit logs of the person's workspaces record it."""
    with transaction.atomic():
        plan, _ = BackupPlan.objects.update_or_create(pk=1, defaults=told)
        for membership in Membership.objects.filter(user=by).select_related("workspace"):
            audit.record(membership, by, "backup_plan.changed", plan, **told)


def look() -> None:
    """Called by beat every minute: ends lost backups and drills, starts due ones."""
    drill.look()
    end_lost()
    if settings.BACKUP_FOLDER is not None and is_due(timezone.now()):
        with suppress(Conflict):  # another was faster
            start_here(Origin.SCHEDULE)


def is_due(now: datetime) -> bool:
    """Whether the plan's hour, or this many minutes, have passed without a planned backup. After a failure the next one waits as long."""
    plan = queries.plan()
    if plan.minutes is not None:
        since = now - timedelta(minutes=plan.minutes)
        return not Backup.objects.filter(origin=Origin.SCHEDULE, created_at__gt=since).exists()
    if plan.hour is None:
        return False
    hour = now.replace(hour=plan.hour, minute=0, second=0, microsecond=0)
    last = hour if hour <= now else hour - timedelta(days=1)
    made = Backup.objects.filter(origin=Origin.SCHEDULE, created_at__gte=last)
    return last >= plan.changed_at and not made.exists()


def prune(folder: str, key_file: Path | None, daily: int, weekly: int) -> list[str]:
    """Removes the backups that the rule does not keep; their names. Raises BackupProblem."""
    with drill.none_under_way():
        gone = retention.prune(open_store(folder, passphrase_of(key_file)), daily, weekly)
    Backup.objects.filter(folder=folder, name__in=gone).update(removed_at=timezone.now())
    return gone


def remarks(folder: str, key_file: Path | None, name: str) -> list[str]:
    """Remarks that the person who made a backup must know."""
    kept = manifest.read(open_store(folder, passphrase_of(key_file)), name)
    said = [f"Not in the backup, because it is stored elsewhere: {path}" for path in kept.elsewhere]
    said += [f"Not in the backup, as it is gone: {path}" for path in kept.lost]
    if kept.key is None:
        said.append(
            f"Not encrypted, so without the secret key: keep {settings.VAR / 'secret_key'} (or SECRET_KEY) elsewhere too."
        )
        if settings.SECRET_KEY_FALLBACKS:
            said.append(
                "Former keys (SECRET_KEY_FALLBACKS) are not in it either, and stored secrets may still need them: run "
                "manage.py reencrypt and back up once more, or keep them too."
            )
    return said
