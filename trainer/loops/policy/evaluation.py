"""Evaluates the policy on prompts on which it never trains, without any scaffold."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trainer.rollouts import Groups, PromptPlan, RewardWatch, RolloutScorer, Trajectory, sample_and_score
from trainer.seeding import derive_seed

from ..prompts.data import Prompt
from .parts import Parts
from .reports import DOMAINS, SHOWN


@dataclass(frozen=True)
class EvaluatedPolicy:
    values: dict[str, float]
    trajectories: list[Trajectory]


def evaluate(
    parts: Parts,
    scorer: RolloutScorer,
    where: str,
    progress: Callable[[int, int], None] | None = None,
    watch: RewardWatch | None = None,
) -> EvaluatedPolicy:
    """Measures of `evaluation.samples` responses per held-out prompt. Responses without a score leave the means and are counted.

    `where` is the place in the run: `eval` and the step.
    """
    config = parts.config
    plans = [
        PromptPlan(
            prompt.example.key,
            group,
            sample,
            prompt.text,
            prompt.tokens,
            prompt.tokens,
            # All evaluations draw the same prompts, so that a curve moves only because the policy changes.
            derive_seed(config.seed, "evaluation", group, sample),
        )
        for group, prompt in enumerate(parts.prompts.heldout)
        for sample in range(config.evaluation.samples)
    ]
    rollout = config.rollout.model_copy(update={"temperature": config.evaluation.temperature, "top_p": 1.0})
    groups = Groups(plans, parts.tasks, scorer, where)
    trajectories = sample_and_score(parts.sampler, plans, rollout, groups, scorer, progress, watch).trajectories
    return EvaluatedPolicy(_values(trajectories, parts.tasks), trajectories)


def _values(trajectories: list[Trajectory], prompts: Mapping[str, Prompt]) -> dict[str, float]:
    scored = [t.reward for t in trajectories if t.reward.score is not None]
    values = {
        "eval/length": sum(t.length for t in trajectories) / len(trajectories),
        "eval/excluded": float(sum(_excluded(each, prompts[each.plan.example_key]) for each in trajectories)),
    }
    if scored:
        values["eval/rubric_score"] = sum(reward.score or 0.0 for reward in scored) / len(scored)
        values["eval/rubric_score_clipped"] = sum(reward.clipped or 0.0 for reward in scored) / len(scored)
    rewarded = [t.reward.total for t in trajectories if t.reward.total is not None]
    if rewarded:
        values["eval/reward"] = sum(rewarded) / len(rewarded)
    values |= _by_domain([t for t in trajectories if t.reward.score is not None], prompts)
    error = _standard_error(trajectories)
    if error is not None:
        values["eval/rubric_score_se"] = error
    return values


def _by_domain(scored: list[Trajectory], prompts: Mapping[str, Prompt]) -> dict[str, float]:
    """Mean rubric score of each domain; {} if there is only one, or more than can be read."""
    domains: dict[str, list[float]] = defaultdict(list)
    for trajectory in scored:
        name = prompts[trajectory.plan.example_key].example.domain
        domains[name[:SHOWN] or "none"].append(trajectory.reward.score or 0.0)
    if not 1 < len(domains) <= DOMAINS:
        return {}
    return {f"eval/domain/{name}": statistics.fmean(scores) for name, scores in domains.items()}


def _excluded(trajectory: Trajectory, prompt: Prompt) -> bool:
    """Whether the trajectory lacks its rubric score or, if there is no rubric (as for the questions of a task), its reward."""
    reward = trajectory.reward
    return (reward.total if prompt.rubric is None else reward.score) is None


def _standard_error(trajectories: list[Trajectory]) -> float | None:
    """The standard error of the mean over prompts of their responses' means: responses to one prompt are not independent.

    `sqrt(var(prompt means, ddof=1) / P)`; None if fewer than two prompts have a score.
    """
    scores = defaultdict(list)
    for trajectory in trajectories:
        if trajectory.reward.score is not None:
            scores[trajectory.plan.group].append(trajectory.reward.score)
    means = [statistics.fmean(values) for values in scores.values()]
    return math.sqrt(statistics.variance(means) / len(means)) if len(means) > 1 else None
