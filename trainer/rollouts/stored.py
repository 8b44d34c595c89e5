"""Scored responses as JSON: what checkpoints, rounds and buffers keep of them."""

from dataclasses import asdict
from typing import Any

from trainer.contracts import CriterionResult, PartResult

from .trajectory import PromptPlan, Reward, Trajectory


def written(trajectory: Trajectory) -> dict[str, Any]:
    """Without its plan, which often follows from the seed; see `with_plan`."""
    reward = trajectory.reward
    return {
        "tokens": list(trajectory.tokens),
        "logprobs": list(trajectory.logprobs),
        "text": trajectory.text,
        "finish_reason": trajectory.finish_reason,
        "version": trajectory.version,
        "versions": [list(span) for span in trajectory.versions],
        "reward": {
            "total": reward.total,
            "components": reward.components,
            "criteria": [criterion.model_dump(mode="json") for criterion in reward.criteria],
            "score": reward.score,
            "clipped": reward.clipped,
            "excluded": reward.excluded,
            "parts": [part.model_dump(mode="json") for part in reward.parts],
            "away": reward.away,
        },
    }


def read(row: dict[str, Any], plan: PromptPlan) -> Trajectory:
    """The inverse of `written`. Raises KeyError, TypeError or ValueError for what it did not write."""
    reward = dict(row["reward"])
    reward["criteria"] = tuple(CriterionResult.model_validate(criterion) for criterion in reward["criteria"])
    reward["parts"] = tuple(PartResult.model_validate(part) for part in reward.get("parts", ()))
    return Trajectory(
        plan=plan,
        tokens=tuple(row["tokens"]),
        logprobs=tuple(row["logprobs"]),
        text=row["text"],
        finish_reason=row["finish_reason"],
        version=row["version"],
        reward=Reward(**reward),
        versions=tuple((version, start, end) for version, start, end in row["versions"]),
    )


def with_plan(trajectory: Trajectory) -> dict[str, Any]:
    """`written`, and the plan beside it."""
    return written(trajectory) | {"plan": asdict(trajectory.plan)}


def read_with_plan(row: dict[str, Any]) -> Trajectory:
    """The inverse of `with_plan`."""
    plan = dict(row["plan"])
    for name in ("prompt_tokens", "sampled_prompt_tokens"):
        plan[name] = tuple(plan[name])
    return read(row, PromptPlan(**plan))
