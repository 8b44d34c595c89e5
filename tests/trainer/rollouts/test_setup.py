"""Reward models reach the rewards by the names that the slots of the recipes give them."""

from pathlib import Path

import pytest

from trainer.config import RECIPES
from trainer.config.rewards.parts import RewardModelPart
from trainer.rollouts import reward_folders

WHERE = "rewards.*.model"
SCORED = [recipe for recipe in RECIPES.values() if any(slot.path == WHERE for slot in recipe.slots)]


@pytest.mark.parametrize("recipe", SCORED, ids=lambda recipe: recipe.name)
def test_one_reward_model_stands_under_its_slots_role(recipe):
    (role,) = (slot.role for slot in recipe.slots if slot.path == WHERE)
    part = RewardModelPart(kind="reward_model", model="taste")
    assert reward_folders([part], {"base": Path("b"), role: Path("t")}) == {"taste": Path("t")}


def test_several_stand_under_their_paths():
    parts = [RewardModelPart(kind="reward_model", name=name, model=name) for name in ("taste", "manners")]
    models = {"reward_model": Path("t"), "rewards.0.model": Path("t"), "rewards.1.model": Path("m")}
    assert reward_folders(parts, models) == {"taste": Path("t"), "manners": Path("m")}
    assert SCORED
