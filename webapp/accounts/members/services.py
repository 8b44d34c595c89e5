"""People join a workspace, change their role there, and leave."""

import secrets
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from webapp.core.auditing import audit
from webapp.core.network import mail
from webapp.core.problems import Conflict, Invalid

from ..addresses import services as addresses
from ..models import RANK, ApiToken, Invite, Membership, Proof, Role, User, Workspace, hash_secret
from ..sign_in.services import sign_up
from . import removals

INVITE_LIFETIME = timedelta(days=7)


@transaction.atomic
def invite(membership: Membership, email: str, role: str) -> str:
    """Invites `email` and returns the secret of the invitation; empty if it was mailed there. The invitation is bound to that address, and
    never opens an account whose address is verified.

    Raises Invalid at `role` or `email`, Conflict for a member with that address (unless it is not verified), NotSent.
    """
    if role not in Role.values:
        raise Invalid("Unknown role.", {"role": f"must be one of {', '.join(Role.values)}"})
    email = email.strip().lower()
    if problems := addresses.wrong(email):
        raise Invalid("An invitation needs an address.", problems)
    inside = Membership.objects.filter(workspace=membership.workspace, user__email=email)
    if inside.exclude(user__proof=Proof.NONE).exists():
        raise Conflict(f"{email} is already a member.")
    secret = secrets.token_urlsafe(32)
    Invite.objects.filter(workspace=membership.workspace, email=email, accepted_at=None).delete()  # the newest counts
    row = Invite.objects.create(
        workspace=membership.workspace,
        email=email,
        role=role,
        digest=hash_secret(secret),
        created_by=membership.user,
        expires_at=timezone.now() + INVITE_LIFETIME,
        mailed=mail.is_configured(),
    )
    audit.record(membership, membership.user, "member.invited", row, email=email, role=role)
    if row.mailed:
        addresses.mail_invitation(email, membership.workspace.name, f"/invite/{secret}")
    return "" if row.mailed else secret


@transaction.atomic
def revoke_invite(membership: Membership, row: Invite) -> None:
    """Revokes the invitation: it opens nothing from now on. Revoking it twice is not an error."""
    if Invite.objects.filter(pk=row.pk, accepted_at=None).delete()[0]:
        audit.record(membership, membership.user, "member.invite_revoked", row, email=row.email)


def open_invite(secret: str) -> Invite | None:
    """The invitation, if it is open."""
    return Invite.objects.open().filter(digest=hash_secret(secret)).select_related("workspace").first()


@transaction.atomic
def accept_invite(row: Invite, user: User) -> Membership:
    """Makes `user` a member, and notes that the address is theirs. Raises Conflict if the invitation is for another address, or is not open
    any more. A person who is already a member gets the role of the invitation if that is higher."""
    if user.email != row.email:
        raise Conflict(f"This invitation is for {row.email}; you are signed in as {user.email}.")
    if not Invite.objects.open().filter(pk=row.pk).update(accepted_at=timezone.now()):
        raise Conflict("This invitation does not work any more. Ask an owner of the workspace for a new one.")
    removals.delete_removals(row.workspace, user, row.email)  # an owner has invited them again
    membership = enter(row.workspace, user, row.role)
    addresses.prove(user, row.proof)
    if RANK[Role(row.role)] > RANK[Role(membership.role)]:
        audit.record(
            row.workspace,
            user,
            "member.role_changed",
            membership,
            before=membership.role,
            after=row.role,
            invite=row.pk,
        )
        Membership.objects.filter(pk=membership.pk).update(role=row.role)
        membership.role = row.role
    return membership


@transaction.atomic
def join(row: Invite, user: User | None, name: str = "", password: str | None = None) -> Membership:
    """Accepts an invitation; without `user`, creates the account it is addressed to."""
    return accept_invite(row, user or sign_up_invited(row.email, row.proof, name, password))


@transaction.atomic
def sign_up_invited(email: str, proof: str, name: str, password: str | None) -> User:
    """Creates the account for an invitation bound to `email`, with the address that the invitation verifies. Raises Conflict if an account
    has shown as much."""
    addresses.take(email, proof)
    try:
        return sign_up(email, name, password, proof)
    except Invalid as error:
        raise Conflict(addresses.HAS_ACCOUNT) from error


@transaction.atomic
def enter(workspace: Workspace, user: User, role: str) -> Membership:
    """Makes `user` a member with `role`. A person who is already a member keeps their role.

    The caller has checked an invitation: this function asks for none. Raises Conflict if `user` was removed.
    """
    if removals.is_kept_out(workspace, user):
        raise Conflict("You were removed from this workspace. Ask one of its owners for an invitation.", code="removed")
    membership, created = Membership.objects.get_or_create(user=user, workspace=workspace, defaults={"role": role})
    if created:
        audit.record(workspace, user, "member.joined", membership, role=membership.role)
    return membership


@transaction.atomic
def change_role(membership: Membership, other: Membership, role: str) -> None:
    """Gives `other` another role. A workspace keeps at least one owner. A person whose address is not verified stays an annotator
    (Conflict)."""
    if role not in Role.values:
        raise Invalid("Unknown role.", {"role": f"must be one of {', '.join(Role.values)}"})
    if role != Role.OWNER:
        _keep_an_owner(other)
    if RANK[Role(role)] > RANK[Role(other.role)]:
        addresses.must_be_verified(other.user)
    audit.record(membership, membership.user, "member.role_changed", other, before=other.role, after=role)
    Membership.objects.filter(pk=other.pk).update(role=role)


@transaction.atomic
def remove_member(membership: Membership, other: Membership) -> None:
    """Ends a membership, revokes the tokens of the person for this workspace, and closes the links by which they could come back."""
    _keep_an_owner(other)
    ApiToken.objects.filter(workspace=other.workspace, user=other.user, revoked_at=None).update(
        revoked_at=timezone.now()
    )
    Invite.objects.filter(workspace=other.workspace, email=other.user.email, accepted_at=None).delete()
    removals.keep_out(other.workspace, other.user)
    audit.record(membership, membership.user, "member.removed", other, email=other.user.email)
    other.delete()


def leave(membership: Membership, by: str) -> None:
    """Ends a membership because `by` (the company's directory) says so, and revokes its tokens.

    Nobody removed the person, so they may come back. Raises Conflict for the last owner.
    """
    _keep_an_owner(membership)
    ApiToken.objects.filter(workspace=membership.workspace, user=membership.user, revoked_at=None).update(
        revoked_at=timezone.now()
    )
    audit.record(membership.workspace, None, "member.left", membership, email=membership.user.email, by=by)
    membership.delete()


def take_role(membership: Membership, role: str, by: str) -> None:
    """Sets another role because `by` says so. Raises Conflict for the last owner."""
    if role != Role.OWNER:
        _keep_an_owner(membership)
    audit.record(
        membership.workspace, None, "member.role_changed", membership, before=membership.role, after=role, by=by
    )
    Membership.objects.filter(pk=membership.pk).update(role=role)


def _keep_an_owner(leaving: Membership) -> None:
    # locks the owners' rows: if two owners leave at once, each transaction would see the other one stay
    owners = list(
        Membership.objects.select_for_update()
        .filter(workspace=leaving.workspace, role=Role.OWNER)
        .values_list("id", flat=True)
    )
    if owners == [leaving.pk]:
        raise Conflict("A workspace needs an owner. Make someone else an owner first.")
