"""Models that programs log with their runs. Only their facts are here: the files are files of the run, and nothing loads them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.http import Http404
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Invalid
from webapp.experiments.access import may_read, may_write
from webapp.experiments.lifecycle.states import State
from webapp.experiments.models import Experiment

from . import services
from .models import LoggedRun, SavedMetric, SavedModel

MOST, LONGEST_NAME = 1_000, 250  # params and tags of a model; characters
MOST_VALUES = 5_000  # newest values of metrics of a model


@dataclass(frozen=True)
class ModelValue:
    """A value of a metric of the model with this key. `dataset` and `digest` may be empty."""

    model: str
    key: str
    step: int
    time: datetime
    value: float
    dataset: str = ""
    digest: str = ""


def save(
    membership: Membership,
    where: Experiment,
    row: LoggedRun | None,
    *,
    name: str = "",
    kind: str = "",
    params: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
) -> SavedModel:
    """A new model, whose files are still to come. Without a run, a finished run with the name of the model is made for its files. Raises
    Invalid, Conflict."""
    key = f"m-{uuid4().hex}"
    name = name.strip()[:LONGEST_NAME] or f"model-{key[2:10]}"
    kept = {
        "params": services.merged({}, params or {}, "params", MOST, services.LONGEST_PARAM),
        "tags": services.merged({}, tags or {}, "tags", MOST, services.LONGEST_TAG),
    }
    with transaction.atomic():
        if row is None:
            row = services.begin(membership, where, LoggedRun.Door.MLFLOW, name=name[:120])
            services.settle(membership, row, state=State.FINISHED)
        run = services.locked_run(row)
        found = SavedModel.objects.create(row=row, key=key, name=name, kind=kind, step=run.step, **kept)
        audit.record(membership, membership.user, "run.model_logged", run, name=str(run), model=name)
    return found


def get_saved_model(membership: Membership, key: str, *, write: bool, deleted: bool = False) -> SavedModel:
    """The model of the workspace. Raises Http404, PermissionDenied."""
    allowed = may_write(membership) if write else may_read(membership)
    rows = SavedModel.objects.select_related("row__run__experiment__workspace", "row__run__created_by")
    rows = rows.prefetch_related("metrics__row")
    found = rows.filter(row__run__experiment__workspace_id=allowed.workspace_id, key=key).first()
    if found is None or (found.deleted_at is not None and not deleted):
        raise Http404("no such model")
    return found


def change(
    model: SavedModel,
    *,
    state: str = "",
    step: int | None = None,
    params: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
    without: Iterable[str] = (),
) -> SavedModel:
    """Says more about a model. The same again changes nothing. Raises Invalid."""
    with transaction.atomic():
        services.locked_run(model.row)
        found = SavedModel.objects.select_for_update(no_key=True).get(pk=model.pk)
        gone = set(without)
        left: dict[str, Any] = {name: value for name, value in found.tags.items() if name not in gone}
        found.tags = services.merged(left, tags or {}, "tags", MOST, services.LONGEST_TAG)
        found.params = services.merged(found.params, params or {}, "params", MOST, services.LONGEST_PARAM)
        found.state = state or found.state
        found.step = found.step if step is None else step
        found.save(update_fields=["state", "step", "params", "tags", "updated_at"])
    found.row = model.row
    return found


def measured(membership: Membership, row: LoggedRun, values: Iterable[ModelValue]) -> None:
    """Keeps the newest values of metrics of models, as this run measured them. The models may be those of other runs. Raises Http404,
    PermissionDenied, Invalid, Conflict."""
    newest: dict[tuple[str, str, str, str], ModelValue] = {}
    for each in sorted(values, key=lambda each: (each.step, each.time)):
        newest[each.model, each.key, each.dataset, each.digest] = each
    if not newest:
        return
    models = {key: get_saved_model(membership, key, write=True) for key in {each.model for each in newest.values()}}
    with transaction.atomic():
        services.locked_run(row)  # of two requests about this run, the second sees what the first has kept
        known = {
            (each.saved.key, each.key, each.dataset, each.digest): each
            for each in SavedMetric.objects.select_related("saved").filter(row=row, saved__in=models.values())
        }
        rows = list[SavedMetric]()
        for place, each in sorted(newest.items()):
            old = known.get(place)
            if old is not None and (old.step, old.time) > (each.step, each.time):
                continue  # it came late
            kept = SavedMetric(
                saved=models[each.model], row=row, key=each.key, dataset=each.dataset, digest=each.digest
            )
            kept.step, kept.value, kept.time = each.step, each.value, each.time
            rows.append(kept)
        unique, changed = ["saved", "key", "row", "dataset", "digest"], ["step", "value", "time"]
        SavedMetric.objects.bulk_create(rows, update_conflicts=True, unique_fields=unique, update_fields=changed)
        for model in models.values():
            if model.metrics.count() > MOST_VALUES:
                raise Invalid("The model would have too many metrics.", {"metrics": f"at most {MOST_VALUES:,}"})


def delete(membership: Membership, model: SavedModel) -> None:
    """Takes the model from all lists; its files stay files of the run."""
    with transaction.atomic():
        if SavedModel.objects.filter(pk=model.pk, deleted_at=None).update(deleted_at=timezone.now()):
            run = model.row.run
            audit.record(membership, membership.user, "run.model_deleted", run, name=str(run), model=model.name)
