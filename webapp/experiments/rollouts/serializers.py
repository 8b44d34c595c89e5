"""Rollouts as JSON."""

from typing import Any

from ..models import Rollout


def rollout(row: Rollout) -> dict[str, Any]:
    """The trainer's RolloutRecord with the place it has in the run."""
    return {"id": row.id, "step": row.step, **row.content}
