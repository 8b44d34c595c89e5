"""Reads of models."""

from django.db.models import Count, QuerySet

from trainer.contracts import ModelSource

from .models import RegisteredModel


def models(workspace_id: int, *, archived: bool | None = None) -> QuerySet[RegisteredModel]:
    """The workspace's models, each with `run_count`, the number of runs that start from it. `archived` None: all."""
    rows = RegisteredModel.objects.filter(workspace_id=workspace_id)
    if archived is not None:
        rows = rows.filter(archived_at__isnull=not archived)
    rows = rows.select_related("base", "artifact__run__experiment").prefetch_related("aliases")
    return rows.annotate(run_count=Count("runs"))


def usable(workspace_id: int, head: str = RegisteredModel.Head.LM) -> QuerySet[RegisteredModel]:
    """The models that a form offers, newest first: they are not archived, and have the `head` that is asked for."""
    rows = RegisteredModel.objects.filter(workspace_id=workspace_id, archived_at__isnull=True, head=head)
    return rows.order_by("-id")


def source(model: RegisteredModel) -> ModelSource:
    """The folders that a process loads: the whole model at the bottom, then the adapters in the order in which they are laid on it."""
    adapters: list[str] = []
    bottom = model
    while bottom.format == RegisteredModel.Format.PEFT and bottom.base is not None:
        adapters.append(bottom.path)
        bottom = bottom.base
    return ModelSource(path=bottom.path, adapters=tuple(reversed(adapters)), head=model.head)
