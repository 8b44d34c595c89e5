"""Presets of recipes: each gives a config that can be launched, changes only what it names, and can be taken back."""

import pytest

from trainer.config import RECIPES, resolve
from trainer.config.presets import changes, values_at, with_values

PRESETS = [(recipe, preset) for recipe in RECIPES.values() for preset in recipe.presets]
IDS = [f"{recipe.name}-{preset.name}" for recipe, preset in PRESETS]


@pytest.mark.parametrize(("recipe", "preset"), PRESETS, ids=IDS)
def test_a_preset_gives_a_config_that_can_be_launched(recipe, preset):
    defaults = recipe.schema.model_validate({}).model_dump(mode="json")
    config = resolve(recipe.name, with_values(defaults, recipe.filled_by(preset, defaults)))
    assert not [*config.launch_problems()]
    assert recipe.filled_by(preset, config.model_dump(mode="json")) == {}, "nothing is left to change"
    assert config.model_dump(mode="json") == resolve(recipe.name, dict(preset.config)).model_dump(mode="json")


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_each_recipe_has_presets_with_names_of_their_own(recipe):
    names = [preset.name for preset in recipe.presets]
    assert {"quick", "small"} <= set(names) and len(set(names)) == len(names)
    assert all(preset.help.endswith(".") for preset in recipe.presets)
    assert recipe.preset("quick") is recipe.presets[0] and recipe.preset("none such") is None


def test_what_is_typed_elsewhere_stays_and_comes_back():
    recipe = RECIPES["policy"]
    typed = recipe.schema.model_validate(
        {"steps": 7, "optim": {"lr": 0.5}, "objective": {"name": "gspo", "eps_low": 0.01}}
    ).model_dump(mode="json")
    preset = recipe.preset("icepop")
    found = recipe.filled_by(preset, typed)
    assert set(found) == {"objective", "scaffold", "rollout.prompts_per_step", "rollout.group_size"}
    new = with_values(typed, found)
    assert new["objective"]["name"] == "icepop" and "std_eps" in new["objective"], (
        "another choice has all its own fields"
    )
    assert (new["steps"], new["optim"]["lr"]) == (7, 0.5)
    assert with_values(new | {"steps": 8}, values_at(typed, found)) == typed | {"steps": 8}


def test_a_place_that_is_not_there_is_left_out():
    assert changes({"a": "typed"}, {"a": 1}, {"a": 1}) == {"a": 1}
    assert changes({"a": None}, {"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}) == {"a": {"b": 1, "c": 2}}
    assert with_values({"a": None}, {"a.b": 1}) == {"a": None}
    assert values_at({"a": None}, {"a.b": 1}) == {"a.b": None}
