"""Whether data is suitable for a recipe, in numbers, before the launch."""

import pytest

from trainer.config.recipe import DataNeed, Recipe, RecipeConfig
from trainer.config.recipes.policy import RECIPE as POLICY
from trainer.config.recipes.policy import PolicyConfig
from webapp.experiments.recipes.fit import fit, problems


def recipe(*needs: DataNeed) -> Recipe:
    return Recipe("toy", "Toy", "", RecipeConfig, needs, (), "eval/loss", (), (), {})


PAIRS = DataNeed("pairs", "pairs", left_out=(("ties", "ties"), ("undecided", "undecided pairs")))


def counts(train=None, heldout=None):
    return {"train": train or {}, "heldout": heldout or {}}


def test_what_is_there_and_what_is_left_out_is_counted_by_split():
    found = fit(recipe(PAIRS), counts({"pairs": 312, "ties": 40}, {"pairs": 78, "ties": 1}))
    (need,) = found.needs
    assert (need.train, need.heldout, need.left_out) == (312, 78, ((41, "ties"),))
    assert found.ok and found.held_out and not list(problems(found, "demo v1", 10))


def test_nothing_to_train_on_is_said_with_what_is_left_out():
    (problem,) = problems(fit(recipe(PAIRS), counts({"ties": 5}, {"pairs": 3})), "demo v1", 10)
    assert problem.path == "dataset"
    assert problem.message == "demo v1 has no training pairs, which 'Toy' needs (5 ties left out)"


@pytest.mark.parametrize(("wanted", "paths"), [(10, ["evaluation.max_examples"]), (0, [])])
def test_nothing_held_out_is_a_problem_only_where_something_is_measured(wanted, paths):
    found = fit(recipe(PAIRS), counts({"pairs": 3}))
    assert [problem.path for problem in problems(found, "demo v1", wanted)] == paths


def test_one_of_several_kinds_of_data_is_enough():
    either = recipe(
        DataNeed("turns", "conversations", either="texts"), DataNeed("references", "answers", either="texts")
    )
    assert fit(either, counts({"references": 3})).ok
    nothing = fit(either, counts({"pairs": 3}))
    (problem,) = problems(nothing, "demo v1", 0)
    assert "no training conversations or answers" in problem.message


def test_a_scaffold_without_rubrics_says_what_to_switch_off():
    part = {"kind": "format", "name": "form", "tags": ["answer"]}
    config = PolicyConfig.model_validate({"rewards": [part]})
    bare = counts({"examples": 4})
    assert fit(POLICY, bare, config).ok
    (problem,) = config.data_problems(bare)
    assert (problem.path, "switch it off" in problem.message) == ("scaffold", True)
    assert not list(config.model_copy(update={"scaffold": None}).data_problems(bare))
