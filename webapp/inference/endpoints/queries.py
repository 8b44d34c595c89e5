"""Reads of endpoints."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, OuterRef, QuerySet, Subquery, Sum

from webapp.core.database.paging import page

from ..models import Endpoint, EndpointCheck, RecordedOutput


def endpoints(workspace_id: int, *, archived: bool = False) -> QuerySet[Endpoint]:
    """The endpoints on the list, or the archived ones. Each has `last_state`, the state of its newest check; None before the first."""
    newest = EndpointCheck.objects.filter(endpoint=OuterRef("pk")).order_by("-id").values("state")[:1]
    rows = Endpoint.objects.filter(workspace_id=workspace_id, archived_at__isnull=not archived)
    return rows.select_related("registered_model").annotate(last_state=Subquery(newest))


def recorded_texts(endpoint_id: int, keys: Iterable[str], after: int = 0) -> dict[str, str]:
    """The recorded outputs of these keys. A key that is not recorded, or only up to the id `after`, is left out."""
    rows = RecordedOutput.objects.filter(endpoint_id=endpoint_id, key__in=list(keys), pk__gt=after)
    return dict(rows.values_list("key", "text"))


def newest_recorded(endpoint_id: int) -> int:
    """The id of the newest recorded output; 0 if there is none."""
    found = RecordedOutput.objects.filter(endpoint_id=endpoint_id).order_by("-pk").values_list("pk", flat=True).first()
    return found or 0


@dataclass(frozen=True)
class JudgeUse:
    """The tokens and money that verdicts of one version of a judge took. A sum is None if no verdict says how much it took."""

    judge_id: int
    judge: str
    version: int
    verdicts: int
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    cost: Decimal | None


def judges_of_endpoint(
    endpoint: Endpoint, cursor: str | None = None, limit: int = 100
) -> tuple[list[JudgeUse], str | None]:
    """Versions of judges that ask this endpoint, newest first, and the cursor of the following page."""
    sums = {name: Sum(f"verdicts__{name}") for name in ("prompt_tokens", "cached_tokens", "completion_tokens", "cost")}
    rows: QuerySet[Any] = endpoint.judge_versions.annotate(name=F("judge__name"), said=Count("verdicts"), **sums)
    found = page(rows, cursor, limit)
    values = [
        (row.judge_id, row.name, row.number, row.said, *(getattr(row, each) for each in sums)) for row in found.items
    ]
    return [JudgeUse(*each) for each in values], found.next
