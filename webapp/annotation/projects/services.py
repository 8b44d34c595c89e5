"""Writes to projects: making, opening, pausing, closing, changing, guidelines."""

import json
from hashlib import sha256
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Max, Value
from django.db.models.functions import Greatest
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.core import broadcast
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.core.tasks import enqueue
from webapp.datasets.models import DatasetVersion
from webapp.datasets.versions import services as datasets
from webapp.webhooks.services import announce, announce_all

from ..agreement.refresh import mark_outdated, review_all_again
from ..models import Guidelines, Project, Task
from ..tasks.seats import lock
from ..work import completion
from . import validation

State = Project.State
# the states from which each state can be reached
MOVES = {
    State.OPEN: (State.DRAFT, State.PAUSED, State.CLOSED),
    State.PAUSED: (State.OPEN,),
    State.CLOSED: (State.DRAFT, State.OPEN, State.PAUSED),
}
TOLD = {State.OPEN: "project.opened", State.PAUSED: "project.paused", State.CLOSED: "project.closed"}
TAKEN = "another project of this workspace has this name"


def create(
    membership: Membership,
    *,
    name: str,
    kind: str,
    dataset: DatasetVersion,
    overlap: int = 2,
    strategy: str = Project.Strategy.ORDER,
    settings: dict[str, Any] | None = None,
    guidelines: str = "",
) -> Project:
    """A draft of a project on version `dataset`, which is frozen with it; a worker then makes its tasks.

    Raises Invalid with every wrong field; those of the settings are called `settings.<path>`.
    """
    name, stored = validation.plan(
        name=name, kind=kind, version=dataset, overlap=overlap, strategy=strategy, settings=settings or {}
    )
    text = validation.guidelines(guidelines)
    try:
        with transaction.atomic():
            project = Project.objects.create(
                workspace=membership.workspace,
                name=name,
                kind=kind,
                version=datasets.freeze(membership, dataset),
                overlap=overlap,
                strategy=strategy,
                settings=stored,
                created_by=membership.user,
            )
            Guidelines.objects.create(project=project, number=1, text=text, created_by=membership.user)
            audit.record(membership, membership.user, "project.created", project, name=name, task=kind)
            enqueue("workers.annotation.make_tasks", project.pk)
    except IntegrityError as error:
        raise Invalid("There is a project with this name already.", {"name": TAKEN}) from error
    return project


def mark(project: Project) -> str:
    """A digest of all that `update` changes: it is equal for two reads if nothing has changed between them."""
    return sha256(json.dumps([project.name, project.overlap, project.settings], sort_keys=True).encode()).hexdigest()


def update(membership: Membership, project: Project, base: str = "", **changes: Any) -> Project:
    """Changes `name`, `overlap` or `settings` (merged over the present ones). Raises Invalid at the fields.

    `base` is the `mark` of the project that the changes were made from. Raises Conflict if the project has another one by now: a form
    with all settings would silently take back what somebody else has changed.

    A smaller overlap never takes away a seat that is taken: such tasks keep the seats that they have.
    """
    checked = validation.change(project, changes)
    if "overlap" in checked and checked["overlap"] != project.overlap and not project.tasks_made:
        raise Invalid(
            "The tasks of the project are still being made.",
            {"overlap": "can be changed when all tasks have been made"},
        )
    try:
        with transaction.atomic():
            if base and mark(Project.objects.select_for_update(no_key=True).get(pk=project.pk)) != base:
                raise Conflict("Somebody else has changed these settings in the meantime.", "overtaken")
            Project.objects.filter(pk=project.pk).update(**checked)
            if checked.get("overlap", project.overlap) != project.overlap:
                _reseat(project, checked["overlap"])
            if "settings" in checked:
                mark_outdated(project.pk)  # the limit for a fast answer may have changed
            audit.record(membership, membership.user, "project.changed", project, fields=sorted(checked))
            _tell(membership, project)
    except IntegrityError as error:
        raise Invalid("There is a project with this name already.", {"name": TAKEN}) from error
    project.refresh_from_db()
    return project


def _reseat(project: Project, overlap: int) -> None:
    """Gives every task except the gold ones its new number of seats, and updates which of them are complete."""
    tasks = Task.objects.filter(project=project, overlap__isnull=False)
    lock(tasks)  # no answer comes in between
    tasks.update(overlap=Greatest(Value(overlap), F("taken")))
    complete = tasks.filter(done__gte=F("overlap"), completed_at=None)
    newly = [{"task": task, "project": project.pk} for task in complete.values_list("id", flat=True)]
    complete.update(completed_at=timezone.now())
    announce_all(project.workspace_id, "task.completed", newly)
    tasks.filter(done__lt=F("overlap")).exclude(completed_at=None).update(completed_at=None)
    if newly:
        review_all_again(project.pk)
        if completion.none_waits(project):
            completion.announce_complete(project)


@transaction.atomic
def set_state(membership: Membership, project: Project, state: str) -> Project:
    """Opens, pauses or closes. Asking for its present state changes nothing; Conflict if that state cannot be reached."""
    if state not in MOVES:
        raise Invalid("Unknown state.", {"state": f"must be one of {', '.join(MOVES)}"})
    moved = Project.objects.filter(pk=project.pk, state__in=MOVES[State(state)]).update(state=state)
    before = project.state
    project.refresh_from_db(fields=["state"])
    if moved:
        audit.record(membership, membership.user, f"project.{state}", project, before=before)
        facts = {"project": project.pk, "name": project.name}
        announce(project.workspace_id, TOLD[State(project.state)], facts, by=membership.user_id)
        _tell(membership, project)
    elif project.state != state:
        raise Conflict(f"A project that is {project.state} cannot become {state}.", code="no_such_move")
    return project


@transaction.atomic
def new_guidelines(membership: Membership, project: Project, text: str, base: int | None = None) -> Guidelines:
    """The next version of the guidelines, shown from now on. The same text again makes no version.

    `base` is the number of the version from which the text was written, 0 if there was none. Raises Conflict if there is a newer one by
    now: the text would silently take back what somebody else has changed.
    """
    text = validation.guidelines(text)
    Project.objects.select_for_update().get(pk=project.pk)  # two requests must not take the same number
    newest = project.guidelines.order_by("-number").first()
    if newest is not None and newest.text == text:
        return newest
    if base is not None and newest is not None and newest.number != base:
        author = newest.created_by or "an erased account"
        raise Conflict(f"{author} saved version {newest.number} in the meantime.", "overtaken", number=newest.number)
    last = project.guidelines.aggregate(last=Max("number"))["last"] or 0
    row = Guidelines.objects.create(project=project, number=last + 1, text=text, created_by=membership.user)
    audit.record(membership, membership.user, "project.guidelines", project, number=row.number)
    _tell(membership, project)
    return row


def _tell(membership: Membership, project: Project) -> None:
    message: dict[str, object] = {"type": "project", "id": project.pk}
    broadcast.send(f"workspace.{membership.workspace_id}", message)
