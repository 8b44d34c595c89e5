"""Reads of the model registry."""

from django.db.models import Count, QuerySet

from .models import RegisteredModel


def models(workspace_id: int) -> QuerySet[RegisteredModel]:
    """The workspace's models, each with `run_count`, the number of runs that start from it."""
    return RegisteredModel.objects.filter(workspace_id=workspace_id).annotate(run_count=Count("runs"))
