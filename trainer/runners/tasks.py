"""The stage of every recipe that trains on a task of `trainer.tasks`: a policy stage on the task's questions."""

from functools import partial

from trainer.loops.prompts.task_questions import posed_prompts
from trainer.loops.recipes.policy import PolicyStage
from trainer.loops.session.stage import StageJob
from trainer.tasks import TASKS

from .policy import on_policy


def make(job: StageJob) -> PolicyStage:
    """Raises RunFailed, ValueError or OSError if examples or models cannot be used."""
    task = TASKS[job.recipe.name](job.config)
    return on_policy(job, partial(posed_prompts, task=task), task)
