"""Every change to people, workspaces and keys. Secrets are returned once, at creation; only digests are stored."""

import secrets
from collections.abc import Mapping
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.text import slugify

from webapp.core import audit, mail
from webapp.core.problems import Conflict, Invalid
from webapp.core.texts import stripped

from . import addresses, areas, removals, sessions
from .models import (
    RANK,
    ApiToken,
    Invite,
    Membership,
    Proof,
    Role,
    SignedIn,
    SignInLink,
    User,
    Workspace,
    hash_secret,
)

LINK_LIFETIME = timedelta(hours=12)
INVITE_LIFETIME = timedelta(days=7)
TOKEN_DAYS = 90  # where nobody says otherwise
LONGEST_TOKEN_DAYS = 3650


def get_or_create_user(email: str, name: str = "") -> User:
    """For whoever runs the server: the person with this address; a new one has no password and signs in by link until they
    set one. Whoever took the address without showing that it is theirs gives way."""
    known = User.objects.filter(email=email.strip().lower()).exclude(proof=Proof.NONE).first()
    if known:
        return known
    addresses.take(email.strip().lower(), Proof.SERVER)
    return User.objects.create_user(email, name=name, proof=Proof.SERVER)


def may_create_workspaces(user: User) -> bool:
    return user.is_administrator or user.may_create_workspaces


def with_rights() -> QuerySet[User]:
    """Who may do something in the whole installation, by address."""
    return User.objects.filter(Q(is_administrator=True) | Q(may_create_workspaces=True)).order_by("email")


def allow_workspaces(user: User, allowed: bool) -> None:
    """Raises Conflict where nothing shows that the address is this person's."""
    if allowed:
        _must_be_verified(user)
    User.objects.filter(pk=user.pk).update(may_create_workspaces=allowed)


@transaction.atomic
def make_administrator(user: User, yes: bool) -> None:
    """An installation keeps at least one administrator: raises Conflict for the last one, and for an address not verified."""
    if yes:
        _must_be_verified(user)
    # locks the rows: two who take the right from each other would each see the other keep it
    rows = User.objects.select_for_update().filter(is_administrator=True, is_active=True)
    if not yes and list(rows.values_list("pk", flat=True)) == [user.pk]:
        raise Conflict("An installation needs an administrator. Make somebody else one first.")
    User.objects.filter(pk=user.pk).update(is_administrator=yes)


@transaction.atomic
def give_right(administrator: User, person: User, right: str, yes: bool) -> None:
    """Gives or takes `administrator` or `workspaces`; it stands in the audit logs of the administrator's workspaces.

    Raises Invalid at `right`, Conflict for the last administrator.
    """
    if right not in ("administrator", "workspaces"):
        raise Invalid("Unknown right.", {"right": "must be administrator or workspaces"})
    (make_administrator if right == "administrator" else allow_workspaces)(person, yes)
    for membership in Membership.objects.filter(user=administrator).select_related("workspace"):
        audit.record(membership, administrator, "right.given" if yes else "right.taken", person, right=right)


def _must_be_verified(user: User) -> None:
    """Rights are given to a person who is known by their address."""
    if not user.verified:
        raise Conflict(
            f"The address {user.email} is not verified. Invite it: opening the invitation verifies the address.",
            code="not_verified",
        )


@transaction.atomic
def create_workspace(name: str, owner: User) -> Membership:
    """A new workspace with `owner` as its first member; the first one of an installation makes its administrator.

    The caller has checked that `owner` may: see `may_create_workspaces`.
    """
    if not name.strip():
        raise Invalid("A workspace needs a name.", {"name": "must not be empty"})
    if not Workspace.objects.exists():
        User.objects.filter(pk=owner.pk).update(is_administrator=True)
    base = slugify(name)[:40] or "workspace"
    slug = base
    while Workspace.objects.filter(slug=slug).exists():
        slug = f"{base}-{secrets.token_hex(2)}"
    workspace = Workspace.objects.create(name=name.strip(), slug=slug)
    membership = Membership.objects.create(user=owner, workspace=workspace, role=Role.OWNER)
    audit.record(workspace, owner, "workspace.created", workspace)
    return membership


@transaction.atomic
def create_token(
    membership: Membership,
    name: str,
    scope: str = areas.Right.WRITE,
    days: int | None = TOKEN_DAYS,
    rights: Mapping[str, str] | None = None,
) -> tuple[ApiToken, str]:
    """A new key to the membership's workspace and its secret, which cannot be read again.

    `rights`: {area: "read" or "write"}; None: `scope` in all areas. It opens nothing after so many `days`; None: until
    somebody revokes it. Raises Invalid at `scope`, `areas`, `days` or `name`.
    """
    given = areas.everywhere(scope) if rights is None else areas.checked(rights)
    if days is not None and not 1 <= days <= LONGEST_TOKEN_DAYS:
        raise Invalid("A token cannot last that long.", {"days": f"must be between 1 and {LONGEST_TOKEN_DAYS}"})
    name = stripped(name, 80, "A token needs a name.", "name")
    secret = ApiToken.new_secret()
    token = ApiToken.objects.create(
        user=membership.user,
        workspace=membership.workspace,
        name=name,
        areas=given,
        prefix=secret[:9],
        digest=hash_secret(secret),
        expires_at=None if days is None else timezone.now() + timedelta(days=days),
    )
    audit.record(membership, membership.user, "token.created", token, name=token.name, areas=given, days=days)
    return token, secret


