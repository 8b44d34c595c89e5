"""Reads of models and endpoints."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.db.models import Count, F, OuterRef, QuerySet, Subquery, Sum

from trainer.contracts import ModelSource
from webapp.core.paging import page

from .models import Endpoint, EndpointCheck, RecordedOutput, RegisteredModel
from .stored import placed

MOST_RELATED = 20


def models(workspace_id: int, *, archived: bool | None = None) -> QuerySet[RegisteredModel]:
    """The workspace's models, each with `run_count`, the number of runs that start from it. `archived` None: all."""
    rows = RegisteredModel.objects.filter(workspace_id=workspace_id)
    if archived is not None:
        rows = rows.filter(archived_at__isnull=not archived)
    rows = rows.select_related("base", "artifact__run__experiment").prefetch_related("aliases")
    return rows.annotate(run_count=Count("runs"))


def usable(workspace_id: int, head: str = RegisteredModel.Head.LM) -> QuerySet[RegisteredModel]:
    """What is offered where a model is chosen, newest first: not archived, and writing text or scoring it as asked."""
    rows = RegisteredModel.objects.filter(workspace_id=workspace_id, archived_at__isnull=True, head=head)
    return rows.order_by("-id")


def source(model: RegisteredModel) -> ModelSource:
    """What a process loads: the whole model at the bottom, then the adapters in the order they are laid on it."""
    adapters: list[str] = []
    bottom = model
    while bottom.format == RegisteredModel.Format.PEFT and bottom.base is not None:
        adapters.append(bottom.path)
        bottom = bottom.base
    return ModelSource(path=bottom.path, adapters=tuple(reversed(adapters)), head=model.head)


def missing_folder(model: RegisteredModel) -> str:
    """Which folder of a run's model, or of one it is laid on, is gone; empty where none is. Other sources are not asked."""
    row: RegisteredModel | None = model
    while row is not None:
        if row.source == RegisteredModel.Source.RUN and not Path(row.path).is_dir() and not placed(row):
            return row.path
        row = row.base if row.format == RegisteredModel.Format.PEFT else None
    return ""


@dataclass(frozen=True)
class Lineage:
    """Where a model comes from and what rests on it. `run` and `version` are None where no run of ours has made it."""

    run: Any
    step: int | None
    version: Any
    runs: list[Any]
    slots: list[Any]
    """Rows of runs that use it otherwise than as their base: each has `run` and `role`."""
    derived: list[RegisteredModel]
    endpoints: list[Endpoint]

    @property
    def is_used(self) -> bool:
        return bool(self.runs or self.slots or self.derived or self.endpoints)


def lineage(model: RegisteredModel) -> Lineage:
    """The newest MOST_RELATED of each. Needs `artifact.run` loaded with the row."""
    artifact = getattr(model, "artifact", None)
    run = artifact.run if artifact is not None else None
    return Lineage(
        run,
        artifact.step if artifact is not None else None,
        run.dataset_version if run is not None else None,
        list(model.runs.select_related("experiment").order_by("-id")[:MOST_RELATED]),
        list(model.run_slots.exclude(role="base").select_related("run__experiment").order_by("-id")[:MOST_RELATED]),
        list(model.derived.order_by("-id")[:MOST_RELATED]),
        list(model.endpoints.order_by("-id")[:MOST_RELATED]),
    )


def endpoints(workspace_id: int, *, archived: bool = False) -> QuerySet[Endpoint]:
    """Those on the list, or the archived ones; each with `last_state` of its newest check, None before the first."""
    newest = EndpointCheck.objects.filter(endpoint=OuterRef("pk")).order_by("-id").values("state")[:1]
    rows = Endpoint.objects.filter(workspace_id=workspace_id, archived_at__isnull=not archived)
    return rows.select_related("registered_model").annotate(last_state=Subquery(newest))


def recorded_texts(endpoint_id: int, keys: Iterable[str], after: int = 0) -> dict[str, str]:
    """What the endpoint replays for these keys; a key that was not recorded, or not behind the id `after`, is left out."""
    rows = RecordedOutput.objects.filter(endpoint_id=endpoint_id, key__in=list(keys), pk__gt=after)
    return dict(rows.values_list("key", "text"))


def newest_recorded(endpoint_id: int) -> int:
    """The id of what the endpoint was given last; 0 where it replays nothing."""
    found = RecordedOutput.objects.filter(endpoint_id=endpoint_id).order_by("-pk").values_list("pk", flat=True).first()
    return found or 0


@dataclass(frozen=True)
class Use:
    """What the verdicts of one version of a judge took. Sums are None where not one verdict says how much it took."""

    judge_id: int
    judge: str
    version: int
    verdicts: int
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    cost: Decimal | None


def use(endpoint: Endpoint, cursor: str | None = None, limit: int = 100) -> tuple[list[Use], str | None]:
    """Versions of judges that ask this endpoint, newest first, and the cursor of the following page."""
    sums = {name: Sum(f"verdicts__{name}") for name in ("prompt_tokens", "cached_tokens", "completion_tokens", "cost")}
    rows: QuerySet[Any] = endpoint.judge_versions.annotate(name=F("judge__name"), said=Count("verdicts"), **sums)
    found = page(rows, cursor, limit)
    values = [
        (row.judge_id, row.name, row.number, row.said, *(getattr(row, each) for each in sums)) for row in found.items
    ]
    return [Use(*each) for each in values], found.next
