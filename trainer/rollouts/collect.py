"""From planned prompts to scored trajectories."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from trainer.config.policy import Rollout
from trainer.contracts import Rubric
from trainer.inference.sampling import Sampler, SampleRequest, SampleResult, SamplingProgress

from .trajectory import PromptPlan, Reward, Trajectory


def sample_plans(
    sampler: Sampler, plans: Sequence[PromptPlan], rollout: Rollout, progress: SamplingProgress | None = None
) -> list[SampleResult]:
    """One response for each plan, in order."""
    requests = [
        SampleRequest(
            prompt_tokens=plan.sampled_prompt_tokens,
            max_new_tokens=rollout.max_new_tokens,
            temperature=rollout.temperature,
            top_p=rollout.top_p,
            stop=tuple(rollout.stop),
            seed=plan.seed,
        )
        for plan in plans
    ]
    return sampler.sample(requests, progress)


def score_samples(
    plans: Sequence[PromptPlan],
    results: Sequence[SampleResult],
    rubrics: Mapping[str, Rubric],
    reward: Callable[[Rubric, SampleResult], Reward],
) -> list[Trajectory]:
    """Trajectories with their rewards; those without one stay in the list, marked, so that they can be counted."""
    return [
        Trajectory(
            plan=plan,
            tokens=result.tokens,
            logprobs=result.logprobs,
            text=result.text,
            finish_reason=result.finish_reason,
            version=result.version,
            reward=reward(rubrics[plan.example_key], result),
        )
        for plan, result in zip(plans, results, strict=True)
    ]


def greedy_rewards(
    sampler: Sampler,
    plans: Sequence[PromptPlan],
    rollout: Rollout,
    rubrics: Mapping[str, Rubric],
    reward: Callable[[Rubric, SampleResult], Reward],
) -> list[float]:
    """For each plan, what the likeliest response to its prompt without scaffold is worth; NaN where it has no reward.

    ReMax's baseline (Li et al., 2024): one more response per prompt.
    """
    first: dict[int, PromptPlan] = {}
    for plan in plans:
        first.setdefault(plan.group, plan)
    asked = [
        replace(plan, sampled_prompt_tokens=plan.prompt_tokens, scaffold="", scaffold_shown=0)
        for plan in first.values()
    ]
    likeliest = rollout.model_copy(update={"temperature": 0.0, "top_p": 1.0})
    scored = score_samples(asked, sample_plans(sampler, asked, likeliest), rubrics, reward)
    worth = {t.plan.group: math.nan if t.reward.total is None else t.reward.total for t in scored}
    return [worth[plan.group] for plan in plans]


def group_rewards(trajectories: Sequence[Trajectory]) -> dict[int, list[float]]:
    """The rewards of each group, without its excluded responses."""
    groups: dict[int, list[float]] = defaultdict(list)
    for trajectory in trajectories:
        if trajectory.reward.total is not None:
            groups[trajectory.plan.group].append(trajectory.reward.total)
    return dict(groups)


def flat_groups(groups: Mapping[int, Sequence[float]]) -> int:
    """Groups whose rewards are all equal up to rounding: they carry no signal."""
    return sum(max(rewards) - min(rewards) <= 1e-9 for rewards in groups.values())