@transaction.atomic
def revoke_token(membership: Membership, token: ApiToken) -> None:
    """From now on the token opens nothing. Revoking twice is no error."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
        audit.record(membership, membership.user, "token.revoked", token, name=token.name, whose=token.user_id)


def create_sign_in_link(user: User) -> str:
    """The secret of a link that signs `user` in once, within LINK_LIFETIME."""
    secret = secrets.token_urlsafe(32)
    SignInLink.objects.create(user=user, digest=hash_secret(secret), expires_at=timezone.now() + LINK_LIFETIME)
    return secret


def claim_sign_in_link(secret: str) -> User | None:
    """The person the link was made for, once; None for every later, late or wrong attempt.

    Whoever runs the server gave the link to the person of the address, so it verifies that address.
    """
    now = timezone.now()
    link = SignInLink.objects.filter(digest=hash_secret(secret)).select_related("user").first()
    # claimed by the update, not by the look: two browsers with the same link must not both get in
    if link and SignInLink.objects.filter(pk=link.pk, used_at=None, expires_at__gt=now).update(used_at=now):
        if not link.user.is_active:
            return None
        addresses.hand_over(link.user)
        return link.user
    return None


@transaction.atomic
def invite(membership: Membership, email: str, role: str) -> str:
    """The secret of an invitation for `email`; empty where it was mailed there. It is bound to that address, and never opens
    an account whose address is verified.

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
        mailed=mail.configured(),
    )
    audit.record(membership, membership.user, "member.invited", row, email=email, role=role)
    if row.mailed:
        addresses.mail_invitation(email, membership.workspace.name, f"/invite/{secret}")
    return "" if row.mailed else secret


@transaction.atomic
def revoke_invite(membership: Membership, row: Invite) -> None:
    """From now on the invitation opens nothing. Revoking twice is no error."""
    if Invite.objects.filter(pk=row.pk, accepted_at=None).delete()[0]:
        audit.record(membership, membership.user, "member.invite_revoked", row, email=row.email)


def open_invite(secret: str) -> Invite | None:
    """The invitation, if it is neither used nor expired."""
    return (
        Invite.objects.filter(digest=hash_secret(secret), accepted_at=None, expires_at__gt=timezone.now())
        .select_related("workspace")
        .first()
    )


@transaction.atomic
def accept_invite(row: Invite, user: User) -> Membership:
    """Makes `user` a member, and shows that the address is theirs. Raises Conflict if the invitation is for another address
    or was used meanwhile. Whoever is a member gets its role where that is higher."""
    if user.email != row.email:
        raise Conflict(f"This invitation is for {row.email}; you are signed in as {user.email}.")
    if not Invite.objects.filter(pk=row.pk, accepted_at=None).update(accepted_at=timezone.now()):
        raise Conflict("This invitation was already used.")
    removals.forget(row.workspace, user, row.email)  # an owner has asked them in again
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
def enter(workspace: Workspace, user: User, role: str) -> Membership:
    """Makes `user` a member with `role`; whoever is one already keeps the role they have.

    The caller has checked an invitation: this function asks for none. Raises Conflict where `user` was removed.
    """
    if removals.is_kept_out(workspace, user):
        raise Conflict("You were removed from this workspace. Ask one of its owners for an invitation.", code="removed")
    membership, created = Membership.objects.get_or_create(user=user, workspace=workspace, defaults={"role": role})
    if created:
        audit.record(workspace, user, "member.joined", membership, role=membership.role)
    return membership


def sign_up(email: str, name: str, password: str | None, proof: str = Proof.NONE) -> User:
    """A new account. Raises Invalid at `email` where the address has one: its owner signs in instead."""
    email = email.strip().lower()
    try:
        with transaction.atomic():  # the address is unique: of two sign-ups at once the second one hears of it
            return User.objects.create_user(email, password, name, proof)
    except IntegrityError as error:
        raise Invalid(
            "There is an account with this address.",
            {
                "email": "has an account already. Sign in if it is yours, or ask for an invitation to this address, which "
                "gives you the account"
            },
        ) from error


@transaction.atomic
def sign_up_invited(email: str, proof: str, name: str, password: str | None) -> User:
    """The account that an invitation bound to `email` is addressed to, made with the address that the invitation shows to be
    theirs. Raises Conflict where an account has shown as much."""
    addresses.take(email, proof)
    try:
        return sign_up(email, name, password, proof)
    except Invalid as error:
        raise Conflict(addresses.HAS_ACCOUNT) from error


@transaction.atomic
def join(row: Invite, user: User | None, name: str = "", password: str | None = None) -> Membership:
    """Accepts an invitation; without `user`, makes the account it is addressed to."""
    return accept_invite(row, user or sign_up_invited(row.email, row.proof, name, password))


