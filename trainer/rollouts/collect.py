"""Samples and scores planned prompts: they become trajectories."""

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from trainer.config.on_policy import Rollout, Truncated
from trainer.inference.sampling import SampleFinished, Sampler, SampleRequest, SampleResult, SamplingProgress
from trainer.rewards import Item

from .episode import Episode, RolloutTask, episode_rows, one_of_each
from .scoring import Begun, RewardWatch
from .trajectory import PromptPlan, Reward, Trajectory


class RolloutScorer(Protocol):
    """A `RewardScorer`, or a test's."""

    @property
    def longest(self) -> int: ...

    @property
    def asks(self) -> bool:
        """Whether rewards need judges or services outside this process, which take time."""
        ...

    def begin(self, items: Sequence[Item]) -> Begun:
        """Begin to compute the rewards of these items; `finish` waits for them."""
        ...

    def finish(self, begun: Sequence[Begun], watch: RewardWatch | None = None) -> list[Reward]:
        """The rewards of all begun items, in order."""
        ...


class Scored(NamedTuple):
    """Responses with their rewards, in the order of their plans."""

    trajectories: list[Trajectory]
    sampling_s: float
    waiting_s: float
    """Seconds in which only rewards were awaited."""


def sample_plans(
    sampler: Sampler,
    plans: Sequence[PromptPlan],
    rollout: Rollout,
    progress: SamplingProgress | None = None,
    finished: SampleFinished | None = None,
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
    return sampler.sample(requests, progress, finished)


class Groups:
    """The attempts that `plans` begin, on their way to rewards. A group can be scored as soon as its last attempt has ended, while
    others are still sampled. The time of scoring changes neither responses nor rewards.

    `tasks` are by the key of the example; `where` is the place in the run (phase and step); `baselines` has the policy's
    most likely response to the prompt of each group, if a part of the reward compares with it.
    """

    def __init__(
        self,
        plans: Sequence[PromptPlan],
        tasks: Mapping[str, RolloutTask],
        scorer: RolloutScorer,
        where: str,
        baselines: Mapping[int, str] | None = None,
    ) -> None:
        self._plans, self._tasks, self._scorer, self._where = plans, tasks, scorer, where
        self._baselines = baselines
        self._episodes: dict[int, Episode] = {}
        self._begun: dict[int, Begun] = {}
        self._places: dict[int, list[int]] = defaultdict(list)
        for place, plan in enumerate(plans):
            self._places[plan.group].append(place)

    def ended(self, place: int, result: SampleResult) -> None:
        """Take the response to the plan at `place`; it is the whole attempt."""
        plan = self._plans[place]
        self.played(place, Episode(self._tasks[plan.example_key], (Trajectory.of(plan, result),)))

    def played(self, place: int, episode: Episode) -> None:
        """Take the attempt that the plan at `place` began."""
        self._episodes[place] = episode
        group = self._plans[place].group
        if all(each in self._episodes for each in self._places[group]):
            self._begun[group] = self._scorer.begin([self._item(each) for each in self._places[group]])

    def scored(self, watch: RewardWatch | None = None) -> list[Episode]:
        """All attempts with their rewards; attempts without a reward stay in the list, marked, so that they can be counted."""
        found = self._scorer.finish([self._begun[group] for group in self._places], watch)
        places = [place for group in self._places.values() for place in group]
        rewards = dict(zip(places, found, strict=True))
        return [self._episodes[place].worth(rewards[place]) for place in range(len(self._plans))]

    def trajectories(self, results: Sequence[SampleResult], watch: RewardWatch | None = None) -> list[Trajectory]:
        """The trajectories, with their rewards, of attempts that are one response each."""
        for place, result in enumerate(results):
            if place not in self._episodes:
                self.ended(place, result)
        return [trajectory for episode in self.scored(watch) for trajectory in episode.trajectories]

    def cancel(self) -> None:
        for begun in self._begun.values():
            begun.cancel()

    def _item(self, place: int) -> Item:
        plan = self._plans[place]
        baseline = self._baselines.get(plan.group) if self._baselines else None
        where = f"{self._where}/{plan.group}/{plan.index}"
        return item_of(where, self._episodes[place], self._scorer.longest, baseline)


def sample_and_score(
    sampler: Sampler,
    plans: Sequence[PromptPlan],
    rollout: Rollout,
    groups: Groups,
    scorer: RolloutScorer,
    progress: SamplingProgress | None = None,
    watch: RewardWatch | None = None,
) -> Scored:
    """One response for each plan, with its reward. If rewards need judges or services, each group is scored as soon as it ends."""
    started = time.monotonic()
    try:
        results = sample_plans(sampler, plans, rollout, progress, groups.ended if scorer.asks else None)
        sampled = time.monotonic()
        trajectories = groups.trajectories(results, watch)
    except BaseException:
        groups.cancel()
        raise
    return Scored(trajectories, sampled - started, time.monotonic() - sampled)


def score_samples(
    plans: Sequence[PromptPlan],
    results: Sequence[SampleResult],
    tasks: Mapping[str, RolloutTask],
    scorer: RolloutScorer,
    where: str,
    watch: RewardWatch | None = None,
) -> list[Trajectory]:
    """Responses that exist already, with their rewards."""
    return Groups(plans, tasks, scorer, where).trajectories(results, watch)


def score_trajectories(
    trajectories: Sequence[Trajectory],
    tasks: Mapping[str, RolloutTask],
    scorer: RolloutScorer,
    where: str,
    watch: RewardWatch | None = None,
    baselines: Mapping[int, str] | None = None,
) -> list[Trajectory]:
    """Whole attempts that were sampled at several times, with their rewards."""
    groups = Groups([t.plan for t in trajectories], tasks, scorer, where, baselines)
    try:
        for place, trajectory in enumerate(trajectories):
            groups.played(place, Episode(tasks[trajectory.plan.example_key], (trajectory,)))
        return [trajectory for episode in groups.scored(watch) for trajectory in episode.trajectories]
    except BaseException:
        groups.cancel()
        raise


def item_of(place: str, episode: Episode, longest: int, baseline: str | None = None) -> Item:
    """An attempt in the form that rewards read."""
    task = episode.task
    facts = {**task.facts, **episode.facts}
    return Item(place, task.example, task.rubric, episode.text, episode.length, longest, baseline, episode.cut, facts)


def greedy_samples(
    sampler: Sampler, plans: Sequence[PromptPlan], rollout: Rollout
) -> list[tuple[PromptPlan, SampleResult]]:
    """For each group, the most likely response to its prompt without scaffold."""
    first: dict[int, PromptPlan] = {}
    for plan in plans:
        first.setdefault(plan.group, plan)
    asked = [
        replace(plan, sampled_prompt_tokens=plan.prompt_tokens, scaffold="", scaffold_shown=0, hint=0.0)
        for plan in first.values()
    ]
    likeliest = rollout.model_copy(update={"temperature": 0.0, "top_p": 1.0})
    return list(zip(asked, sample_plans(sampler, asked, likeliest), strict=True))


def greedy_rewards(
    sampler: Sampler,
    plans: Sequence[PromptPlan],
    rollout: Rollout,
    tasks: Mapping[str, RolloutTask],
    scorer: RolloutScorer,
    where: str,
    watch: RewardWatch | None = None,
) -> list[float]:
    """For each plan, the reward of the most likely response to its prompt without scaffold; NaN if it has none.

    ReMax's baseline (Li et al., 2024): one more response per prompt.
    """
    sampled = greedy_samples(sampler, plans, rollout)
    asked, results = [plan for plan, _ in sampled], [result for _, result in sampled]
    scored = score_samples(asked, results, tasks, scorer, where, watch)
    worth = {t.plan.group: math.nan if t.reward.total is None else t.reward.total for t in scored}
    return [worth[plan.group] for plan in plans]


def group_rewards(trajectories: Sequence[Trajectory]) -> dict[int, list[float]]:
    """The rewards of each group, one of each episode, without its excluded responses."""
    groups: dict[int, list[float]] = defaultdict(list)
    for trajectory in one_of_each(trajectories):
        if trajectory.reward.total is not None:
            groups[trajectory.plan.group].append(trajectory.reward.total)
    return dict(groups)


def taught_rewards(trajectories: Sequence[Trajectory], truncated: Truncated) -> dict[int, list[float]]:
    """Like `group_rewards`, but as training uses them (`rollout.truncated`). With `drop`, without the rewards of episodes with a trajectory that
    was cut. A group of which no trajectory changes weights, because all were cut, has no rewards here: []."""
    rewards = group_rewards(trajectories)
    if truncated == "train":
        return rewards
    cut = [t.stop == "length" for t in trajectories]
    trains = {t.plan.group for t, was_cut in zip(trajectories, cut, strict=True) if not was_cut}
    if truncated == "drop":
        row_of, _ = episode_rows(trajectories)
        dropped = {row for row, was_cut in zip(row_of, cut, strict=True) if was_cut}
        left = [t for t, row in zip(trajectories, row_of, strict=True) if row not in dropped]
        return {group: group_rewards(left).get(group, []) for group in rewards}
    return {group: found if group in trains else [] for group, found in rewards.items()}


def flat_groups(groups: Mapping[int, Sequence[float]]) -> int:
    """The number of groups whose rewards are all equal up to rounding, or which have none: they carry no signal."""
    return sum(not rewards or max(rewards) - min(rewards) <= 1e-9 for rewards in groups.values())
