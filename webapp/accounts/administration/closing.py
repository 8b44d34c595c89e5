"""Closed accounts: nobody can sign in to them. The person's data stays, and so do the memberships that owners gave; they open nothing."""

from django.db import transaction
from django.utils import timezone

from webapp.core.problems import Conflict

from ..audit_everywhere import record_everywhere
from ..models import AddressCheck, ApiToken, SignedIn, SignInLink, User
from ..sessions.services import end


@transaction.atomic
def close(user: User, by: str) -> None:
    """Closes an account because `by` (a directory) says so: nobody can sign in to it from now on, and its sessions and tokens end. Rights
    in the installation end for good. Raises Conflict for the last administrator."""
    # locks the rows: if two administrators are closed at once, each transaction would see the other one stay
    administrators = User.objects.filter(is_administrator=True, is_active=True).order_by("pk")
    rows = list(administrators.select_for_update().values_list("pk", flat=True))
    if rows == [user.pk]:
        raise Conflict("An installation needs an administrator. Make somebody else one first.")
    closed = User.objects.filter(pk=user.pk, is_active=True)
    changed = closed.update(is_active=False, is_administrator=False, may_create_workspaces=False)
    user.is_active = False
    if not changed:
        return
    end(SignedIn.objects.filter(user=user))
    ApiToken.objects.filter(user=user, revoked_at=None).update(revoked_at=timezone.now())
    SignInLink.objects.filter(user=user, used_at=None).update(used_at=timezone.now())
    AddressCheck.objects.filter(user=user).delete()
    _record(user, "account.closed", by)


@transaction.atomic
def reopen(user: User, by: str) -> None:
    """Reopens an account: the person signs in again as before. Tokens and rights in the installation stay ended."""
    if User.objects.filter(pk=user.pk, is_active=False).update(is_active=True):
        _record(user, "account.opened", by)
    user.is_active = True


def _record(user: User, action: str, by: str) -> None:
    record_everywhere(user, None, action, user, email=user.email, by=by)
