"""From an event to the people who are told of it, in the transaction of the change: nobody is told of what was undone, or twice.

A person is told who watches the run, the sweep or the project. Whoever launched it does, unless they have said otherwise. Of the
runs of a sweep, those who watch the sweep hear what went wrong; the rest the sweep tells. Who did it themselves knows it already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import RANK, Membership, Role
from webapp.core import broadcast, mail
from webapp.webhooks.services import when_announced

from . import words
from .models import Mails, Notice, NoticeSettings, Watch

READER = Role.REVIEWER
READERS = tuple(role for role in RANK if RANK[role] >= RANK[READER])
MODELS = {
    "run": "experiments.Run",
    "sweep": "experiments.Sweep",
    "evaluation": "evaluation.Evaluation",
    "project": "annotation.Project",
    "import": "datasets.ImportJob",
    "curation": "datasets.CurationJob",
}


@dataclass(frozen=True)
class Subject:
    """What an event is about, and who launched it."""

    kind: str
    pk: int
    by: int | None
    sweep: int | None = None
    sweep_name: str = ""


@when_announced(words.KINDS)
def tell(workspace_id: int, event: str, event_id: UUID, payload: Mapping[str, object], by: int | None) -> None:
    """Writes a notice for each person who watches; open pages hear of it after commit."""
    subject = _subject(event, payload)
    if subject is None:
        return
    people = {user for user in _people(subject, event) if user != by}
    members = Membership.objects.filter(workspace_id=workspace_id, user_id__in=people, role__in=READERS)
    found = sorted(members.filter(user__is_active=True).values_list("user_id", flat=True)) if people else []
    facts, now = words.kept(event, payload), timezone.now()
    if subject.sweep_name:
        facts["sweep_name"] = subject.sweep_name
    mailed = _mailed(found, event)
    place = {"about": subject.kind, "subject": subject.pk, "sweep": subject.sweep, "facts": facts}
    rows = [
        Notice(
            user_id=user,
            workspace_id=workspace_id,
            event=event,
            event_id=event_id,
            created_at=now,
            mail=user in mailed,
            **place,
        )
        for user in found
    ]
    for row in Notice.objects.bulk_create(rows):
        broadcast.send(group(workspace_id, row.user_id), message(row))


def _mailed(people: Sequence[int], event: str) -> set[int]:
    """Of these people, those who want this by mail."""
    if not people or not mail.configured():
        return set()
    wanted = [Mails.ALL, Mails.TROUBLE] if event in words.TROUBLE else [Mails.ALL]
    return set(NoticeSettings.objects.filter(user_id__in=people, mail__in=wanted).values_list("user_id", flat=True))


def group(workspace_id: int, user_id: int) -> str:
    """Of the pages of one person in one workspace."""
    return f"notices.{workspace_id}.{user_id}"


def message(row: Notice) -> dict[str, object]:
    """`tag` is the same for what shares a line: a browser then shows one box, not forty."""
    tag = f"{row.event} {row.sweep}" if row.sweep and row.about == "run" else str(row.pk)
    told = {"id": row.pk, "title": words.title(row), "text": words.text(row), "href": words.href(row), "tag": tag}
    return {"type": "notice", **told, "tone": words.KINDS[row.event].tone}


def _subject(event: str, payload: Mapping[str, Any]) -> Subject | None:
    kind = event.partition(".")[0]
    if kind not in payload:
        return None
    row = apps.get_model(MODELS[kind]).objects.filter(pk=payload[kind])
    if kind != "run":
        found = row.values_list("created_by_id", flat=True)
        return Subject(kind, payload[kind], found[0]) if found else None
    # a run that a person launched by hand is of no sweep
    run = row.values("created_by_id", "swept__trial__sweep_id", "swept__trial__sweep__name").first()
    if run is None:
        return None
    return Subject(
        kind, payload[kind], run["created_by_id"], run["swept__trial__sweep_id"], run["swept__trial__sweep__name"] or ""
    )


def _people(subject: Subject, event: str) -> set[int]:
    words_of = _said(subject)
    said = {(kind, user): on for kind, user, on in words_of}
    people = {user for kind, user, on in words_of if on and kind == subject.kind}
    if subject.sweep is None:
        return people | _launched(subject.kind, subject.by, said)
    if event in words.TROUBLE:
        of_sweep = {user for kind, user, on in words_of if on and kind == "sweep"} | _launched(
            "sweep", subject.by, said
        )
        people |= {user for user in of_sweep if said.get(("run", user), True)}
    return people


def _said(subject: Subject) -> list[tuple[str, int, bool]]:
    """(kind, person, on) of everybody who has said something about it, or about its sweep."""
    if subject.kind not in ("run", "sweep", "project"):
        return []
    about = Q(**{subject.kind: subject.pk}) | (Q(sweep=subject.sweep) if subject.sweep else Q())
    return [(row.kind, row.user_id, row.on) for row in Watch.objects.filter(about)]


def _launched(kind: str, by: int | None, said: Mapping[tuple[str, int], bool]) -> set[int]:
    """Whoever launched it, unless they have said otherwise of it or of all that they launch."""
    if by is None or not said.get((kind, by), True):
        return set()
    return set() if NoticeSettings.objects.filter(user_id=by, own=False).exists() else {by}
