"""Reads of models and endpoints."""

from collections.abc import Iterable

from django.db.models import Count, OuterRef, QuerySet, Subquery

from .models import Endpoint, EndpointCheck, RecordedOutput, RegisteredModel


def models(workspace_id: int) -> QuerySet[RegisteredModel]:
    """The workspace's models, each with `run_count`, the number of runs that start from it."""
    return RegisteredModel.objects.filter(workspace_id=workspace_id).annotate(run_count=Count("runs"))


def endpoints(workspace_id: int, *, archived: bool = False) -> QuerySet[Endpoint]:
    """Those on the list, or the archived ones; each with `last_state` of its newest check, None before the first."""
    newest = EndpointCheck.objects.filter(endpoint=OuterRef("pk")).order_by("-id").values("state")[:1]
    rows = Endpoint.objects.filter(workspace_id=workspace_id, archived_at__isnull=not archived)
    return rows.select_related("registered_model").annotate(last_state=Subquery(newest))


def recorded_texts(endpoint_id: int, keys: Iterable[str]) -> dict[str, str]:
    """What the endpoint replays for these keys; a key that was not recorded is left out."""
    rows = RecordedOutput.objects.filter(endpoint_id=endpoint_id, key__in=list(keys))
    return dict(rows.values_list("key", "text"))
