"""The gallery of recipes: what each does, whether a dataset has what it needs, and how long it takes on this machine."""

from dataclasses import dataclass

from django.db.models import QuerySet

from trainer.config import RECIPES, Recipe
from webapp.datasets.models import DatasetVersion
from webapp.datasets.versions import training_counts

from ..metrics import points
from . import choices
from .fit import Fit, fit

RUNS_TIMED = 5  # the newest of a recipe that its pace is taken from
STEP_TIME = "perf/step_s"


@dataclass(frozen=True)
class StepPace:
    """Median seconds of a step over the last `runs` runs of a recipe in this workspace."""

    step_s: float
    runs: int

    def total_s(self, steps: int) -> float:
        return self.step_s * steps


@dataclass(frozen=True)
class RecipeCard:
    """A recipe in the gallery. `fit` is None without a dataset, or while a large one is still counted."""

    recipe: Recipe
    fit: Fit | None
    pace: StepPace | None

    @property
    def steps(self) -> int:
        found: int = self.recipe.schema.model_fields["steps"].default
        return found

    @property
    def seconds(self) -> float | None:
        """Seconds of a run with the default number of steps."""
        return self.pace.total_s(self.steps) if self.pace else None


def pace_by_recipe(workspace_id: int) -> dict[str, StepPace]:
    """Recipe -> its pace, for those with a run that has taken a step."""
    found = points.typical(workspace_id, STEP_TIME, RUNS_TIMED)
    return {recipe: StepPace(step_s, runs) for recipe, step_s, runs in found}


def cards(workspace_id: int, version: DatasetVersion | None) -> list[RecipeCard]:
    """The recipes that the version can train first; otherwise in the order of the registry."""
    counts = training_counts.known(version) if version else None
    known = pace_by_recipe(workspace_id)
    found = [
        RecipeCard(recipe, fit(recipe, counts) if counts else None, known.get(recipe.name))
        for recipe in RECIPES.values()
    ]
    return sorted(found, key=lambda card: not (card.fit and card.fit.ok))


def datasets(workspace_id: int, chosen: DatasetVersion | None) -> QuerySet[DatasetVersion]:
    """The versions that the gallery offers, by name, newest first."""
    return choices.versions(workspace_id, chosen)[: choices.MOST_OFFERED]
