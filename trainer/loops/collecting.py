"""Where the scored responses of a step come from. A policy holds a collector; this one samples while the learner waits."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from torch import Tensor

from trainer.rollouts import (
    PromptPlan,
    RewardScorer,
    Trajectory,
    flat_groups,
    greedy_samples,
    group_rewards,
    sample_plans,
    score_samples,
)

from .parts import Parts
from .planner import Planner
from .pushing import Pusher
from .scoring import ScoringWatch
from .stage import State, Tell

SAVED = "weights-"
"""In a checkpoint, before the version whose weights sample although they are no longer the newest."""


@dataclass(frozen=True)
class Collected:
    """The responses of one step, group by group. `rows`: the places that are trained on, some of them repeated."""

    trajectories: list[Trajectory]
    elapsed_s: float
    rows: list[int] | None = None
    metrics: dict[str, float] = field(default_factory=dict)


class Collector(Protocol):
    """Owns the sampler's weights: which version samples what, and what of it a checkpoint must keep."""

    def open(self, step: int) -> None:
        """Before anything else; `step` is the last completed one."""
        ...

    def collect(self, step: int, tell: Tell) -> Collected:
        """Raises StopRequested where the run shall stop; the planner's order is then put back by the caller."""
        ...

    def comparable(self, step: int, trajectories: Sequence[Trajectory]) -> Sequence[Trajectory]:
        """Those sampled by the very weights that step `step` trains: for them sampler and trainer must agree."""
        ...

    def updated(self, step: int) -> None:
        """Step `step` has changed the weights."""
        ...

    def newest_weights(self) -> AbstractContextManager[None]:
        """Meanwhile the sampler of this process has the weights that were trained last."""
        ...

    def state(self) -> State: ...

    def restore(self, step: int, state: State) -> None: ...

    def close(self) -> None: ...


MakeCollector = Callable[[Parts, Planner, RewardScorer], Collector]


def flat(trajectories: Sequence[Trajectory]) -> set[int]:
    """The groups whose rewards are all equal up to rounding, or missing: their advantages are 0."""
    rewards = group_rewards(trajectories)
    groups = {t.plan.group for t in trajectories}
    return {group for group in groups if group not in rewards or flat_groups({group: rewards[group]})}


class SyncCollector:
    """Plan, sample, score. Weights go to the sampler every `runner.push_every` steps.

    In between the sampler lags: it has the weights of `version`, whose trained parameters are then kept in `_lagging`,
    for evaluations borrow the sampler.
    """

    def __init__(self, parts: Parts, planner: Planner, scorer: RewardScorer) -> None:
        self._parts, self._planner, self._scorer = parts, planner, scorer
        self._pusher = Pusher(parts.config, parts.learner, parts.sampler)
        self._step = 0
        self._lagging: dict[str, Tensor] | None = None
        self._pushed = False

    def open(self, step: int) -> None:
        self.updated(step)

    def collect(self, step: int, tell: Tell) -> Collected:
        started = time.monotonic()
        rollout = self._parts.config.rollout
        found = self._sampled(step, self._planner.plan(step), tell)
        if not rollout.replace_flat:
            return Collected(found, time.monotonic() - started)
        for _ in range(rollout.replace_flat):
            groups = {t.plan.group for t in found}
            missing = rollout.prompts_per_step - len(groups) + len(flat(found))
            if not missing:
                break
            found += self._sampled(step, self._planner.plan(step, range(len(groups), len(groups) + missing)), tell)
        dull = flat(found)
        rows = [place for place, t in enumerate(found) if t.plan.group not in dull]
        metrics = {"rollout/replaced_groups": float(len(dull) if rows else 0)}
        # Where no group teaches anything, the step keeps them all: they change no weights.
        return Collected(found, time.monotonic() - started, rows or None, metrics)

    def _sampled(self, step: int, plans: Sequence[PromptPlan], tell: Tell) -> list[Trajectory]:
        parts, rollout = self._parts, self._parts.config.rollout
        results = sample_plans(parts.sampler, plans, rollout, tell.watch("sampling"))
        baselines = None
        if self._scorer.needs_greedy:
            baselines = {plan.group: result.text for plan, result in greedy_samples(parts.sampler, plans, rollout)}
        watch = ScoringWatch(tell, len(plans))
        return score_samples(plans, results, parts.tasks, self._scorer, f"train/{step}", watch, baselines)

    def comparable(self, step: int, trajectories: Sequence[Trajectory]) -> Sequence[Trajectory]:
        # Weights that lag behind would differ, and rightly so.
        return trajectories if self._version == step - 1 else []

    def updated(self, step: int) -> None:
        """If it is the turn of these; a resumed run gives the sampler the older ones that it had."""
        self._step = step
        config, learner = self._parts.config, self._parts.learner
        if self._version == step:
            if config.runner.reset_optimizer:
                learner.forget_moments()
            self._lagging = learner.policy() if config.runner.push_every > 1 else None
            self._pusher.push(step)
        elif not self._pushed:
            with learner.holding(self._lagging or learner.policy()):
                self._pusher.push(self._version)
        self._pushed = True

    @contextmanager
    def newest_weights(self) -> Iterator[None]:
        lagging = self._lagging if self._version != self._step else None
        if lagging is not None:
            self._pusher.push(self._step)
        try:
            yield
        finally:
            if lagging is not None:
                with self._parts.learner.holding(lagging):
                    self._pusher.push(self._version)

    def state(self) -> State:
        older = self._lagging is not None and self._version != self._step
        return State(tensors={f"{SAVED}{self._version}": self._lagging} if older and self._lagging else {})

    def restore(self, step: int, state: State) -> None:
        self._step = step
        self._lagging = state.tensors.get(f"{SAVED}{self._version}")

    def close(self) -> None:
        """Nothing to end: the sampler is the parts'."""

    @property
    def _version(self) -> int:
        """The step after which the newest weights that sample were pushed."""
        every = self._parts.config.runner.push_every
        return self._step // every * every
