"""From planned prompts to scored trajectories."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

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
