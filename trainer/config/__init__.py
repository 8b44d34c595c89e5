"""Recipes and their schemas. Importable without torch: the web form, the API and the trainer share them."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from . import dpo, iterative_dpo, policy, reward_model, sft
from .errors import ConfigInvalid, FieldProblem
from .policy import PolicyConfig
from .policy_objective import CHOICES
from .recipe import Recipe, RecipeConfig
from .rewards import PART_KINDS

__all__ = ["RECIPES", "ConfigInvalid", "FieldProblem", "PolicyConfig", "Recipe", "RecipeConfig", "resolve", "stored"]


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe for recipe in (policy.RECIPE, sft.RECIPE, reward_model.RECIPE, dpo.RECIPE, iterative_dpo.RECIPE)
}


def resolve(recipe: str, raw: dict[str, Any]) -> RecipeConfig:
    """The complete config of a run, defaults filled in. Raises ConfigInvalid with every problem, by field."""
    if recipe not in RECIPES:
        raise ConfigInvalid([FieldProblem("recipe", f"unknown recipe {recipe!r}; known: {', '.join(RECIPES)}")])
    try:
        config = RECIPES[recipe].schema.model_validate(raw)
    except ValidationError as error:
        raise ConfigInvalid([_problem(item) for item in error.errors()]) from error
    problems = list(config.problems())
    if problems:
        raise ConfigInvalid(problems)
    return config


def stored(recipe: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """A config as an older version resolved and stored it, with what that version did where it had no choice yet."""
    found = dict(raw)
    data = found.get("data")
    if recipe == "policy" and isinstance(data, dict) and "unjudged" not in data:
        found["data"] = {**data, "unjudged": "drop_prompts"}
    return found


def _problem(item: Any) -> FieldProblem:
    loc = [str(part) for part in item["loc"]]
    if item["type"] == "union_tag_invalid":
        named, choices = ("kind", PART_KINDS) if loc[0] == "rewards" else ("name", CHOICES)
        return FieldProblem(".".join([*loc, named]), f"must be one of {', '.join(choices)}")
    # which of several sections was meant is no part of the field's path
    if loc[0] == "objective" and len(loc) > 1 and loc[1] in CHOICES:
        del loc[1]
    if loc[0] == "rewards" and len(loc) > 2 and loc[2] in PART_KINDS:
        del loc[2]
    path = ".".join(loc)
    if item["type"] == "extra_forbidden":
        return FieldProblem(path, "unknown key")
    return FieldProblem(path, item["msg"])
