"""Saved views: filters of a dataset under a name."""

from django.db import transaction

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Invalid
from webapp.core.text.texts import one_line

from ..columns.filters import Filters, query
from ..models import Dataset, SavedView


@transaction.atomic
def save_view(membership: Membership, dataset: Dataset, name: str, filters: Filters) -> SavedView:
    """Stores the filters under a name, replacing a view of this name. Raises Invalid at `name` or `filters`."""
    name = one_line(name, 80, "The view needs a name.")
    if not filters.narrow:
        raise Invalid("No filter is set, so there is nothing to save.", {"filters": "narrow nothing"})
    view, _ = SavedView.objects.update_or_create(
        dataset=dataset,
        name=name,
        defaults={"workspace_id": dataset.workspace_id, "query": query(filters), "created_by": membership.user},
    )
    audit.record(membership, membership.user, "view.saved", view, name=name)
    return view


@transaction.atomic
def delete_view(membership: Membership, view: SavedView) -> None:
    audit.record(membership, membership.user, "view.deleted", view, name=view.name, query=view.query)
    view.delete()
