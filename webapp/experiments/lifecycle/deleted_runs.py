"""Runs that somebody has deleted: a request that still works on one is no error of the server, and a person is told who was first."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db.models import F
from django.db.models.lookups import IsNull
from django.http import Http404
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.core.models import AuditEntry

from ..models import Run
from .utc_times import utc_text

DELETIONS = ("run.delete", "run.hidden")
Given = ParamSpec("Given")
Result = TypeVar("Result")


def unless_deleted(change: Callable[Given, Result]) -> Callable[Given, Result]:
    """Decorator of a change to a run: raises Http404 if its row is gone."""

    @wraps(change)
    def _change(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            return change(*args, **kwargs)
        except Run.DoesNotExist as error:
            raise Http404("no such run") from error

    return _change


def deletion_text(membership: Membership, run_id: int) -> str:
    """The sentence that tells by whom a run was deleted, and when. Empty if no run of the workspace with this id was deleted.

    *History* shows the same people to the same readers as long as the run exists.
    """
    entries = AuditEntry.objects.filter(workspace_id=membership.workspace_id, object_type="run", object_id=run_id)
    last = IsNull(F("actor"), True)  # the system erases later what a program has deleted for a person
    entry = entries.filter(action__in=DELETIONS).select_related("actor").order_by(last, "-id").first()
    if entry is None:
        return ""
    who = "You have" if entry.actor_id == membership.user_id else f"{entry.actor or 'Somebody'} has"
    return f"{who} already deleted {entry.detail['name']} ({utc_text(entry.created_at, timezone.now())})."
