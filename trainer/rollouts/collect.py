"""From planned prompts to scored trajectories."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from trainer.config.policy import Rollout
from trainer.contracts import Example, Rubric
from trainer.inference.sampling import Sampler, SampleRequest, SampleResult, SamplingProgress
from trainer.rewards import Item

from .scoring import Watch
from .trajectory import PromptPlan, Reward, Trajectory


class Task(Protocol):
    """What responses are sampled for. `rubric` may hold fewer criteria than the example's."""

    @property
    def example(self) -> Example: ...

    @property
    def rubric(self) -> Rubric | None: ...


class Scoring(Protocol):
    """A `RewardScorer`, or a test's."""

    longest: int

    def score(self, items: Sequence[Item], watch: Watch | None = None) -> list[Reward]: ...


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
    tasks: Mapping[str, Task],
    scorer: Scoring,
    where: str,
    watch: Watch | None = None,
    baselines: Mapping[int, str] | None = None,
) -> list[Trajectory]:
    """Trajectories with their rewards; those without one stay in the list, marked, so that they can be counted.

    `tasks` by the key of the example; `where` in the run they were sampled (phase and step), `baselines` the policy's
    likeliest response to the prompt of each group, where a part of the reward compares with it.
    """
    items = [
        item_of(
            f"{where}/{plan.group}/{plan.index}", tasks[plan.example_key], result, scorer.longest, baselines, plan.group
        )
        for plan, result in zip(plans, results, strict=True)
    ]
    return [
        Trajectory(
            plan=plan,
            tokens=result.tokens,
            logprobs=result.logprobs,
            text=result.text,
            finish_reason=result.finish_reason,
            version=result.version,
            reward=reward,
        )
        for plan, result, reward in zip(plans, results, scorer.score(items, watch), strict=True)
    ]


def item_of(
    place: str,
    task: Task,
    result: SampleResult,
    longest: int,
    baselines: Mapping[int, str] | None = None,
    group: int = 0,
) -> Item:
    """A response as rewards look at it."""
    baseline = baselines.get(group) if baselines else None
    return Item(place, task.example, task.rubric, result.text, len(result.tokens), longest, baseline)


def greedy_samples(
    sampler: Sampler, plans: Sequence[PromptPlan], rollout: Rollout
) -> list[tuple[PromptPlan, SampleResult]]:
    """For each group, the likeliest response to its prompt without scaffold."""
    first: dict[int, PromptPlan] = {}
    for plan in plans:
        first.setdefault(plan.group, plan)
    asked = [
        replace(plan, sampled_prompt_tokens=plan.prompt_tokens, scaffold="", scaffold_shown=0)
        for plan in first.values()
    ]
    likeliest = rollout.model_copy(update={"temperature": 0.0, "top_p": 1.0})
    return list(zip(asked, sample_plans(sampler, asked, likeliest), strict=True))


def greedy_rewards(
    sampler: Sampler,
    plans: Sequence[PromptPlan],
    rollout: Rollout,
    tasks: Mapping[str, Task],
    scorer: Scoring,
    where: str,
    watch: Watch | None = None,
) -> list[float]:
    """For each plan, what the likeliest response to its prompt without scaffold is worth; NaN where it has no reward.

    ReMax's baseline (Li et al., 2024): one more response per prompt.
    """
    sampled = greedy_samples(sampler, plans, rollout)
    asked, results = [plan for plan, _ in sampled], [result for _, result in sampled]
    scored = score_samples(asked, results, tasks, scorer, where, watch)
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
