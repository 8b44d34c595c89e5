"""Accounts that nobody uses any more are erased, if an administrator says after how long.

A clock that jumps must erase nobody. So an account is announced first, and goes only after `NOTICE` daily rounds have found it unused,
regardless of the clock in between. A person who signs in, or uses a token, is no longer announced.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone

from webapp.accounts.models import ApiToken, Membership, Role, SignedIn, User
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid

from . import erasing
from .models import Retention, UnusedAccount

logger = logging.getLogger(__name__)

LEAST, MOST = 90, 3650
"""Days, of what may be set."""
NOTICE = 14
"""Rounds, one a day, that have to find an account unused before it goes."""
DAY = timedelta(days=1)
AT_ONCE = 100
"""Accounts that one round erases at most."""


def days() -> int | None:
    """The number of days after which an account counts as unused; None if accounts stay."""
    return Retention.objects.values_list("unused_days", flat=True).first()


@transaction.atomic
def change(administrator: User, unused_days: int | None) -> None:
    """Sets it for the installation. Raises Invalid at the field. What was announced under another rule is announced again."""
    if unused_days is not None and not LEAST <= unused_days <= MOST:
        raise Invalid(
            "Accounts cannot be kept for this long.",
            {"unused_days": f"must be from {LEAST} to {MOST:,} days, or empty"},
        )
    before = days()
    row, _ = Retention.objects.update_or_create(pk=1, defaults={"unused_days": unused_days})
    if before == unused_days:
        return
    UnusedAccount.objects.all().delete()
    for membership in Membership.objects.filter(user=administrator).select_related("workspace"):
        audit.record(membership, administrator, "retention.changed", row, unused_days=unused_days, before=before)


def unused(now: datetime) -> "QuerySet[User]":
    """People without a sign of life for as long as is set, `seen` with the last one: a sign-in, a browser that was signed in, a token.
    Administrators are never among them."""
    limit = days()
    if limit is None:
        return User.objects.none()
    browsers = SignedIn.objects.filter(user=OuterRef("pk")).order_by().values("user")
    tokens = ApiToken.objects.filter(user=OuterRef("pk")).order_by().values("user")
    seen = Greatest(
        F("date_joined"),
        Coalesce(F("last_login"), F("date_joined")),
        Coalesce(Subquery(browsers.annotate(last=Max("last_used_at")).values("last")), F("date_joined")),
        Coalesce(Subquery(tokens.annotate(last=Max("last_used_at")).values("last")), F("date_joined")),
    )
    people = User.objects.filter(erased=False, is_administrator=False).annotate(seen=seen)
    return people.filter(seen__lt=now - limit * DAY)


@dataclass(frozen=True)
class Announced:
    """An account that is to go in `days` further daily rounds, unless its person is the only owner of the workspaces `owns`."""

    person: User
    seen: datetime
    days: int
    owns: list[str]


def announced(most: int) -> tuple[list[Announced], int]:
    """(the ones that go first, at most this many; how many there are). Three queries, however many."""
    rows = unused(timezone.now()).filter(unused_account__isnull=False)
    people = list(rows.select_related("unused_account").order_by("-unused_account__rounds", "pk")[:most])
    owners = Membership.objects.filter(workspace=OuterRef("workspace"), role=Role.OWNER)
    sole = Membership.objects.filter(user__in=people, role=Role.OWNER).exclude(
        Exists(owners.exclude(user=OuterRef("user")))
    )
    owns: dict[int, list[str]] = {}
    for user_id, name in sole.order_by("workspace_id").values_list("user_id", "workspace__name"):
        owns.setdefault(user_id, []).append(name)
    listed = []
    for each in people:
        left = max(NOTICE - each.unused_account.rounds, 0)
        listed.append(Announced(each, each.seen, left, owns.get(each.pk, [])))  # type: ignore[attr-defined]  # annotated
    return listed, rows.count()


def look() -> None:
    """One round of upkeep: announces, counts at most one round a day, and erases whom enough rounds have found unused."""
    now = timezone.now()
    found = unused(now)
    UnusedAccount.objects.exclude(user__in=found.values("pk")).delete()
    new = found.exclude(pk__in=UnusedAccount.objects.values("user")).values_list("pk", flat=True)
    UnusedAccount.objects.bulk_create((UnusedAccount(user_id=pk, counted_at=now) for pk in new), ignore_conflicts=True)
    another_day = Q(counted_at__lte=now - DAY) | Q(counted_at__gt=now + DAY)
    UnusedAccount.objects.filter(another_day).update(rounds=F("rounds") + 1, counted_at=now)
    due = UnusedAccount.objects.filter(rounds__gte=NOTICE).order_by("pk").values_list("user", flat=True)
    erased = (pk for pk in list(due) if _erase(pk, now))  # an account that has to stay takes nobody's turn
    list(islice(erased, AT_ONCE))


@transaction.atomic
def _erase(pk: int, now: datetime) -> bool:
    """Erases the account unless its person has signed in meanwhile, checked under the lock of their row. Returns whether it went."""
    list(User.objects.select_for_update().filter(pk=pk))
    person = unused(now).filter(pk=pk).first()
    if person is None:
        return False
    try:
        erasing.erase(person, None)
    except Conflict as problem:  # the only owner of a workspace: the page tells administrators
        logger.info("an unused account stays: %s", problem.message)
        return False
    return True
