"""The function that makes the stage of each recipe, as text, so that a run imports only what it needs."""

import importlib
from typing import cast

from .session.stage import Make, Stage, StageJob

STAGES: dict[str, str] = {
    "policy": "trainer.runners.policy:make",
    "distill": "trainer.runners.distill:make",
    "sft": "trainer.loops.recipes.sft:make",
    "reward_model": "trainer.loops.recipes.reward_model:make",
    "dpo": "trainer.loops.recipes.dpo:make",
    "iterative_dpo": "trainer.loops.recipes.iterative_dpo:make",
    "judge": "trainer.runners.tasks:make",
    "rubric_writer": "trainer.runners.tasks:make",
    "chain": "trainer.loops.recipes.chain:make",
    "alternating": "trainer.loops.recipes.alternating:make",
}


def make_stage(job: StageJob) -> Stage:
    """Raises RunFailed, ValueError or OSError if data or models cannot be used; the message says what to do."""
    module, _, function = STAGES[job.recipe.name].partition(":")
    make = cast(Make, getattr(importlib.import_module(module), function))
    return make(job)
