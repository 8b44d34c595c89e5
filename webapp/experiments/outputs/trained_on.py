"""The training data of models: the versions of datasets on which the runs that made them have trained.

A held-out result of a new run, or an evaluation, is too good if its first model was trained on its prompts.
"""

from collections.abc import Iterable
from typing import Any

from trainer.config import RECIPES, ConfigInvalid, resolve
from webapp.datasets.leakage import leaks
from webapp.datasets.leakage.near_leaks import VersionPair, near_leaks_of
from webapp.datasets.models import DatasetVersion
from webapp.evaluation.sources.registry import TRAINED_ON
from webapp.inference.models import RegisteredModel
from webapp.inference.promotion import queries as promotion

from ..models import Run

GENERATIONS = 20  # of models that begin with one another; two queries each


def versions(workspace_id: int, models: Iterable[int], runs: Iterable[int] = ()) -> list[DatasetVersion]:
    """The versions on which these models, the models from which they come, and these runs have trained, newest first."""
    found, seen = set[int](), set[int]()
    of_runs = Run.objects.filter(pk__in=set(runs), experiment__workspace=workspace_id)
    wanted = set(models)
    for version_id, model_id in of_runs.values_list("dataset_version", "model"):
        found |= {version_id} if version_id else set()
        wanted |= {model_id} if model_id else set()
    for _ in range(GENERATIONS):
        if not (wanted := wanted - seen):
            break
        seen |= wanted
        rows = RegisteredModel.objects.filter(pk__in=wanted, workspace=workspace_id)
        came = rows.values_list("base", "artifact__run__model", "artifact__run__dataset_version")
        wanted = set()
        for base, model, version_id in came:
            wanted |= {each for each in (base, model) if each}
            found |= {version_id} if version_id else set()
    return list(DatasetVersion.objects.filter(pk__in=found).select_related("dataset").order_by("-pk"))


def leaking(workspace_id: int, version: DatasetVersion, recipe: str, raw: dict[str, Any]) -> dict[str, Any]:
    """{"leaks", "near"} of a run on `version` with this config, checked or not: within the version, and with what the
    models that it names have seen."""
    seen = versions(workspace_id, _named(workspace_id, recipe, raw))
    others = [each for each in seen if each != version]
    told = leaks.leaks_of_version(version)
    alike = near_leaks_of(VersionPair(each, version) for each in others)
    return {"leaks": told["leaks"] + leaks.leaks_of_training(version, others), "near": told["near"] + alike}


def _named(workspace_id: int, recipe: str, raw: dict[str, Any]) -> set[int]:
    """The models that a config names: all of them if it is valid, else the one with which it begins."""
    try:
        names = {slot.name for slot in RECIPES[recipe].filled(resolve(recipe, raw)) if slot.kind == "model"}
    except ConfigInvalid:
        model = raw.get("model")
        name = model.get("name") if isinstance(model, dict) else None
        names = {name} if isinstance(name, str) and "\0" not in name else set()
    return set(promotion.called(workspace_id, names).values_list("pk", flat=True))


TRAINED_ON.append(versions)
