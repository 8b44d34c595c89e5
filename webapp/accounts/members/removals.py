"""Whom a workspace keeps out because an owner removed them, also once the account that was removed is erased.

Of an erased account only digests stay: of its verified address and of who it was to the company's sign-in, each under a key of its own
that lies sealed. They answer whether somebody who comes is that person, and tell nobody's name. An address that was only typed leaves
none: it may be somebody else's.
"""

import hmac
import secrets
from collections.abc import Iterator

from allauth.socialaccount.models import SocialAccount

from webapp.core.sealed import Unreadable, seal, unseal

from ..models import FormerRemoval, Removal, User, Workspace


def keep_out(workspace: Workspace, user: User) -> None:
    Removal.objects.get_or_create(workspace=workspace, user=user)


def is_kept_out(workspace: Workspace, user: User) -> bool:
    if Removal.objects.filter(workspace=workspace, user=user).exists():
        return True
    known = list(_marks(user))
    return any(True for _ in _of(workspace, known))


def forget(workspace: Workspace, user: User, address: str) -> None:
    """An owner has asked in who has `address`, and `user` came."""
    Removal.objects.filter(workspace=workspace, user=user).delete()
    marks = [*_marks(user), _of_address(address)]
    FormerRemoval.objects.filter(pk__in=[row.pk for row in _of(workspace, marks)]).delete()


def outlive(user: User) -> None:
    """Before the account is erased: what will tell its person when they come back."""
    marks = list(_marks(user))
    rows = []
    for workspace_id in Removal.objects.filter(user=user).order_by("pk").values_list("workspace_id", flat=True):
        for mark in marks:
            key = secrets.token_hex(32)
            rows.append(FormerRemoval(workspace_id=workspace_id, key=seal(key), digest=_digest(key, mark)))
    FormerRemoval.objects.bulk_create(rows)


def _of(workspace: Workspace, marks: list[str]) -> Iterator[FormerRemoval]:
    """Removals of a former account of whoever has one of these marks."""
    for row in FormerRemoval.objects.filter(workspace=workspace) if marks else ():
        try:
            key = unseal(row.key)
        except Unreadable:  # SECRET_KEY was lost, and this with it
            continue
        if any(hmac.compare_digest(row.digest, _digest(key, mark)) for mark in marks):
            yield row


def _marks(user: User) -> Iterator[str]:
    """What has shown who somebody is."""
    if user.verified:
        yield _of_address(user.email)
    for provider, uid in SocialAccount.objects.filter(user_id=user.pk).values_list("provider", "uid"):
        yield f"{provider} {uid}"


def _of_address(address: str) -> str:
    return f"address {address.strip().lower()}"


def _digest(key: str, mark: str) -> str:
    return hmac.new(bytes.fromhex(key), mark.encode(), "sha256").hexdigest()
