"""The collector of a policy gives the scored responses of a step; the one here samples while the learner waits."""

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from trainer.config.on_policy import Truncated
from trainer.contracts.plurals import with_noun
from trainer.rollouts import (
    Groups,
    PromptPlan,
    RewardScorer,
    Scored,
    Trajectory,
    flat_groups,
    greedy_samples,
    group_rewards,
    one_of_each,
    sample_and_score,
    sample_plans,
    score_trajectories,
    taught_rewards,
)

from ..prompts.planner import Planner
from ..session.stage import Progress, State, Tell
from .parts import Parts
from .replay import ReplayBuffer
from .reports import size_metrics
from .sampler_weights import SamplerWeights
from .scoring_watch import ScoringWatch
from .spread_groups import SpreadGroups, age_metrics


@dataclass(frozen=True)
class Collected:
    """The responses of one step, group by group. `rows` are the places that are trained on; some are repeated."""

    trajectories: list[Trajectory]
    elapsed_s: float | None
    """Seconds of sampling and scoring the responses; None if that happened before."""
    rows: list[int] | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    replayed: list[Trajectory] = field(default_factory=list)
    """Responses of earlier steps that are trained on again, in groups with their own numbers."""


class Collector(Protocol):
    """Owns the sampler's weights: it decides which version samples what, and what of it a checkpoint keeps."""

    def open(self, step: int) -> None:
        """Called before anything else; `step` is the last completed step."""
        ...

    def collect(self, step: int, tell: Tell) -> Collected:
        """The responses of `step`. Raises StopRequested if the run is told to stop; the caller then restores the planner's order."""
        ...

    def phase(self, step: int, name: str) -> str:
        """The name of phase `name` of step `step` in progress reports."""
        ...

    def comparable(self, step: int, trajectories: Sequence[Trajectory]) -> Sequence[Trajectory]:
        """The trajectories that were sampled by the very weights that `step` trains: sampler and trainer must agree on them."""
        ...

    def updated(self, step: int) -> None:
        """Note that `step` has changed the weights."""
        ...

    def newest_weights(self) -> AbstractContextManager[None]:
        """While the block runs, the sampler of this process has the weights that were trained last."""
        ...

    def state(self) -> State: ...

    def restore(self, step: int, state: State) -> None: ...

    def close(self) -> None: ...


MakeCollector = Callable[[Parts, Planner, RewardScorer], Collector]


def flat(trajectories: Sequence[Trajectory], truncated: Truncated) -> set[int]:
    """The groups whose rewards are all equal up to rounding, or missing: their advantages are 0. Responses that were cut count as they do in
    training (`rollout.truncated`)."""
    rewards = taught_rewards(trajectories, truncated)
    groups = {t.plan.group for t in trajectories}
    return {group for group in groups if flat_groups({group: rewards.get(group, [])})}


def _nothing_to_learn(trajectories: Sequence[Trajectory], rounds: int, truncated: Truncated) -> str:
    """The text for a step of dynamic sampling that found no group to train on."""
    rewards = [reward for group in group_rewards(trajectories).values() for reward in group]
    prompts = with_noun(len({t.plan.group for t in trajectories}), "prompts")
    tried = f"all {prompts}, of this step and of {with_noun(rounds, 'rounds')} of replacement,"
    worth = f"the mean reward is {sum(rewards) / len(rewards):.3g}" if rewards else "no response has a reward"
    cut = "" if truncated == "train" else " or responses that were cut, which rollout.truncated leaves out"
    return (
        f"dynamic sampling found nothing to learn from: {tried} have responses with equal rewards{cut}, and {worth}. The step "
        "changes no weights. If prompts are solved, use harder data; if they are never solved, use easier data, a hint or a scaffold"
    )


def tell_aimless(planner: Planner, tell: Tell) -> None:
    """Log that the budget cannot prefer any prompt, once for all steps in a row in which it lasts."""
    if why := planner.aimless():
        tell.log(why, "warning")


def responses_of(
    parts: Parts,
    scorer: RewardScorer,
    plans: Sequence[PromptPlan],
    where: str,
    sampling: Progress,
    scoring: ScoringWatch,
) -> Scored:
    """Samples and scores one response for each plan; `where` names the place in the run."""
    rollout = parts.rollout
    baselines = None
    if scorer.needs_greedy:
        baselines = {plan.group: result.text for plan, result in greedy_samples(parts.sampler, plans, rollout)}
    groups = Groups(plans, parts.tasks, scorer, where, baselines)
    return sample_and_score(parts.sampler, plans, rollout, groups, scorer, sampling, scoring)


