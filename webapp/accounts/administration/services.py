"""Rights in the whole installation."""

from django.db import transaction
from django.db.models import Q, QuerySet

from webapp.core.problems import Conflict, Invalid

from ..addresses.services import must_be_verified
from ..audit_everywhere import record_everywhere
from ..models import User


def with_rights() -> QuerySet[User]:
    """People with rights in the whole installation, ordered by address."""
    return User.objects.filter(Q(is_administrator=True) | Q(may_create_workspaces=True)).order_by("email")


def allow_workspaces(user: User, allowed: bool) -> None:
    """Lets the person create workspaces, or no longer. Raises Conflict if nothing shows that the address is this person's."""
    if allowed:
        must_be_verified(user)
    User.objects.filter(pk=user.pk).update(may_create_workspaces=allowed)


@transaction.atomic
def make_administrator(user: User, yes: bool) -> None:
    """Makes the person an administrator, or no longer. Raises Conflict for the last administrator, and if the address is not verified."""
    if yes:
        must_be_verified(user)
    # locks the rows: if two administrators remove each other at once, each transaction would see the other one stay
    rows = User.objects.select_for_update().filter(is_administrator=True, is_active=True)
    if not yes and list(rows.values_list("pk", flat=True)) == [user.pk]:
        raise Conflict("An installation needs an administrator. Make somebody else one first.")
    User.objects.filter(pk=user.pk).update(is_administrator=yes)


@transaction.atomic
def give_right(administrator: User, person: User, right: str, yes: bool) -> None:
    """Gives or takes the right `administrator` or `workspaces`. The audit logs of the administrator's workspaces record it.

    Raises Invalid at `right`, Conflict for the last administrator.
    """
    if right not in ("administrator", "workspaces"):
        raise Invalid("Unknown right.", {"right": "must be administrator or workspaces"})
    (make_administrator if right == "administrator" else allow_workspaces)(person, yes)
    record_everywhere(administrator, administrator, "right.given" if yes else "right.taken", person, right=right)
