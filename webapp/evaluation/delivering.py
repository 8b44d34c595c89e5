"""What models have generated becomes a version of a dataset."""

from typing import Any

from trainer.config.errors import FieldProblem
from webapp.accounts.models import Membership
from webapp.core.problems import Invalid, Problem
from webapp.datasets import imports
from webapp.datasets import services as datasets
from webapp.datasets.models import Dataset

from .models import Evaluation
from .recipes import RECIPES
from .recipes.base import Outcome, RecipeConfig
from .recipes.generate import SAMPLING


def problems(membership: Membership, recipe: str, config: RecipeConfig) -> list[FieldProblem]:
    """Why no version could be made of what is generated, at the field that names the dataset."""
    field = RECIPES[recipe].makes
    name = getattr(config, field) if field else ""
    if not name:
        return []
    try:
        imports.dataset_name(name)
    except Invalid as problem:
        return [FieldProblem(field, "; ".join(problem.fields.values()))]
    if Dataset.every.filter(workspace=membership.workspace, name=name, archived_at__isnull=False).exists():
        return [FieldProblem(field, f"{name} is archived; restore it, or choose another name")]
    return []


def deliver(evaluation: Evaluation, outcome: Outcome) -> None:
    """Makes the version and says so in the report; what stands in the way is told there, and the report stays.

    A version with this content is made once, however often a worker comes here.
    """
    field = RECIPES[evaluation.recipe].makes
    if not field or not (name := evaluation.config.get(field)):
        return
    try:
        outcome.report.made = _delivered(evaluation, name, outcome)
    except Problem as problem:
        outcome.report.made = {"problem": "; ".join([problem.message, *problem.fields.values()])}


def _delivered(evaluation: Evaluation, name: str, outcome: Outcome) -> dict[str, Any]:
    rows = Membership.objects.filter(workspace=evaluation.workspace, user=evaluation.created_by)
    membership = rows.select_related("user", "workspace").first() if evaluation.created_by else None
    if membership is None:
        raise Invalid("Whoever asked for the dataset is no longer a member of the workspace: run it again.")
    dataset = Dataset.objects.filter(workspace=evaluation.workspace, name=name).first()
    dataset = dataset or datasets.create_dataset(membership, name)
    version = datasets.new_version(membership, dataset, outcome.records, None, _lineage(evaluation, outcome))
    return {"dataset": dataset.pk, "name": dataset.name, "version": version.number}


def _lineage(evaluation: Evaluation, outcome: Outcome) -> dict[str, Any]:
    return {
        "from": "generated",
        "evaluation": evaluation.pk,
        "model": ", ".join(entry.name for entry in outcome.report.entries),
        "prompts": str(evaluation.dataset_version),
        "sampling": {name: evaluation.config[name] for name in SAMPLING},
    }
