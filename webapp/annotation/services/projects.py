"""Writes to projects: setting up, opening, pausing, closing, changing, guidelines, and who takes part."""

import secrets
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Max, Q, Value
from django.db.models.functions import Greatest
from django.utils import timezone

from webapp.accounts import addresses
from webapp.accounts import services as accounts
from webapp.accounts.models import Membership, Role, User, hash_secret
from webapp.core import audit, broadcast, mail
from webapp.core.problems import Conflict, Invalid
from webapp.core.tasks import enqueue
from webapp.datasets import services as datasets
from webapp.datasets.models import DatasetVersion
from webapp.webhooks.services import announce_all

from .. import setup
from ..models import Guidelines, Participant, Project, ProjectInvite, Task
from .completion import tell_if_complete
from .queue import release
from .seats import lock
from .standing import forget

State = Project.State
# from where each state may be reached
MOVES = {
    State.OPEN: (State.DRAFT, State.PAUSED, State.CLOSED),
    State.PAUSED: (State.OPEN,),
    State.CLOSED: (State.DRAFT, State.OPEN, State.PAUSED),
}
MAX_USES, MAX_DAYS = 500, 365
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

    Raises Invalid with every field that is wrong; those of the settings are called `settings.<path>`.
    """
    name, stored = setup.plan(
        name=name, kind=kind, version=dataset, overlap=overlap, strategy=strategy, settings=settings or {}
    )
    text = setup.guidelines(guidelines)
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
        raise Invalid("This project exists.", {"name": TAKEN}) from error
    return project


def update(membership: Membership, project: Project, **changes: Any) -> Project:
    """Changes `name`, `overlap` or `settings` (merged over the present ones). Raises Invalid at the fields.

    A smaller overlap never takes away a seat that is taken: such tasks keep as many as they have.
    """
    checked = setup.change(project, changes)
    if "overlap" in checked and checked["overlap"] != project.overlap and not project.tasks_made:
        raise Invalid("Its tasks are still being made.", {"overlap": "can be changed once all tasks are there"})
    try:
        with transaction.atomic():
            Project.objects.filter(pk=project.pk).update(**checked)
            if checked.get("overlap", project.overlap) != project.overlap:
                _reseat(project, checked["overlap"])
            if "settings" in checked:
                forget(project.pk)  # what counts as fast may have changed
            audit.record(membership, membership.user, "project.changed", project, fields=sorted(checked))
            _tell(membership, project)
    except IntegrityError as error:
        raise Invalid("This project exists.", {"name": TAKEN}) from error
    project.refresh_from_db()
    return project


def _reseat(project: Project, overlap: int) -> None:
    """Gives every task but the gold ones its new number of seats, and says anew which of them are complete."""
    tasks = Task.objects.filter(project=project, overlap__isnull=False)
    lock(tasks)  # no answer comes in between
    tasks.update(overlap=Greatest(Value(overlap), F("taken")))
    complete = tasks.filter(done__gte=F("overlap"), completed_at=None)
    newly = [{"task": task, "project": project.pk} for task in complete.values_list("id", flat=True)]
    complete.update(completed_at=timezone.now())
    announce_all(project.workspace_id, "task.completed", newly)
    tasks.filter(done__lt=F("overlap")).exclude(completed_at=None).update(completed_at=None)
    if newly:
        tell_if_complete(project)


@transaction.atomic
def set_state(membership: Membership, project: Project, state: str) -> Project:
    """Opens, pauses or closes. Asking for the state it has changes nothing; Conflict where no way leads there."""
    if state not in MOVES:
        raise Invalid("Unknown state.", {"state": f"must be one of {', '.join(MOVES)}"})
    moved = Project.objects.filter(pk=project.pk, state__in=MOVES[State(state)]).update(state=state)
    before = project.state
    project.refresh_from_db(fields=["state"])
    if moved:
        audit.record(membership, membership.user, f"project.{state}", project, before=before)
        _tell(membership, project)
    elif project.state != state:
        raise Conflict(f"A project that is {project.state} cannot become {state}.", code="no_such_move")
    return project


@transaction.atomic
def new_guidelines(membership: Membership, project: Project, text: str) -> Guidelines:
    """The next version of the guidelines, shown from now on; the same text again makes none."""
    text = setup.guidelines(text)
    Project.objects.select_for_update().get(pk=project.pk)  # two savers must not both take the same number
    newest = project.guidelines.order_by("-number").first()
    if newest is not None and newest.text == text:
        return newest
    last = project.guidelines.aggregate(last=Max("number"))["last"] or 0
    row = Guidelines.objects.create(project=project, number=last + 1, text=text, created_by=membership.user)
    audit.record(membership, membership.user, "project.guidelines", project, number=row.number)
    _tell(membership, project)
    return row


@transaction.atomic
def add_participant(membership: Membership, project: Project, user: User) -> Participant:
    """Lets a member of the workspace work in the project. Doing it twice is no error."""
    if user.pk is None or not Membership.objects.filter(workspace=membership.workspace, user=user).exists():
        raise Invalid("This person is not a member.", {"user": "is not a member of this workspace"})
    row, created = Participant.objects.get_or_create(project=project, user=user)
    if created:
        audit.record(membership, membership.user, "project.participant_added", project, user=user.pk)
    return row


@transaction.atomic
def pause_participant(membership: Membership, project: Project, user: User, paused: bool) -> Participant:
    """A paused person gets no more tasks, and what they hold goes back to the queue at once."""
    row = Participant.objects.select_for_update().filter(project=project, user=user).first()
    if row is None:
        raise Invalid("This person does not take part.", {"user": "does not take part in this project"})
    if row.paused != paused:
        row.paused = paused
        row.save(update_fields=["paused"])
        action = "project.participant_paused" if paused else "project.participant_resumed"
        audit.record(membership, membership.user, action, project, user=user.pk)
    if paused:
        release(user, project)
    return row


@transaction.atomic
def invite(
    membership: Membership, project: Project, uses: int = 1, days: int = 7, email: str = ""
) -> tuple[ProjectInvite, str]:
    """A link's row and its secret, which cannot be read again; empty where it was mailed. With `email` it is for that address
    alone, once. Raises Invalid at `uses`, `days` or `email`, NotSent."""
    problems = {}
    if not 1 <= uses <= MAX_USES:
        problems["uses"] = f"must be between 1 and {MAX_USES}"
    if not 1 <= days <= MAX_DAYS:
        problems["days"] = f"must be between 1 and {MAX_DAYS}"
    if email := email.strip().lower():
        problems |= addresses.wrong(email) | ({"uses": "must be 1 for one address"} if uses != 1 else {})
    if problems:
        raise Invalid("The invitation is out of bounds.", problems)
    secret = secrets.token_urlsafe(32)
    row = ProjectInvite.objects.create(
        project=project,
        digest=hash_secret(secret),
        uses_left=uses,
        expires_at=timezone.now() + timedelta(days=days),
        created_by=membership.user,
        email=email,
        mailed=bool(email) and mail.configured(),
    )
    told = {"email": email} if email else {}
    audit.record(membership, membership.user, "project.invited", project, invite=row.pk, uses=uses, days=days, **told)
    if row.mailed:
        addresses.mail_invitation(email, project.name, f"/join/{secret}")
    return row, "" if row.mailed else secret


@transaction.atomic
def revoke_invite(membership: Membership, row: ProjectInvite) -> None:
    """From now on the link opens nothing. Revoking twice is no error."""
    if ProjectInvite.objects.filter(pk=row.pk, revoked_at=None).update(revoked_at=timezone.now()):
        audit.record(membership, membership.user, "project.invite_revoked", row.project, invite=row.pk)


def open_invite(secret: str) -> ProjectInvite | None:
    """The invitation behind a link, if somebody can still come in by it."""
    rows = ProjectInvite.objects.filter(_still_open(), digest=hash_secret(secret))
    return rows.select_related("project__workspace").first()


def participation(user: User, secret: str) -> Participant | None:
    """Where the link leads, for somebody who is there already; whether it is still open does not matter to them."""
    mine = Participant.objects.filter(user=user, project__invites__digest=hash_secret(secret))
    row = mine.select_related("project").first()
    inside = row and Membership.objects.filter(workspace_id=row.project.workspace_id, user=user).exists()
    return row if inside else None


def _still_open() -> Q:
    return Q(uses_left__gt=0, revoked_at=None, expires_at__gt=timezone.now())


@transaction.atomic
def join(user: User, secret: str) -> Participant:
    """Makes `user` a participant, and an annotator of the workspace where they are no member yet.

    Whoever takes part already uses nothing up. Raises Conflict where the link is used up, expired, revoked or for another address.
    """
    if known := participation(user, secret):
        return known
    row = ProjectInvite.objects.filter(digest=hash_secret(secret)).select_related("project__workspace").first()
    if row is None:
        raise Conflict("This link does not lead anywhere.", code="spent")
    if row.email and row.email != user.email:
        raise Conflict(f"This invitation is for {row.email}; you are signed in as {user.email}.", code="other_address")
    # claimed by the update, not by the look: two people with the last use of a link must not both get in
    used = ProjectInvite.objects.filter(_still_open(), pk=row.pk).update(uses_left=F("uses_left") - 1)
    if known := participation(user, secret):  # another window of theirs was faster, and this one waited for it
        ProjectInvite.objects.filter(pk=row.pk).update(uses_left=F("uses_left") + used)
        return known
    if not used:
        raise Conflict("This link was used up, has expired or was revoked.", code="spent")
    accounts.enter(row.project.workspace, user, Role.ANNOTATOR)
    addresses.prove(user, row.proof)
    participant, _ = Participant.objects.get_or_create(project=row.project, user=user)
    audit.record(row.project.workspace, user, "project.joined", row.project, invite=row.pk)
    return participant


@transaction.atomic
def sign_up(secret: str, *, email: str = "", name: str, password: str) -> Participant:
    """Makes an account and joins with it. Raises Invalid at `email` where there is such an account already.

    A link for one address makes the account of that address, whatever `email` says.
    """
    row = open_invite(secret)
    if row is None or not row.email:
        return join(accounts.sign_up(email, name, password), secret)
    return join(accounts.sign_up_invited(row.email, row.proof, name, password), secret)


def _tell(membership: Membership, project: Project) -> None:
    message: dict[str, object] = {"type": "project", "id": project.pk}
    broadcast.send(f"workspace.{membership.workspace_id}", message)
