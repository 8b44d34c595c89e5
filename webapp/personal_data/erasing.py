"""Erasure of an account: the person goes, what they gave to science stays under a pseudonym.

What a person answered moves to a new account that nobody can open, with an id of its own: the person's id stands in the
audit log, beside addresses. Their number among a project's annotators stays, and so do agreement, publications and
digests. `data_inventory` says of every model what becomes of its rows. Then the account is deleted, with all that hangs on it;
the database empties the actor of audit entries, which is the one change that the log allows.
"""

import secrets
from datetime import UTC, datetime
from typing import Any

from django.apps import apps
from django.db import transaction
from django.db.models import Q, Value
from django.db.models.functions import Concat, Substr

from webapp.accounts.addresses.services import NOWHERE
from webapp.accounts.members import removals
from webapp.accounts.models import Membership, Role, SignedIn, User
from webapp.accounts.sessions.services import end
from webapp.annotation.people import handover
from webapp.core.auditing import audit, chain
from webapp.core.problems import Conflict

from .data_inventory import HOLDINGS, Erasure
from .models import DataExport
from .services import remove

NAME = "Erased account"
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)  # the day of the erasure would lead to its entry in the audit log
SOMEBODY = "Somebody"
# texts that the program began with a name: (model, column, what stands behind the name)
SENTENCES = (
    ("experiments.Run", "state_reason", " asked it to stop"),
    ("experiments.Run", "state_reason", " asked it to pause"),
    ("weights.WeightsJob", "problem", " asked it to stop"),
)


def erasure_obstacles(person: User) -> list[str]:
    """The reasons why the account cannot be erased now, each with its remedy."""
    found = []
    if person.is_administrator and not _administrators().exclude(pk=person.pk).exists():
        found.append(
            "This is the last administrator of the installation. Make somebody else one first "
            "(Settings, Installation, People)."
        )
    mine = Membership.objects.filter(user=person, role=Role.OWNER).select_related("workspace").order_by("pk")
    for membership in mine:
        owners = Membership.objects.filter(workspace=membership.workspace, role=Role.OWNER)
        if not owners.exclude(pk=membership.pk).exists():
            found.append(
                f"This is the only owner of {membership.workspace}. Make somebody else an owner first (Settings, Members)."
            )
    return found


def _administrators() -> Any:
    return User.objects.filter(is_administrator=True, is_active=True)


@transaction.atomic
def erase(person: User, by: User | None) -> None:
    """Erases the account of `person`, at their own wish or an administrator's; `by` None: nobody has used it (`retention`).

    Raises Conflict for the last administrator, and for the only owner of a workspace.
    """
    _hold(person)
    person.refresh_from_db()  # a right may have been given or taken since the caller read it
    if found := erasure_obstacles(person):
        raise Conflict(" ".join(found), code="cannot_erase")
    chain.seal()  # as long as the entries say who did what
    told = Membership.objects.filter(user=person).select_related("workspace")
    how = "retention" if by is None else "themselves" if by.pk == person.pk else "administrator"
    for membership in told:
        audit.record(membership, by if how == "administrator" else None, "account.erased", person, by=how)
    end(SignedIn.objects.filter(user=person))
    removals.keep_digests(person)
    _keep_under_pseudonym(person)
    handover.unname_decider(person)
    _unname(person)
    _delete(person)


def _hold(person: User) -> None:
    """Until the transaction ends nobody else takes a right or a role on which it depends whether the account may go: of two
    who go at once, the second one sees that the first is gone. The person's own row keeps out what they are just doing."""
    mine = Membership.objects.filter(user=person).values("workspace_id")
    list(User.objects.select_for_update().filter(Q(pk=person.pk) | Q(is_administrator=True)).order_by("pk"))
    owners = Membership.objects.select_for_update().filter(workspace_id__in=mine, role=Role.OWNER)
    list(owners.order_by("pk").values_list("pk"))


def _keep_under_pseudonym(person: User) -> None:
    kept = [each for each in HOLDINGS if each.erasure == Erasure.PSEUDONYM and each.direct]
    if not any(each.rows(person).exists() for each in kept):
        return
    handover.clean(person)
    pseudonym = User.objects.create_user(f"erased-{secrets.token_hex(8)}@{NOWHERE}", name=NAME)
    User.objects.filter(pk=pseudonym.pk).update(erased=True, is_active=False, date_joined=LONG_AGO)
    for holding in kept:
        holding.rows(person).order_by().update(**{holding.way: pseudonym})
    handover.renumber(person.pk, pseudonym.pk)


def _unname(person: User) -> None:
    """Takes the name out of sentences of the program, and the address out of trials of webhooks."""
    for model, column, rest in SENTENCES:
        told = f"{person}{rest}"
        rows = apps.get_model(model)._base_manager.filter(**{f"{column}__startswith": told})
        rows.update(**{column: Concat(Value(SOMEBODY + rest), Substr(column, len(told) + 1))})
    sent = apps.get_model("webhooks.Delivery").objects.filter(payload={"sent_by": person.email})
    sent.update(payload={"sent_by": ""})


def _delete(person: User) -> None:
    remove(DataExport.objects.filter(user=person))
    for holding in HOLDINGS:
        if holding.erasure == Erasure.DELETED and holding.source is not User:
            holding.rows(person).delete()
    person.delete()