class SyncCollector:
    """Plans, samples and scores. Weights go to the sampler every `runner.push_every` steps, or with `runner.one_step_off` one
    step late. In between the sampler has older weights.
    """

    def __init__(self, parts: Parts, planner: Planner, scorer: RewardScorer) -> None:
        self._parts, self._planner, self._scorer = parts, planner, scorer
        self._weights = SamplerWeights(parts, self._version_at)
        self._waited_s = 0.0  # seconds of this step that waited for rewards alone
        self._buffer = ReplayBuffer(parts.config)
        self._spread = SpreadGroups(parts.config, planner) if parts.config.runner.spread > 1 else None

    def open(self, step: int) -> None:
        self.updated(step)

    def collect(self, step: int, tell: Tell) -> Collected:
        started, self._waited_s = time.monotonic(), 0.0
        rollout = self._parts.config.rollout
        if self._spread:
            return self._whole(step, self._spread, started, tell)
        plans = self._planner.plan(step)
        tell_aimless(self._planner, tell)
        found = self._sampled(step, plans, tell)
        if rollout.replace_flat:
            return self._without_flat(step, found, started, tell)
        replayed = self._buffer.draw(step, rollout.prompts_per_step)
        self._buffer.sampled(found)
        metrics = {"perf/reward_wait_s": self._waited_s} | self._sizes(found)
        if self._parts.config.runner.replay:
            metrics["rollout/replayed"] = float(len(replayed))
        return Collected(found, time.monotonic() - started, None, metrics, replayed)

    def _whole(self, step: int, spread: SpreadGroups, started: float, tell: Tell) -> Collected:
        """The groups that this step completes; earlier steps have sampled some of their responses."""
        parts, asked = self._parts, spread.due(step)
        plans = [plan for _, _, plan in asked]
        results = sample_plans(parts.sampler, plans, parts.rollout, tell.watch("sampling", "rollout"))
        found, sampled_at = spread.sampled(step, asked, results), time.monotonic()
        baselines = None
        if self._scorer.needs_greedy:
            greedy = greedy_samples(parts.sampler, [t.plan for t in found], parts.rollout)
            baselines = {plan.group: result.text for plan, result in greedy}
        watch = ScoringWatch(tell, len(found))
        scored = score_trajectories(found, parts.tasks, self._scorer, f"train/{step}", watch, baselines)
        ended = time.monotonic()
        metrics = {
            "perf/reward_wait_s": ended - sampled_at,
            "perf/rollout_tokens_per_s": sum(len(each.tokens) for each in results) / (ended - started),
            "rollout/responses": float(len(asked)),
            "rollout/unfinished": float(spread.waiting),
        }
        return Collected(scored, ended - started, None, metrics | age_metrics(step, scored) | self._sizes(scored))

    def _without_flat(self, step: int, found: list[Trajectory], started: float, tell: Tell) -> Collected:
        """Dynamic sampling: groups that teach nothing are replaced by groups of the prompts that come next."""
        config, rollout = self._parts.config, self._parts.config.rollout
        groups, dull = {t.plan.group for t in found}, flat(found, rollout.truncated)
        for _ in range(rollout.replace_flat):
            missing = rollout.prompts_per_step - len(groups) + len(dull)
            if not missing:
                break
            lacking = config.batch_size - sum(t.plan.group not in dull for t in one_of_each(found))
            further = range(len(groups), len(groups) + missing)
            found += self._sampled(step, self._planner.plan(step, further, lacking), tell)
            groups, dull = {t.plan.group for t in found}, flat(found, rollout.truncated)
        rows = [place for place, t in enumerate(found) if t.plan.group not in dull]
        if not rows:
            tell.log(_nothing_to_learn(found, rollout.replace_flat, rollout.truncated), "warning")
        metrics = {
            "rollout/replaced_groups": float(len(dull) if rows else 0),
            "perf/reward_wait_s": self._waited_s,
        } | self._sizes(found)
        # If no group teaches anything, the step keeps them all: they change no weights.
        return Collected(found, time.monotonic() - started, rows or None, metrics)

    def _sizes(self, found: Sequence[Trajectory]) -> dict[str, float]:
        config = self._parts.config
        over = {"rollout/passed_over": float(self._planner.passed_over)} if config.pass_rates.pass_over else {}
        return over | (size_metrics(found) if config.rollout.budget else {})

    def _sampled(self, step: int, plans: Sequence[PromptPlan], tell: Tell) -> list[Trajectory]:
        watch = ScoringWatch(tell, len(plans))
        found = responses_of(
            self._parts, self._scorer, plans, f"train/{step}", tell.watch("sampling", "rollout"), watch
        )
        self._waited_s += found.waiting_s
        return found.trajectories

    def phase(self, step: int, name: str) -> str:
        return name

    def comparable(self, step: int, trajectories: Sequence[Trajectory]) -> Sequence[Trajectory]:
        # Weights of an older version give other probabilities, as they should.
        if self._weights.version != step - 1:
            return []
        if not self._spread:
            return trajectories
        return [t for t in trajectories if {version for version, _, _ in t.versions} == {step - 1}]

    def updated(self, step: int) -> None:
        self._weights.updated(step)
        self._buffer.updated(self._weights.version)
        if self._spread:
            self._spread.updated()

    def newest_weights(self) -> AbstractContextManager[None]:
        return self._weights.newest()

    def state(self) -> State:
        spread = self._spread.state_dict() if self._spread else {}
        return State(self._buffer.state_dict() | spread, self._weights.state().tensors)

    def restore(self, step: int, state: State) -> None:
        self._weights.restore(step, state)
        self._buffer.load_state_dict(state.values, self._weights.version)
        if self._spread:
            self._spread.load_state_dict(state.values)

    def close(self) -> None:
        """Nothing to end: the sampler belongs to the parts."""

    def _version_at(self, step: int) -> int:
        runner = self._parts.config.runner
        return max(0, step - 1) if runner.one_step_off else step // runner.push_every * runner.push_every
