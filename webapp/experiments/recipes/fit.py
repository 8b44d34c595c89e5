"""Whether a dataset version has what a recipe needs, in numbers, before anything is launched."""

from collections.abc import Iterator
from dataclasses import dataclass

from trainer.config import FieldProblem, Recipe, RecipeConfig
from trainer.config.recipe import DataNeed
from trainer.contracts.plurals import with_noun
from webapp.datasets.versions.training_counts import Counts


@dataclass(frozen=True)
class Counted:
    """One need and how much of it the version has; `left_out` are (number, words) of what cannot be used."""

    need: DataNeed
    train: int
    heldout: int
    left_out: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Fit:
    """`needs` in the order of the recipe; of those that share an `either`, one is enough."""

    recipe: Recipe
    needs: tuple[Counted, ...]

    @property
    def ok(self) -> bool:
        return not self.missing

    @property
    def missing(self) -> list[Counted]:
        """Needs without any training example, if no other of the same `either` has some."""
        return [each for each in self.needs if not each.train and not self._elsewhere(each, "train")]

    @property
    def held_out(self) -> bool:
        """Whether an evaluation would have examples."""
        return all(each.heldout or self._elsewhere(each, "heldout") for each in self.needs)

    @property
    def alternatives(self) -> list[str]:
        """The missing needs of which one is enough, in words."""
        return [each.need.words for each in self.missing if each.need.either]

    @property
    def usable(self) -> list[Counted]:
        return [each for each in self.needs if each.train or each.heldout]

    def _elsewhere(self, need: Counted, split: str) -> bool:
        group = need.need.either
        return bool(group) and any(getattr(each, split) for each in self.needs if each.need.either == group)


def fit(recipe: Recipe, counts: Counts, config: RecipeConfig | None = None) -> Fit:
    """The fit of `counts`, those of a version, with the needs of the recipe, or of one config of it."""
    train, heldout = counts["train"], counts["heldout"]
    needs = config.needs(recipe.needs) if config else recipe.needs
    return Fit(recipe, tuple(_counted(need, train, heldout) for need in needs))


def _counted(need: DataNeed, train: dict[str, int], heldout: dict[str, int]) -> Counted:
    left = tuple((number, words) for key, words in need.left_out if (number := train.get(key, 0) + heldout.get(key, 0)))
    return Counted(need, train.get(need.count, 0), heldout.get(need.count, 0), left)


def problems(found: Fit, named: str, heldout_wanted: int) -> Iterator[FieldProblem]:
    """Problems that keep the recipe from training on the data that are called `named`, each at its field."""
    for each in found.missing:
        alternatives = [
            other.need.words for other in found.needs if each.need.either and other.need.either == each.need.either
        ]
        words = " or ".join(alternatives or [each.need.words])
        left = "; ".join(f"{with_noun(number, what)} left out" for number, what in each.left_out)
        reason = f"{named} has no training {words}, which {found.recipe.title!r} needs{f' ({left})' if left else ''}"
        yield FieldProblem("dataset", reason)
        if alternatives:
            break
    if heldout_wanted and found.ok and not found.held_out:
        words = found.needs[0].need.words if found.needs else "examples"
        reason = f"{named} has no held-out {words} to evaluate on; add some or set this to 0"
        yield FieldProblem("evaluation.max_examples", reason)
