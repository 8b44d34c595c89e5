"""Whether models are evaluated on data on which they were trained: shown before the start, and with the result."""

from collections.abc import Iterable, Mapping
from typing import Any

from webapp.core.forms.formtree import Tree
from webapp.core.forms.model_schemas import schema_of
from webapp.core.requests.numbers import whole_number
from webapp.datasets.leakage import leaks
from webapp.datasets.leakage.near_leaks import VersionPair, near_leaks_of
from webapp.datasets.models import DatasetVersion
from webapp.inference.models import Endpoint
from webapp.judging.models import JudgeVersion

from ..recipes.base import Recipe
from ..sources.registry import TRAINED_ON

NOTHING: dict[str, Any] = {"leaks": [], "near": []}


def of_config(
    workspace_id: int, recipe: Recipe, config: dict[str, Any], version: DatasetVersion | None
) -> dict[str, Any]:
    """{"leaks", "near"} of the evaluated examples, for a config that may not be checked yet."""
    if version is None:
        return NOTHING
    named = _named(recipe, config)
    runs = named.get("runs", set())
    models = named.get("models", set()) | _behind(workspace_id, named)
    if not models and not runs:
        return NOTHING
    seen = [each for find in TRAINED_ON for each in find(workspace_id, models, runs)]
    side = config.get("split", "heldout" if runs else "")
    side = side if side in ("heldout", "train") else ""
    return {
        "leaks": leaks.leaks_of_training(version, seen, side),
        "near": near_leaks_of(VersionPair(each, version, side) for each in seen),
    }


def _named(recipe: Recipe, config: dict[str, Any]) -> dict[str, set[int]]:
    """The rows that the config names, by kind: models, runs, endpoints, judges."""
    found: dict[str, set[int]] = {}
    for each in Tree(schema_of(recipe.schema)).draw(config, {}).every_input():
        if each.source and (number := whole_number(str(each.value or ""))) is not None:
            found.setdefault(each.source.partition(":")[0], set()).add(number)
    return found


def _behind(workspace_id: int, named: Mapping[str, Iterable[int]]) -> set[int]:
    """The models of the registry behind endpoints and judges."""
    endpoints = Endpoint.objects.filter(pk__in=named.get("endpoints", ()), workspace=workspace_id)
    judges = JudgeVersion.objects.filter(pk__in=named.get("judges", ()), judge__workspace=workspace_id)
    found = {*endpoints.values_list("registered_model", flat=True)}
    found |= {*judges.values_list("endpoint__registered_model", flat=True)}
    return {each for each in found if each}
