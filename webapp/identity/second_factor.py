"""Second factors: who has one, which workspaces ask for one, and what that keeps closed."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from allauth.account.internal.flows.login import get_authentication_records
from allauth.mfa.models import Authenticator
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from webapp.accounts import services, sessions
from webapp.accounts.models import Membership, SignedIn, User, Workspace
from webapp.core import audit
from webapp.core.problems import Conflict

PROOFS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)  # recovery codes alone are none
SESSION_KEY = "second_factor"


def proofs(user_id: int) -> "QuerySet[Authenticator]":
    """The person's authenticator app and passkeys."""
    found: QuerySet[Authenticator] = Authenticator.objects.filter(user_id=user_id, type__in=PROOFS)
    return found


def is_missing(session: Any, membership: Membership) -> bool:
    """Whether the workspace asks for a second factor that this session has not.

    Who has one was asked for it on the way in. Who came by the company's directory was asked there. A session that is
    good once stays so: `may_give_up` keeps people from taking the factor away that a workspace of theirs asks for.
    """
    if not membership.workspace.asks_second_factor or session.get(SESSION_KEY) == membership.user_id:
        return False
    # of this person: what somebody else began in the same browser does not count
    methods = get_authentication_records(SimpleNamespace(session=session), membership.user)
    if not any(each.get("method") == "socialaccount" for each in methods) and not proofs(membership.user_id).exists():
        return True
    session[SESSION_KEY] = membership.user_id
    return False


def strictest(membership: Membership) -> Membership:
    """One of the same person's memberships whose workspace asks for a second factor, where there is one."""
    asking = Membership.objects.filter(user_id=membership.user_id, workspace__asks_second_factor=True)
    return asking.select_related("workspace").first() or membership


def may_give_up(authenticator: Authenticator) -> bool:
    """The last proof stays while a workspace of the person's asks for one."""
    asked = Membership.objects.filter(user_id=authenticator.user_id, workspace__asks_second_factor=True).exists()
    return not asked or proofs(authenticator.user_id).exclude(pk=authenticator.pk).exists()


@transaction.atomic
def ask(membership: Membership, yes: bool) -> None:
    """Whether the workspace asks its people for a second factor. From then on it is closed to sessions without one.

    Raises Conflict for an owner who has none: the door would close on them.
    """
    if yes and not proofs(membership.user_id).exists():
        raise Conflict("Set up a second factor yourself first.")
    changed = Workspace.objects.filter(pk=membership.workspace_id).exclude(asks_second_factor=yes)
    if changed.update(asks_second_factor=yes):
        audit.record(membership, membership.user, "workspace.second_factor", membership.workspace, asked=yes)


@transaction.atomic
def forget(user: User) -> int:
    """Takes all second factors of somebody who lost theirs, by whoever runs the server; how many there were."""
    count, _ = Authenticator.objects.filter(user=user).delete()
    sessions.end(SignedIn.objects.filter(user=user))
    services.record_session(user, "second_factor.forgotten")
    return int(count)


def added(sender: object, request: HttpRequest, user: User, authenticator: Authenticator, **_: object) -> None:
    """Receiver of allauth's signal. Sessions that were opened without the factor end: `is_missing` believes those that are
    open, and one of them may be whom it shall keep out."""
    services.record_session(user, f"second_factor.{authenticator.type}_added")
    if authenticator.type in PROOFS:
        sessions.end(SignedIn.objects.filter(user=user).exclude(session_key=request.session.session_key or ""))


def removed(sender: object, user: User, authenticator: Authenticator, **_: object) -> None:
    services.record_session(user, f"second_factor.{authenticator.type}_removed")


def reset(sender: object, user: User, authenticator: Authenticator, **_: object) -> None:
    services.record_session(user, f"second_factor.{authenticator.type}_made_anew")


def without(members: Iterable[Membership]) -> set[int]:
    """Of these members the ids of the users who have no second factor, in one query."""
    ids = {each.user_id for each in members}
    have = Authenticator.objects.filter(user_id__in=ids, type__in=PROOFS).values_list("user_id", flat=True)
    return ids - set(have)
