"""The counters of the ledger, for tests of those who make calls."""

from webapp.usage.models import MonthlyUse


def usage_rows() -> list[tuple[str, int, int, object]]:
    """(kind and id of the work, calls, the person who asked for it), in order."""
    return list(MonthlyUse.objects.order_by("kind", "work").values_list("kind", "work", "calls", "person"))
