"""Rollouts as JSON."""

from typing import Any

from trainer.contracts.rollout_examples import LEFT_OUT

from ..models import Rollout
from .datasets import Preview


def rollout(row: Rollout) -> dict[str, Any]:
    """The trainer's RolloutRecord with its place in the run."""
    return {"id": row.id, "step": row.step, **row.content}


def rollout_preview(found: Preview, cases: dict[str, int], after: int) -> dict[str, Any]:
    """`cases`: how many of each step are returned; `after`: how many before them are left out."""
    steps = [
        {
            "key": step.key,
            "title": LEFT_OUT[step.key],
            "came": step.came,
            "stayed": step.stayed,
            "left_out": len(step.left_out),
            "cases": [
                {"why": why} | {name: getattr(each, name) for name in ("example_key", "step", "group", "index", "text")}
                for each, why in step.left_out[after : after + cases[step.key]]
            ],
        }
        for step in found.steps
    ]
    return {"responses": found.responses, "stayed": found.stayed, "prompts": found.prompts, "steps": steps}
