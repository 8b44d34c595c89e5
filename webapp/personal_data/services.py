"""Exports of a person's data: a person asks for one, a worker makes it, and the person can fetch it until it ends."""

import logging
import secrets
from datetime import timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from webapp.accounts.models import Membership, User, hash_secret
from webapp.accounts.sessions.services import record_session
from webapp.core.auditing import audit
from webapp.core.background.jobs import JobKind, JobLost
from webapp.core.database import locks
from webapp.core.problems import Conflict
from webapp.core.storage import archive
from webapp.core.storage.archive import Gone
from webapp.core.tasks import enqueue

from .models import DataExport
from .writing import write

logger = logging.getLogger(__name__)
KEPT = timedelta(days=7)
TRIES = 3
FAILED = "The file could not be made. Try again. The server's log has the reason."
State = DataExport.State
EXPORT = JobKind(DataExport.objects.select_related("user"), locks.Work.PERSONAL_DATA, "workers.personal_data.write")


def path_of(row: DataExport) -> Path:
    return Path(settings.VAR) / "personal_data" / f"{row.file}.zip"


@transaction.atomic
def ask(user: User) -> DataExport:
    """Has a worker write all that the installation holds about `user`, who fetches it signed in, in place of an earlier file.

    Raises Conflict if one is being written.
    """
    row = _create(user, user, "")
    record_session(user, "personal_data.asked")
    return row


@transaction.atomic
def ask_for(administrator: User, person: User) -> tuple[DataExport, str]:
    """An export for a person who cannot sign in, and the secret of a link that opens the file for anybody who has it.

    An earlier link ends. It stands in the audit logs of the person's workspaces. Raises Conflict if one is being written.
    """
    secret = secrets.token_urlsafe(32)
    row = _create(person, administrator, hash_secret(secret))
    for membership in Membership.objects.filter(user=person).select_related("workspace"):
        audit.record(membership, administrator, "personal_data.asked", person, link=True)
    return row, secret


def _create(user: User, by: User, digest: str) -> DataExport:
    try:
        with transaction.atomic():
            row = DataExport.objects.create(
                user=user, asked_by=by, digest=digest, file=uuid4().hex, expires_at=timezone.now() + KEPT
            )
    except IntegrityError as error:
        raise Conflict("A file with this person's data is being written already.") from error
    earlier = DataExport.objects.filter(user=user).exclude(pk=row.pk)  # all are done: one at a time is open
    remove(earlier.exclude(digest="") if digest else earlier.filter(digest=""))
    enqueue("workers.personal_data.write", row.pk)
    return row


def carry_out(pk: int) -> None:
    """Writes the file, on one worker at a time. A second delivery of the task finds nothing to do."""
    with EXPORT.claimed(pk, tries=F("tries") + 1) as row:
        if row is None:
            return
        half = path_of(row).with_suffix(f".{row.tries}")  # of this try alone: a worker that lost the job may write
        try:
            if row.tries > TRIES:
                raise RuntimeError(f"its worker was lost {TRIES} times")
            count = write(row.user, half)
        except Exception:  # any error: the person is told instead of waiting
            logger.exception("the data of person %s could not be written", row.user_id)
            half.unlink(missing_ok=True)
            EXPORT.save(row, state=State.FAILED, problem=FAILED, finished_at=timezone.now())
            return
        _publish(row, half, count)


def _publish(row: DataExport, half: Path, count: int) -> None:
    """The file takes its place with the commit; of an account that was erased meanwhile, or a job that is another worker's, it goes."""
    now = timezone.now()
    fields = {"rows": count, "size": half.stat().st_size, "finished_at": now, "expires_at": now + KEPT}
    try:
        with transaction.atomic():
            EXPORT.save(row, state=State.READY, **fields)
            half.replace(path_of(row))
    except JobLost:
        half.unlink(missing_ok=True)


def fetch(row: DataExport) -> archive.Download:
    """The file, to be sent; that it was fetched stands in the audit log. Raises Gone if it has ended or is not there yet."""
    if not row.ready:
        raise Gone("This file no longer exists, or not yet.")
    found = archive.of_file(path_of(row), f"touchstone-data-{row.created_at:%Y-%m-%d}.zip")
    actor = None if row.digest else row.user  # a link does not tell who opens it
    for membership in Membership.objects.filter(user=row.user).select_related("workspace"):
        audit.record(membership, actor, "personal_data.fetched", row.user)
    return found


def by_link(secret: str) -> DataExport | None:
    """The export that an administrator's link opens, ready or not, unless it has ended."""
    rows = DataExport.objects.filter(digest=hash_secret(secret), expires_at__gt=timezone.now())
    return rows.select_related("user").first()


def look() -> None:
    """Removes exports that have ended. Beat calls it."""
    now = timezone.now()
    remove(DataExport.objects.filter(expires_at__lt=now))
    _sweep()


def remove(rows: "QuerySet[DataExport]") -> None:
    """Rows, and files once the rows are gone for good."""
    for row in rows:
        path = path_of(row)
        row.delete()
        transaction.on_commit(partial(path.unlink, missing_ok=True))


def _sweep() -> None:
    """Files without a row: of an account that was erased, or of a database that was restored."""
    found = list((Path(settings.VAR) / "personal_data").glob("*"))  # first: a file comes after its row
    known = set(DataExport.objects.values_list("file", flat=True))
    for path in found:
        if path.stem not in known:
            path.unlink(missing_ok=True)
