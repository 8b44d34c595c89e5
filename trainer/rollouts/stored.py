"""Scored responses as JSON, in which checkpoints, rounds and buffers keep them."""

from dataclasses import asdict
from typing import Any

from trainer.contracts import CriterionResult, PartResult
from trainer.inference.sampling import SampleResult

from .trajectory import PromptPlan, Reward, Span, Trajectory, other_view


def stored_trajectory(trajectory: Trajectory) -> dict[str, Any]:
    """The trajectory without its plan, which often follows from the seed, and without what follows from the plan; see `with_plan`."""
    reward = trajectory.reward
    view = {} if trajectory.view == other_view(trajectory.plan) else {"view": list(trajectory.view)}
    return {
        "spans": [[span.author, list(span.tokens), list(span.logprobs), span.version] for span in trajectory.spans[1:]],
        "text": trajectory.text,
        "stop": trajectory.stop,
        **view,
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
    """The inverse of `stored_trajectory`, also for what programs before spans wrote. Raises KeyError, TypeError or ValueError for
    anything else.
    """
    reward = dict(row["reward"])
    reward["criteria"] = tuple(CriterionResult.model_validate(criterion) for criterion in reward["criteria"])
    reward["parts"] = tuple(PartResult.model_validate(part) for part in reward.get("parts", ()))
    if "spans" not in row:
        return _of_one_response(row, plan, Reward(**reward))
    said = [Span(author, tuple(tokens), tuple(logprobs), version) for author, tokens, logprobs, version in row["spans"]]
    spans = (Span("prompt", plan.sampled_prompt_tokens), *said)
    view = tuple(row["view"]) if "view" in row else other_view(plan)
    return Trajectory(plan, spans, row["text"], row["stop"], Reward(**reward), view)


def _of_one_response(row: dict[str, Any], plan: PromptPlan, reward: Reward) -> Trajectory:
    """A trajectory as it was before November 2026: one response, with the versions of runs of its tokens."""
    tokens, logprobs = tuple(row["tokens"]), tuple(row["logprobs"])
    result = SampleResult(tokens, logprobs, row["text"], row["finish_reason"], row["version"])
    return Trajectory.of(plan, result, reward, [(version, start, end) for version, start, end in row["versions"]])


def with_plan(trajectory: Trajectory) -> dict[str, Any]:
    """`stored_trajectory`, and the plan beside it."""
    return stored_trajectory(trajectory) | {"plan": asdict(trajectory.plan)}


def read_with_plan(row: dict[str, Any]) -> Trajectory:
    """The inverse of `with_plan`."""
    plan = dict(row["plan"])
    for name in ("prompt_tokens", "sampled_prompt_tokens"):
        plan[name] = tuple(plan[name])
    return read(row, PromptPlan(**plan))
