"""Whether the responses that models will generate can become a version of a dataset."""

from trainer.config.errors import FieldProblem
from webapp.accounts.models import Membership
from webapp.core.problems import Invalid
from webapp.datasets.models import Dataset
from webapp.datasets.versions.services import dataset_name

from ..recipes import RECIPES
from ..recipes.base import RecipeConfig


def problems(membership: Membership, recipe: str, config: RecipeConfig) -> list[FieldProblem]:
    """The reason why no version could be made of the generated responses, at the field that names the dataset."""
    field = RECIPES[recipe].makes
    name = getattr(config, field) if field else ""
    if not name:
        return []
    try:
        dataset_name(name)
    except Invalid as problem:
        return [FieldProblem(field, "; ".join(problem.fields.values()))]
    if Dataset.every.filter(workspace=membership.workspace, name=name, archived_at__isnull=False).exists():
        return [FieldProblem(field, f"{name} is archived; restore it, or choose another name")]
    return []
