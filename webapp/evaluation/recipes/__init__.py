"""Recipes by name. Adding one touches its module and one line here; a big recipe is a package, or shares a package with related ones."""

from typing import Any

from pydantic import ValidationError

from trainer.config.errors import ConfigInvalid, FieldProblem, item_text

from . import grade_or_compare, metajudge
from .audits import criterion_audit, judge_audit, rubric_audit
from .base import Recipe, RecipeConfig
from .policies import generate, pass_rate, policy
from .reward_benchmark import reward_benchmark
from .rubricbench import rubricbench, study

RECIPES: dict[str, Recipe] = {
    module.RECIPE.name: module.RECIPE
    for module in (
        judge_audit,
        reward_benchmark,
        criterion_audit,
        rubricbench,
        study,
        metajudge,
        policy,
        generate,
        pass_rate,
        rubric_audit,
        grade_or_compare,
    )
}


def resolve(name: str, raw: dict[str, Any]) -> RecipeConfig:
    """The complete config, defaults filled in. Raises ConfigInvalid with every problem, by field."""
    if name not in RECIPES:
        raise ConfigInvalid([FieldProblem("recipe", f"unknown recipe {name!r}; known: {', '.join(RECIPES)}")])
    try:
        config = RECIPES[name].schema.model_validate(raw)
    except ValidationError as error:
        raise ConfigInvalid([_problem(item) for item in error.errors()]) from error
    if problems := list(config.problems()):
        raise ConfigInvalid(problems)
    return config


def _problem(item: Any) -> FieldProblem:
    path = ".".join(str(part) for part in item["loc"])
    if item["type"] == "int_type" and item["input"] in ("", None):
        return FieldProblem(path, "choose one")
    return FieldProblem(path, item_text(item))
