"""People who may not come back into a workspace because an owner removed them. This still holds after their account is erased.

Of an erased account only digests stay: of its verified address and of its identity at the company's sign-in, each under its own sealed key.
They answer whether a person who comes is that person, and tell nobody's name. An unverified address leaves no digest, because it may be
somebody else's.
"""

import hmac
import secrets
from collections.abc import Iterator

from allauth.socialaccount.models import SocialAccount

from webapp.core.encryption import Unreadable, seal, unseal

from ..models import FormerRemoval, Removal, User, Workspace


def keep_out(workspace: Workspace, user: User) -> None:
    Removal.objects.get_or_create(workspace=workspace, user=user)


def is_kept_out(workspace: Workspace, user: User) -> bool:
    if Removal.objects.filter(workspace=workspace, user=user).exists():
        return True
    known = list(_marks(user))
    return any(True for _ in _of(workspace, known))


def delete_removals(workspace: Workspace, user: User, address: str) -> None:
    """Deletes the removals of `user`: an owner has invited the person with `address`, and `user` came."""
    Removal.objects.filter(workspace=workspace, user=user).delete()
    marks = [*_marks(user), _of_address(address)]
    FormerRemoval.objects.filter(pk__in=[row.pk for row in _of(workspace, marks)]).delete()


def keep_digests(user: User) -> None:
    """Stores digests that will recognise the person when they come back. Call it before the account is erased."""
    marks = list(_marks(user))
    rows = []
    for workspace_id in Removal.objects.filter(user=user).order_by("pk").values_list("workspace_id", flat=True):
        for mark in marks:
            key = secrets.token_hex(32)
            rows.append(FormerRemoval(workspace_id=workspace_id, key=seal(key), digest=_digest(key, mark)))
    FormerRemoval.objects.bulk_create(rows)


def _of(workspace: Workspace, marks: list[str]) -> Iterator[FormerRemoval]:
    """Removals of a former account with one of these marks."""
    for row in FormerRemoval.objects.filter(workspace=workspace) if marks else ():
        try:
            key = unseal(row.key)
        except Unreadable:  # SECRET_KEY was lost, and so was this key
            continue
        if any(hmac.compare_digest(row.digest, _digest(key, mark)) for mark in marks):
            yield row


def _marks(user: User) -> Iterator[str]:
    """The texts that identify a person: the verified address, and each identity at the company's sign-in."""
    if user.verified:
        yield _of_address(user.email)
    for provider, uid in SocialAccount.objects.filter(user_id=user.pk).values_list("provider", "uid"):
        yield f"{provider} {uid}"


def _of_address(address: str) -> str:
    return f"address {address.strip().lower()}"


def _digest(key: str, mark: str) -> str:
    return hmac.new(bytes.fromhex(key), mark.encode(), "sha256").hexdigest()
