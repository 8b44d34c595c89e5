"""The people of a project, and the links that let others in."""

import secrets
from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from webapp.accounts.addresses import services as addresses
from webapp.accounts.members.services import enter, sign_up_invited
from webapp.accounts.models import Membership, Removal, Role, User, hash_secret
from webapp.accounts.sign_in import services as accounts
from webapp.core.auditing import audit
from webapp.core.network import mail
from webapp.core.problems import Conflict, Invalid

from ..models import Participant, Project, ProjectInvite
from ..work.queue import release

MAX_USES, MAX_DAYS = 500, 365


def add_participant(membership: Membership, project: Project, user: User) -> Participant:
    """Lets a member of the workspace work in the project. Doing it twice is not an error."""
    add_participants(membership, project, [user])
    return Participant.objects.get(project=project, user=user)


@transaction.atomic
def add_participants(membership: Membership, project: Project, users: Iterable[User]) -> list[User]:
    """Lets all of them work in the project, or none: raises Invalid if one is not a member, with the names of those who were removed."""
    chosen = list(users)
    ids = [user.pk for user in chosen if user.pk]
    members = Membership.objects.filter(workspace=membership.workspace, user__in=ids)
    known = set(members.values_list("user_id", flat=True))
    if gone := [user for user in chosen if user.pk not in known]:
        raise Invalid(
            f"Nobody was added: {_not_here(membership, gone)} not in this workspace.", {"user": "is not a member"}
        )
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)  # so that two who add a person tell it once
    there = set(Participant.objects.filter(project=project, user__in=ids).values_list("user_id", flat=True))
    new = [user_id for user_id in dict.fromkeys(ids) if user_id not in there]
    rows = [Participant(project=project, user_id=user_id) for user_id in new]
    Participant.objects.bulk_create(rows, ignore_conflicts=True)  # who begins to work takes part, too: see `seats`
    told = [{"user": user_id} for user_id in new]
    audit.record_each(membership, membership.user, "project.participant_added", project, told)
    return chosen


def _not_here(membership: Membership, gone: list[User]) -> str:
    """The words for people who are not here, with their verb. Only people who were removed from this workspace are named:
    others may never have been in it."""
    ids = [user.pk for user in gone if user.pk]
    removed = Removal.objects.filter(workspace=membership.workspace, user__in=ids).select_related("user")
    names = [str(each.user) for each in removed.order_by("user__email")]
    if others := len(gone) - len(names):
        names.append(f"{others} {'other ' if names else ''}{'person' if others == 1 else 'people'}")
    return f"{', '.join(names)} {'is' if len(gone) == 1 else 'are'}"


@transaction.atomic
def pause_participant(membership: Membership, project: Project, user: User, paused: bool) -> Participant:
    """Pauses a person or ends the pause. A paused person gets no more tasks, and the tasks they hold go back to the queue at once."""
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
    """A link's row and its secret, which cannot be read again; empty if it was mailed. With `email` it is for that address alone, once.
    Raises Invalid at `uses`, `days` or `email`, NotSent."""
    problems = {}
    if not 1 <= uses <= MAX_USES:
        problems["uses"] = f"must be between 1 and {MAX_USES}"
    if not 1 <= days <= MAX_DAYS:
        problems["days"] = f"must be between 1 and {MAX_DAYS}"
    if email := email.strip().lower():
        problems |= addresses.wrong(email) | ({"uses": "must be 1 for one address"} if uses != 1 else {})
    if problems:
        raise Invalid("The invitation cannot be made like this.", problems)
    secret = secrets.token_urlsafe(32)
    row = ProjectInvite.objects.create(
        project=project,
        digest=hash_secret(secret),
        uses_left=uses,
        expires_at=timezone.now() + timedelta(days=days),
        created_by=membership.user,
        email=email,
        mailed=bool(email) and mail.is_configured(),
    )
    told = {"email": email} if email else {}
    audit.record(membership, membership.user, "project.invited", project, invite=row.pk, uses=uses, days=days, **told)
    if row.mailed:
        addresses.mail_invitation(email, project.name, f"/join/{secret}")
    return row, "" if row.mailed else secret


@transaction.atomic
def revoke_invite(membership: Membership, row: ProjectInvite) -> None:
    """Revokes the link: it opens nothing from now on. Revoking it twice is not an error."""
    if ProjectInvite.objects.filter(pk=row.pk, revoked_at=None).update(revoked_at=timezone.now()):
        audit.record(membership, membership.user, "project.invite_revoked", row.project, invite=row.pk)


def open_invite(secret: str) -> ProjectInvite | None:
    """The invitation behind a link, if it still lets somebody in."""
    rows = ProjectInvite.objects.filter(_still_open(), digest=hash_secret(secret))
    return rows.select_related("project__workspace").first()


def participation(user: User, secret: str) -> Participant | None:
    """The participation of a person who is in the link's project already. For them it does not matter whether the link is still open."""
    mine = Participant.objects.filter(user=user, project__invites__digest=hash_secret(secret))
    row = mine.select_related("project").first()
    inside = row and Membership.objects.filter(workspace_id=row.project.workspace_id, user=user).exists()
    return row if inside else None


def _still_open() -> Q:
    return Q(uses_left__gt=0, revoked_at=None, expires_at__gt=timezone.now())


@transaction.atomic
def join(user: User, secret: str) -> Participant:
    """Makes `user` a participant, and an annotator of the workspace if they are not a member yet.

    A person who takes part already uses nothing up. Raises Conflict if the link is used up, expired, revoked or for another address.
    """
    if known := participation(user, secret):
        return known
    row = ProjectInvite.objects.filter(digest=hash_secret(secret)).select_related("project__workspace").first()
    if row is None:
        raise Conflict("This link does not exist.", code="spent")
    if row.email and row.email != user.email:
        raise Conflict(f"This invitation is for {row.email}; you are signed in as {user.email}.", code="other_address")
    # the update claims the link, not the read: two people with its last use must not both get in
    used = ProjectInvite.objects.filter(_still_open(), pk=row.pk).update(uses_left=F("uses_left") - 1)
    if known := participation(user, secret):  # another window of theirs was faster, and this one waited for it
        ProjectInvite.objects.filter(pk=row.pk).update(uses_left=F("uses_left") + used)
        return known
    if not used:
        raise Conflict("This link was used up, has expired or was revoked.", code="spent")
    enter(row.project.workspace, user, Role.ANNOTATOR)
    addresses.prove(user, row.proof)
    participant, _ = Participant.objects.get_or_create(project=row.project, user=user)
    audit.record(row.project.workspace, user, "project.joined", row.project, invite=row.pk)
    return participant


@transaction.atomic
def sign_up(secret: str, *, email: str = "", name: str, password: str) -> Participant:
    """Creates an account and joins with it. Raises Invalid at `email` if there is such an account already.

    A link for one address creates the account of that address, whichever `email` is given.
    """
    row = open_invite(secret)
    if row is None or not row.email:
        return join(accounts.sign_up(email, name, password), secret)
    return join(sign_up_invited(row.email, row.proof, name, password), secret)
