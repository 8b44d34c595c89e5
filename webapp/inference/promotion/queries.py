"""Reads of aliases, and of their history and that of stages."""

from collections.abc import Iterable

from django.db.models import Q, QuerySet

from ..models import MARK, ModelAlias, ModelPromotion, RegisteredModel

MOST_SHOWN = 20


def aliases(workspace_id: int) -> QuerySet[ModelAlias]:
    """All of the workspace, by name, each with its model."""
    return ModelAlias.objects.filter(workspace_id=workspace_id).select_related("model")


def called(workspace_id: int, names: Iterable[str]) -> QuerySet[RegisteredModel]:
    """The models of these names, and the models that the aliases among the names (`@champion`) point at now."""
    names = set(names)
    pointed = [name.removeprefix(MARK) for name in names if name.startswith(MARK)]
    rows = RegisteredModel.objects.filter(workspace_id=workspace_id)
    return rows.filter(Q(name__in=names) | Q(aliases__name__in=pointed)).distinct()


def named(workspace_id: int, name: str) -> RegisteredModel | None:
    """The model of that name, or else the model that the alias of that name points at."""
    found = {row.name: row for row in called(workspace_id, [name])}
    return found.get(name) or next(iter(found.values()), None)


def history(workspace_id: int, *, name: str = "", model: RegisteredModel | None = None) -> QuerySet[ModelPromotion]:
    """Moves of aliases and changes of stages, newest first: of one alias, of one model, or all."""
    rows = ModelPromotion.objects.filter(workspace_id=workspace_id).select_related("created_by", "model")
    if name:
        rows = rows.filter(name=name)
    if model is not None:
        rows = rows.filter(model=model)
    return rows.order_by("-id")
