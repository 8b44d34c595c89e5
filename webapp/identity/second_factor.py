"""Second factors: the people who have one, the workspaces that ask for one, and the pages that this closes."""

import logging
from collections.abc import Callable, Iterable
from functools import wraps
from types import SimpleNamespace
from typing import Any, cast

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY, get_authentication_records
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase

from webapp.accounts.models import Membership, SignedIn, User, Workspace
from webapp.accounts.sessions import services as sessions
from webapp.core.auditing import audit
from webapp.core.problems import Conflict

logger = logging.getLogger(__name__)
PROOFS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)  # recovery codes alone are none
SESSION_KEY = "second_factor"
BY_COMPANY = "socialaccount"  # what allauth calls that way in
VOUCHED = "second_factor"  # what we add to its record


def authenticators_of(user_id: int) -> "QuerySet[Authenticator]":
    """The person's authenticator app and passkeys."""
    found: QuerySet[Authenticator] = Authenticator.objects.filter(user_id=user_id, type__in=PROOFS)
    return found


def is_missing(session: Any, membership: Membership) -> bool:
    """Whether the workspace asks for a second factor that this session has not.

    A person with a factor was asked for it at the sign-in. A person who came by the company's sign-in was asked there, if `_by_company`
    says so. A session that is good once stays so: `may_give_up` keeps people from taking the factor away that a workspace of theirs asks
    for.
    """
    if not membership.workspace.asks_second_factor or session.get(SESSION_KEY) == membership.user_id:
        return False
    # of this person: what somebody else began in the same browser does not count
    methods = get_authentication_records(SimpleNamespace(session=session), membership.user)
    if not any(map(_by_company, methods)) and not authenticators_of(membership.user_id).exists():
        return True
    session[SESSION_KEY] = membership.user_id
    return False


def note_company_factor(request: HttpRequest, user: User) -> None:
    """Notes that the company's sign-in, which opened this session just now, used a second factor, as the provider says."""
    records = get_authentication_records(request, user)
    for each in records:
        if each.get("method") == BY_COMPANY:
            each[VOUCHED] = True
    request.session[AUTHENTICATION_METHODS_SESSION_KEY] = records


def _by_company(record: dict[str, Any]) -> bool:
    """Whether this way in was the company's sign-in, with a second factor."""
    return record.get("method") == BY_COMPANY and (
        record.get(VOUCHED) is True or settings.ENV.company_second_factor == "always"
    )


def membership_that_requires_it(membership: Membership) -> Membership:
    """One of the same person's memberships whose workspace asks for a second factor, if there is one."""
    asking = Membership.objects.filter(user_id=membership.user_id, workspace__asks_second_factor=True)
    return asking.select_related("workspace").first() or membership


def may_give_up(authenticator: Authenticator) -> bool:
    """Whether the factor may be removed: the last one stays while a workspace of the person's asks for one."""
    asked = Membership.objects.filter(user_id=authenticator.user_id, workspace__asks_second_factor=True).exists()
    return not asked or authenticators_of(authenticator.user_id).exclude(pk=authenticator.pk).exists()


@transaction.atomic
def ask(membership: Membership, yes: bool) -> None:
    """Whether the workspace asks its people for a second factor. From then on it is closed to sessions without one.

    Raises Conflict for an owner who has none: the door would close on them.
    """
    if yes and not authenticators_of(membership.user_id).exists():
        raise Conflict("Set up your own second factor first.")
    changed = Workspace.objects.filter(pk=membership.workspace_id).exclude(asks_second_factor=yes)
    if changed.update(asks_second_factor=yes):
        audit.record(membership, membership.user, "workspace.second_factor", membership.workspace, asked=yes)


@transaction.atomic
def remove_second_factors(user: User) -> int:
    """Takes all second factors of a person who lost theirs, for the person who runs the server; returns how many there were."""
    count, _ = Authenticator.objects.filter(user=user).delete()
    sessions.end(SignedIn.objects.filter(user=user))
    sessions.record_session(user, "second_factor.forgotten")
    return int(count)


def added(sender: object, request: HttpRequest, user: User, authenticator: Authenticator, **_: object) -> None:
    """Receiver of allauth's signal. Sessions that were opened without the factor end: `is_missing` trusts open sessions, and one of them
    may be an intruder's."""
    _changed(request, user, authenticator, "added")


def removed(sender: object, request: HttpRequest, user: User, authenticator: Authenticator, **_: object) -> None:
    _changed(request, user, authenticator, "removed")


def reset(sender: object, request: HttpRequest, user: User, authenticator: Authenticator, **_: object) -> None:
    _changed(request, user, authenticator, "made_anew")


def _changed(request: HttpRequest, user: User, authenticator: Authenticator, how: str) -> None:
    """Records the change, and signs out all other browsers; recovery codes that are made together with a first factor are not a change."""
    sessions.record_session(user, f"second_factor.{authenticator.type}_{how}")
    if authenticator.type in PROOFS or how == "made_anew":
        sessions.end(SignedIn.objects.filter(user=user).exclude(session_key=request.session.session_key or ""))


def failed(sender: object, user: User, authenticator: Authenticator, **_: object) -> None:
    """Receiver of allauth's signal: a wrong code or key. It is logged, but not in the audit log, which a person who guesses could fill."""
    logger.warning("refused a second factor (%s) of person %s", authenticator.type, user.pk)


def users_without_it(members: Iterable[Membership]) -> set[int]:
    """The ids of these members' users who have no second factor, in one query."""
    ids = {each.user_id for each in members}
    have = Authenticator.objects.filter(user_id__in=ids, type__in=PROOFS).values_list("user_id", flat=True)
    return ids - set(have)


def renewed(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Decorator of the pages on which somebody confirms who they are: the session then continues under another key, so that a
    key from before cannot do what the confirmation allows."""

    @wraps(view)
    def confirming(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        before = len(get_authentication_records(request, cast(User, request.user)))
        response = view(request, *args, **kwargs)
        if len(get_authentication_records(request, cast(User, request.user))) > before:
            request.session.cycle_key()
        return response

    return confirming
