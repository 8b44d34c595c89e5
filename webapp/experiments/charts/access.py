"""Custom charts of the recipe of a run, or 404."""

from django.http import Http404

from webapp.accounts.models import Membership

from ..access import run_write
from ..models import CustomChart


def chart_write(membership: Membership, run_id: int, chart_id: int, removed: bool = False) -> CustomChart:
    """A chart that is there or, with `removed`, one that can be restored."""
    run = run_write(membership, run_id)
    rows = CustomChart.objects.filter(workspace_id=membership.workspace_id, recipe=run.recipe)
    found = rows.filter(pk=chart_id, removed_at__isnull=not removed).first()
    if found is None:
        raise Http404("no such chart")
    return found
