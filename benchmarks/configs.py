"""Configs of runs for benchmarks, as instances of their class."""

from collections.abc import Mapping
from typing import Any, TypeVar

from trainer.config import PolicyConfig, resolve
from trainer.config.recipe import RecipeConfig

C = TypeVar("C", bound=RecipeConfig)


def resolved(schema: type[C], recipe: str, raw: Mapping[str, Any]) -> C:
    """The complete config with defaults. Raises ConfigInvalid with every problem, and TypeError if `schema` is not the recipe's."""
    config = resolve(recipe, dict(raw))
    if not isinstance(config, schema):
        raise TypeError(f"the config of {recipe} is a {type(config).__name__}, not a {schema.__name__}")
    return config


def policy(raw: Mapping[str, Any]) -> PolicyConfig:
    return resolved(PolicyConfig, "policy", raw)