@transaction.atomic
def change_role(membership: Membership, other: Membership, role: str) -> None:
    """Gives `other` another role. A workspace keeps at least one owner; who is known by an address that nobody has verified
    stays an annotator (Conflict)."""
    if role not in Role.values:
        raise Invalid("Unknown role.", {"role": f"must be one of {', '.join(Role.values)}"})
    if role != Role.OWNER:
        _keep_an_owner(other)
    if RANK[Role(role)] > RANK[Role(other.role)]:
        _must_be_verified(other.user)
    audit.record(membership, membership.user, "member.role_changed", other, before=other.role, after=role)
    Membership.objects.filter(pk=other.pk).update(role=role)


@transaction.atomic
def remove_member(membership: Membership, other: Membership) -> None:
    """Ends a membership, revokes the keys that came with it, and closes the links by which the person could come back."""
    _keep_an_owner(other)
    ApiToken.objects.filter(workspace=other.workspace, user=other.user, revoked_at=None).update(
        revoked_at=timezone.now()
    )
    Invite.objects.filter(workspace=other.workspace, email=other.user.email, accepted_at=None).delete()
    removals.keep_out(other.workspace, other.user)
    audit.record(membership, membership.user, "member.removed", other, email=other.user.email)
    other.delete()


def leave(membership: Membership, by: str) -> None:
    """Ends a membership because `by` (the company's directory) says so, and revokes the keys that came with it.

    Nobody removed the person: the door stays open to them. Raises Conflict for the last owner.
    """
    _keep_an_owner(membership)
    ApiToken.objects.filter(workspace=membership.workspace, user=membership.user, revoked_at=None).update(
        revoked_at=timezone.now()
    )
    audit.record(membership.workspace, None, "member.left", membership, email=membership.user.email, by=by)
    membership.delete()


def take_role(membership: Membership, role: str, by: str) -> None:
    """Another role because `by` says so. Raises Conflict for the last owner."""
    if role != Role.OWNER:
        _keep_an_owner(membership)
    audit.record(
        membership.workspace, None, "member.role_changed", membership, before=membership.role, after=role, by=by
    )
    Membership.objects.filter(pk=membership.pk).update(role=role)


def _keep_an_owner(leaving: Membership) -> None:
    # locks the owners' rows: two owners leaving at once would each see the other stay
    owners = list(
        Membership.objects.select_for_update()
        .filter(workspace=leaving.workspace, role=Role.OWNER)
        .values_list("id", flat=True)
    )
    if owners == [leaving.pk]:
        raise Conflict("A workspace needs an owner. Make someone else an owner first.")


def set_password(user: User, password: str, here: str | None = None) -> None:
    """The caller has checked who asks and how good the password is. Signs out every browser but that of the session `here`,
    and spends every sign-in link: whoever else holds one does not come in by it."""
    with transaction.atomic():
        sessions.end(SignedIn.objects.filter(user=user).exclude(session_key=here or ""))
        user.set_password(password)
        user.save(update_fields=["password"])
        SignInLink.objects.filter(user=user, used_at=None).update(used_at=timezone.now())
        record_session(user, "password.changed")


@transaction.atomic
def end_sessions(user: User, rows: QuerySet[SignedIn]) -> int:
    """Signs out these browsers of the person, at their wish; how many there were."""
    count = sessions.end(rows.filter(user=user))
    if count:
        record_session(user, "session.ended", sessions=count)
    return count


@transaction.atomic
def end_sessions_of(administrator: User, person: User) -> int:
    """Signs a person out everywhere, by an administrator; it stands in the logs of the workspaces of both."""
    count = sessions.end(SignedIn.objects.filter(user=person))
    both = Membership.objects.filter(user__in=(administrator, person)).order_by("workspace_id", "id")
    for membership in both.distinct("workspace_id").select_related("workspace"):
        audit.record(membership, administrator, "session.ended_by_administrator", person, sessions=count)
    return count


def set_theme(user: User, theme: str) -> None:
    """`system`, `light` or `dark`."""
    if theme not in User.Theme.values:
        raise Invalid("Unknown theme.", {"theme": "must be system, light or dark"})
    User.objects.filter(pk=user.pk).update(theme=theme)


def touch_token(token: ApiToken) -> None:
    """Notes that the token was used and from which address, to the minute: one write a minute, not one a request."""
    now, address = timezone.now(), audit.origin.get().address[:45]
    if token.last_used_at is None or now - token.last_used_at > timedelta(minutes=1):
        fields = {"last_used_at": now, **({"last_used_from": address} if address else {})}
        ApiToken.objects.filter(pk=token.pk).update(**fields)


def record_audit_export(membership: Membership, asked: dict[str, str]) -> None:
    """`asked`: by what the log was filtered."""
    audit.record(membership, membership.user, "audit.exported", membership.workspace, filter=asked)


def record_session(user: User, action: str, **detail: object) -> None:
    """`session.started` and the like, in the log of each workspace that the person belongs to: it opens all of them."""
    for membership in Membership.objects.filter(user=user).select_related("workspace"):
        audit.record(membership, user, action, user, **detail)
