"""Starts runs like the command line, with a monitor of the test."""

from pathlib import Path
from typing import Any

from trainer.config import RECIPES, RecipeConfig
from trainer.loops.session.stage import StageJob
from trainer.monitors import RunMonitor, Spool
from trainer.rewards.access import Access


def job_of(
    config: RecipeConfig,
    data: Path,
    model: Path,
    out: Path,
    monitor: RunMonitor,
    access: Access | None = None,
    **models: Path,
) -> StageJob:
    """The config's schema decides the recipe."""
    recipe = next(recipe for recipe in RECIPES.values() if recipe.schema is type(config))
    return StageJob(recipe, config, data, {"base": model, **models}, out, monitor, access=access or Access())


def run(
    config: RecipeConfig,
    data: Path,
    model: Path,
    out: Path,
    resume: bool = False,
    monitor: RunMonitor | None = None,
    make: Any = None,
    access: Access | None = None,
    **models: Path,
) -> bool:
    """`models` by role, in addition to the base."""
    from trainer.loops.registry import make_stage
    from trainer.loops.run import run_recipe

    monitor = monitor or RunMonitor(Spool(out / "events.jsonl"))
    return run_recipe(job_of(config, data, model, out, monitor, access, **models), resume, make or make_stage)
