"""Recipes and their schemas. They need no torch, because the web form, the API and the trainer share them."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from .errors import ConfigInvalid, FieldProblem, item_text
from .field_suggestions import unknown_key
from .objectives.knobs import NO_CAP
from .objectives.policy import CHOICES
from .on_policy import OnPolicyConfig
from .recipe import Recipe, RecipeConfig
from .recipes import alternating, chain, distill, dpo, iterative_dpo, judge, policy, reward_model, rubric_writer, sft
from .recipes.policy import PolicyConfig
from .rewards.parts import PART_KINDS

__all__ = [
    "RECIPES",
    "ConfigInvalid",
    "FieldProblem",
    "OnPolicyConfig",
    "PolicyConfig",
    "Recipe",
    "RecipeConfig",
    "resolve",
    "stored",
]


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        policy.RECIPE,
        sft.RECIPE,
        reward_model.RECIPE,
        dpo.RECIPE,
        iterative_dpo.RECIPE,
        judge.RECIPE,
        rubric_writer.RECIPE,
        alternating.RECIPE,
        distill.RECIPE,
        chain.RECIPE,
    )
}


def resolve(recipe: str, raw: dict[str, Any]) -> RecipeConfig:
    """The complete config of a run, with its defaults. Raises ConfigInvalid with every problem, by field."""
    if recipe not in RECIPES:
        raise ConfigInvalid([FieldProblem("recipe", f"unknown recipe {recipe!r}; known: {', '.join(RECIPES)}")])
    try:
        config = RECIPES[recipe].schema.model_validate(raw)
    except ValidationError as error:
        raise ConfigInvalid([_problem(item, recipe, RECIPES[recipe].schema) for item in error.errors()]) from error
    problems = list(config.problems())
    if problems:
        raise ConfigInvalid(problems)
    return config


def upgrade_stored(recipe: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    """A config that an older version has stored. Fields that it does not have get the value by which that version worked."""
    found = dict(raw)
    if recipe != "policy":
        return found
    data, rollout, optim, objective = (found.get(name) for name in ("data", "rollout", "optim", "objective"))
    if isinstance(data, dict) and "unjudged" not in data:
        found["data"] = {**data, "unjudged": "drop_prompts"}
    # Versions before `rollout.truncated` decayed norms and biases too; later versions do not.
    before = isinstance(rollout, dict) and "truncated" not in rollout
    if before and isinstance(optim, dict) and optim.get("weight_decay") and "decay" not in optim:
        found["optim"] = {**optim, "decay": "all"}
    if isinstance(objective, dict) and objective.get("weight_cap") is None:
        found["objective"] = {name: value for name, value in objective.items() if name != "weight_cap"}
        if objective.get("decoupled"):
            found["objective"]["weight_cap"] = NO_CAP
    return found


def _problem(item: Any, recipe: str, schema: type[RecipeConfig]) -> FieldProblem:
    loc = [str(part) for part in item["loc"]]
    if loc[0] == "phases" and (why := _no_phase(loc[1:], item["input"], schema)):
        return FieldProblem(".".join(loc), why)
    if item["type"] == "union_tag_invalid":
        named, choices = ("kind", PART_KINDS) if loc[0] == "rewards" else ("name", CHOICES)
        return FieldProblem(".".join([*loc, named]), f"must be one of {', '.join(choices)}")
    chosen = ""  # the kind of the section, which does not belong to the field's path
    if loc[0] == "objective" and len(loc) > 1 and loc[1] in CHOICES:
        chosen = loc.pop(1)
    if loc[0] == "rewards" and len(loc) > 2 and loc[2] in PART_KINDS:
        chosen = loc.pop(2)
    path = ".".join(loc)
    if item["type"] == "extra_forbidden":
        return FieldProblem(path, unknown_key(recipe, schema, loc, chosen))
    return FieldProblem(path, item_text(item))


def _no_phase(loc: list[str], value: Any, schema: type[RecipeConfig]) -> str:
    """The reason why a recipe has no phases, or not this field of one, or not this value of it; empty if that is not what is wrong."""
    if schema.phase_kind is None:
        return f"this recipe has no phases: {schema.instead_of_phases}; remove them"
    return schema.phase_kind.refused(loc[1], value) if len(loc) == 2 else ""
