"""Decides whether runs can train in one process, in turns: they can if none of them changes the base model. Imports no torch, because the
form asks too."""

from collections.abc import Sequence

from .on_policy import OnPolicyConfig
from .recipe import RecipeConfig

RECIPES = ("sft", "policy", "dpo")


def why_apart(recipe: str, configs: Sequence[RecipeConfig]) -> str:
    """The reasons why runs of these configs cannot train together, in words; empty if nothing does. They share data and base model."""
    if recipe not in RECIPES:
        return f"runs of recipe {recipe!r} cannot train together; {', '.join(RECIPES[:-1])} and {RECIPES[-1]} can"
    for config in configs:
        if why := _why_alone(config):
            return why
    dtypes = sorted({config.model.dtype for config in configs})
    if len(dtypes) > 1:
        return f"model.dtype differs ({', '.join(dtypes)}): the base model is held once, in one precision"
    if len({config.resources for config in configs}) > 1:
        return "resources differ: one process trains all of them, and Ray reserves them once"
    return ""


def _why_alone(config: RecipeConfig) -> str:
    if config.model.lora is None:
        return "model.lora is empty: a run that trains all weights cannot share them"
    if not isinstance(config, OnPolicyConfig):
        return ""
    if config.optim.processes > 1:
        return f"optim.processes is {config.optim.processes}: such a run starts its own processes"
    if config.runner.kind != "sync":
        return f"runner.kind is {config.runner.kind!r}: only runs that sample and then train ('sync') can take turns"
    if config.sampler.kind != "local":
        return f"sampler.kind is {config.sampler.kind!r}: runs that are together sample with the model in their process ('local')"
    return ""
