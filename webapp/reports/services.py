"""Everything that people do with reports.

A version is never changed: a person who saves from an older version gets a message, and nothing is lost.
"""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.annotation.models import Project
from webapp.core import archiving
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.experiments.models import Experiment

from . import language, origins, queries
from .models import MAX_TITLE, ReportPage, ReportPageVersion

MAX_BODY = 100_000
MOST_BLOCKS = 30
MOST_TOLD = 5


class WrittenMeanwhile(Conflict):
    """`extra.newest` is the version that was saved meanwhile."""

    def __init__(self, newest: ReportPageVersion) -> None:
        who = newest.created_by or "Somebody"
        super().__init__(
            f"{who} has saved version {newest.number} since you began. Nothing is lost. Look at the changes, then save yours on top.",
            "written_meanwhile",
            newest=newest.number,
        )
        self.newest = newest


@transaction.atomic
def create(
    membership: Membership,
    title: str,
    body: str,
    *,
    experiment: Experiment | None = None,
    project: Project | None = None,
) -> ReportPage:
    """Raises Invalid at `title` or `body`."""
    title, body = checked(title, body)
    row = ReportPage.objects.create(
        workspace_id=membership.workspace_id,
        title=title,
        experiment=experiment,
        project=project,
        created_by=membership.user,
        written_at=timezone.now(),
    )
    _version(membership, row, title, body)
    audit.record(membership, membership.user, "report.created", row, title=title)
    return row


@transaction.atomic
def write(membership: Membership, report: ReportPage, base: int, title: str, body: str) -> ReportPageVersion:
    """The next version, made from version `base`; the same text again makes none. Raises Invalid at `title`, `body` or `base`,
    WrittenMeanwhile if `base` is no longer the newest."""
    title, body = checked(title, body)
    newest = _locked(report)
    if not 1 <= base <= newest.number:
        raise Invalid("There is no such version.", {"base": f"must be from 1 to {newest.number}"})
    if (newest.title, newest.body) == (title, body):
        return newest
    if base != newest.number:
        raise WrittenMeanwhile(newest)
    return _next(membership, report, newest.number + 1, title, body)


@transaction.atomic
def restore_version(membership: Membership, report: ReportPage, number: int) -> ReportPageVersion:
    """Saves an older version again, as the newest: the versions in between stay in the history."""
    newest = _locked(report)
    old = report.versions.get(number=number)
    if (newest.title, newest.body) == (old.title, old.body):
        return newest
    return _next(membership, report, newest.number + 1, old.title, old.body, restored_from=number)


@transaction.atomic
def place(
    membership: Membership, report: ReportPage, experiment: Experiment | None, project: Project | None
) -> ReportPage:
    """Sets its experiment and project; both are the workspace's."""
    report.experiment, report.project = experiment, project
    report.save(update_fields=["experiment", "project"])
    audit.record(membership, membership.user, "report.placed", report, experiment=_pk(experiment), project=_pk(project))
    return report


def archive(membership: Membership, report: ReportPage) -> None:
    """Takes it off the list. Nothing is deleted: its address and its versions stay."""
    archiving.archive(membership, report, "report")


def unarchive(membership: Membership, report: ReportPage) -> None:
    archiving.restore(membership, report, "report")


def about(membership: Membership, experiment: int | None, project: int | None) -> dict[str, Any]:
    """The rows that these ids name, as `create` and `place` take them. Raises Invalid if one is not the workspace's."""
    asked = {"experiment": experiment, "project": project}
    offered: dict[str, QuerySet[Any]] = {
        "experiment": queries.experiments(membership),
        "project": queries.projects(membership),
    }
    found = {name: rows.filter(pk=asked[name]).first() if asked[name] else None for name, rows in offered.items()}
    if wrong := {name: f"there is no such {name} here" for name, row in found.items() if asked[name] and row is None}:
        raise Invalid("This report cannot be saved like this.", wrong)
    return found


def checked(title: str, body: str) -> tuple[str, str]:
    """Title and body as they are stored. Raises Invalid, with the line of a block that cannot be read."""
    title = " ".join(title.replace("\0", "").split())
    body = body.replace("\0", "").replace("\r\n", "\n").rstrip()
    wrong = {}
    if not 1 <= len(title) <= MAX_TITLE:
        wrong["title"] = f"a title of 1 to {MAX_TITLE} characters"
    if reason := _wrong(body):
        wrong["body"] = reason
    if wrong:
        raise Invalid("This report cannot be saved like this.", wrong)
    return title, body


def _wrong(body: str) -> str:
    if len(body) > MAX_BODY:
        return f"at most {MAX_BODY:,} characters; these are {len(body):,}"
    parts = language.pieces(body)
    if (n := sum(isinstance(part, language.ReportBlock) for part in parts)) > MOST_BLOCKS:
        return f"at most {MOST_BLOCKS} blocks; these are {n}"
    found = language.problems(parts)
    more = f" And {len(found) - MOST_TOLD} other lines." if len(found) > MOST_TOLD else ""
    return " ".join(map(str, found[:MOST_TOLD])) + more


def _locked(report: ReportPage) -> ReportPageVersion:
    """The newest version, locked: nobody saves another until the end of the transaction."""
    row = ReportPage.objects.select_for_update(no_key=True).get(pk=report.pk)
    return ReportPageVersion.objects.get(report=row, number=row.newest)


def _next(
    membership: Membership, report: ReportPage, number: int, title: str, body: str, restored_from: int | None = None
) -> ReportPageVersion:
    made = _version(membership, report, title, body, number, restored_from)
    report.newest, report.title, report.written_at = number, title, timezone.now()
    report.save(update_fields=["newest", "title", "written_at"])
    detail = {"restored_from": restored_from} if restored_from else {}
    audit.record(membership, membership.user, "report.written", report, version=number, **detail)
    return made


def _version(
    membership: Membership,
    report: ReportPage,
    title: str,
    body: str,
    number: int = 1,
    restored_from: int | None = None,
) -> ReportPageVersion:
    origins.store_origins(membership, report, body)
    return ReportPageVersion.objects.create(
        report=report, number=number, title=title, body=body, restored_from=restored_from, created_by=membership.user
    )


def _pk(row: Experiment | Project | None) -> int | None:
    return None if row is None else row.pk
