"""Turns an event into notices of people, in the transaction of the change: nobody is told of a change that was undone, or twice.

People are told who watch the thing of the event, or another thing that it concerns: the dataset that an import goes into, the model that an
alias leaves. The person who launched a run, a sweep or a project watches it, unless they have said otherwise. For the runs of a sweep,
people who watch the sweep are told of failures; the sweep tells them the rest. A person is not told of their own actions. Administrators
are told of backups, which nobody launches or watches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import RANK, Membership, Role, User
from webapp.core import broadcast
from webapp.core.network import mail
from webapp.webhooks.services import when_announced

from . import words
from .models import FIELDS, Mails, Notice, NoticeSettings, Watch

READER = Role.REVIEWER
READERS = tuple(role for role in RANK if RANK[role] >= RANK[READER])
MODELS = {
    "run": "experiments.Run",
    "sweep": "experiments.Sweep",
    "evaluation": "evaluation.Evaluation",
    "project": "annotation.Project",
    "import": "datasets.ImportJob",
    "curation": "datasets.CurationJob",
    "dataset": "datasets.Dataset",
    "judge": "judging.Judge",
    "model": "inference.RegisteredModel",
    "weights_job": "weights.WeightsJob",
    "claim": "experiments.ClaimStudy",
    "backup": "backups.Backup",
}
LAUNCHED = ("sweep", "evaluation", "project", "import", "curation", "weights_job", "claim")
# the row of what was asked for, and its name in the facts
ASKED = {
    "run.then_refused": ("experiments.ChainStep", "chain_step"),
    "project.then_refused": ("experiments.ChainStep", "chain_step"),
    "run.repeat_refused": ("experiments.RunRepeat", "repeat"),
}
INTO_DATASETS = ("import", "curation", "project")
Thing = tuple[str, int]
Said = Mapping[tuple[Thing, int], bool]


@dataclass(frozen=True)
class Subject:
    """The thing of an event, the person who launched it, and other things that it concerns and people watch.

    `asked`: the person who asked for what comes after it. `administrators`: it concerns all of them.
    """

    kind: str
    pk: int
    by: int | None
    sweep: int | None = None
    sweep_name: str = ""
    also: Sequence[Thing] = ()
    asked: int | None = None
    administrators: bool = False

    @property
    def thing(self) -> Thing:
        return self.kind, self.pk


@when_announced(words.KINDS)
def notify_watchers(
    workspace_id: int, event: str, event_id: UUID, payload: Mapping[str, object], by: int | None
) -> None:
    """Writes a notice for each person who watches; open pages hear of it after commit."""
    subject = _subject(workspace_id, event, payload)
    if subject is None:
        return
    people = {user for user in _people(subject, event) if user != by}
    members = Membership.objects.filter(workspace_id=workspace_id, user_id__in=people, role__in=READERS)
    found = sorted(members.filter(user__is_active=True).values_list("user_id", flat=True)) if people else []
    facts, now = words.kept(event, payload, by), timezone.now()
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
    """The people who want this by mail, among these."""
    if not people or not mail.is_configured():
        return set()
    wanted = [Mails.ALL, Mails.TROUBLE] if event in words.TROUBLE else [Mails.ALL]
    return set(NoticeSettings.objects.filter(user_id__in=people, mail__in=wanted).values_list("user_id", flat=True))


def group(workspace_id: int, user_id: int) -> str:
    """The group of the pages of one person in one workspace."""
    return f"notices.{workspace_id}.{user_id}"


def message(row: Notice) -> dict[str, object]:
    """The message of a notice. `tag` is the same for notices that share a line, so that a browser shows one box, not forty."""
    tag = f"{row.event} {row.sweep}" if row.sweep and row.about == "run" else str(row.pk)
    told = {"id": row.pk, "title": words.title(row), "text": words.text(row), "href": words.href(row), "tag": tag}
    return {"type": "notice", **told, "tone": words.kind(row).tone}


def _subject(workspace_id: int, event: str, payload: Mapping[str, Any]) -> Subject | None:
    kind = words.about(event)
    if kind not in payload:
        return None
    pk, also = payload[kind], _also(workspace_id, event, payload)
    row = apps.get_model(MODELS[kind]).objects.filter(pk=pk)
    if kind == "run":  # one that a person launched by hand is of no sweep
        run = row.values("created_by_id", "swept__trial__sweep_id", "swept__trial__sweep__name").first()
        if run is None:
            return None
        sweep, name = run["swept__trial__sweep_id"], run["swept__trial__sweep__name"]
        return Subject(kind, pk, run["created_by_id"], sweep, name or "", asked=_asked(event, payload))
    if kind == "backup":
        return Subject(kind, pk, None, administrators=True)
    if kind in LAUNCHED:
        found = list(row.values_list("created_by_id", flat=True))
        if not found:
            return None
        by = None if is_part_of_more(kind, pk) else found[0]
        return Subject(kind, pk, by, also=also, asked=_asked(event, payload))
    return Subject(kind, pk, None, also=also)


def _asked(event: str, payload: Mapping[str, Any]) -> int | None:
    """The person who asked for what could not be launched."""
    if event not in ASKED:
        return None
    model, name = ASKED[event]
    found: int | None = (
        apps.get_model(model).objects.filter(pk=payload[name]).values_list("created_by_id", flat=True).first()
    )
    return found


def is_part_of_more(kind: str, pk: int) -> bool:
    """Whether it is a job of an evaluation: its notices would repeat those of the evaluation to the person who launched both."""
    return kind == "weights_job" and apps.get_model(MODELS["evaluation"]).objects.filter(jobs=pk).exists()


def _also(workspace_id: int, event: str, payload: Mapping[str, Any]) -> list[Thing]:
    """The other things that an event concerns: the dataset of an operation, the model that an alias leaves, the run that has left a model
    and the model with which that run began."""
    if event.partition(".")[0] in INTO_DATASETS and (known := payload.get("dataset")):
        return [("dataset", known)]
    if words.about(event) == "import":  # under way: it has the name of its dataset, which cannot be renamed meanwhile
        kind, name = "dataset", payload["name"]
    elif event == "model.registered":
        base = apps.get_model(MODELS["model"]).objects.filter(pk=payload["model"]).values_list("base_id", flat=True)
        return [*(("model", pk) for pk in base if pk), *(("run", pk) for pk in [payload.get("run")] if pk)]
    elif event == "model.alias_moved" and payload["before"]:
        kind, name = "model", payload["before"]
    else:
        return []
    rows = apps.get_model(MODELS[kind]).objects.filter(workspace_id=workspace_id, name=name)
    return [(kind, pk) for pk in rows.values_list("pk", flat=True)]


def _people(subject: Subject, event: str) -> set[int]:
    said = _said(subject)
    people = {user for (thing, user), on in said.items() if on and thing == subject.thing}
    others = {user for (thing, user), on in said.items() if on and thing in subject.also}
    if subject.sweep is None:
        people |= _launched(subject.thing, subject.by, said)
    elif event in words.TROUBLE:
        sweep = ("sweep", subject.sweep)
        others |= {user for (thing, user), on in said.items() if on and thing == sweep}
        others |= _launched(sweep, subject.by, said)
    people |= _launched(subject.thing, subject.asked, said)
    if subject.administrators:
        people |= set(User.objects.filter(is_administrator=True).values_list("pk", flat=True))
    return people | {user for user in others if said.get((subject.thing, user), True)}


def _said(subject: Subject) -> Said:
    """People's choices about it, about its sweep, and about the other things that it concerns."""
    of_sweep = [("sweep", subject.sweep)] if subject.sweep else []
    things = [thing for thing in (subject.thing, *of_sweep, *subject.also) if thing[0] in FIELDS]
    if not things:
        return {}
    about = reduce(or_, (Q(**{FIELDS[kind]: pk}) for kind, pk in things))
    return {((row.kind, row.subject_id), row.user_id): row.on for row in Watch.objects.filter(about)}


def _launched(thing: Thing, by: int | None, said: Said) -> set[int]:
    """The person who launched it, unless they have said otherwise of it or of all that they launch."""
    if by is None or not said.get((thing, by), True):
        return set()
    return set() if NoticeSettings.objects.filter(user_id=by, own=False).exists() else {by}
