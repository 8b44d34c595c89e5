"""Responses from workers that sample and score while the learner trains."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from torch import Tensor

from trainer.loops.learner.weight_push import WeightPusher
from trainer.loops.policy.collecting import Collected, tell_aimless
from trainer.loops.policy.parts import Parts
from trainer.loops.policy.reports import size_metrics
from trainer.loops.policy.sampler_weights import SAVED
from trainer.loops.prompts.planner import Planner
from trainer.loops.session.errors import RunFailed
from trainer.loops.session.stage import State, Tell
from trainer.loops.session.timeline import BesideLog
from trainer.rewards.journal import Journal
from trainer.rollouts import RewardScorer, Trajectory
from trainer.scheduling import GroupSource

from .conductor import Conductor, TrainingBatch
from .fleet import Fleet
from .responses import OpenResponses
from .timings import TIMINGS, Timings

Say = Callable[[str, int, Literal["info", "warning"]], None]
"""Writes a line of the log at a step."""


class AsyncCollector:
    """Takes the responses of a step from the conductor.

    With `urb` and pinned weights the responses of every step follow from the seed alone: admission fixes which weights sample a prompt,
    and what is sampled beside a response does not change it. So the metrics show neither the speed nor the crashes of
    workers, nor a kill of the whole run.
    """

    def __init__(self, parts: Parts, planner: Planner, scorer: RewardScorer, fleet: Fleet, say: Say) -> None:
        config, tokenizer = parts.config, parts.tokenizer
        self._parts, self._planner, self._config, self._say = parts, planner, config, say
        self._pusher = WeightPusher(config, parts.learner, parts.sampler)

        def decode(tokens: Sequence[int]) -> str:
            return str(tokenizer.decode(list(tokens), skip_special_tokens=True))

        responses = OpenResponses(config.rollout, config.runner.segment_tokens, planner.plans_of, decode)
        self._check_quotas()
        journal = scorer.journal if isinstance(scorer.journal, Journal) else None
        source = GroupSource(planner.domain_of, planner.size_of)
        self._beside = BesideLog()
        self._conductor = Conductor(config, fleet, responses, parts.tasks, self._log, source, journal, self._beside.ran)
        self._timings = Timings(parts.run_dir / TIMINGS, lambda message: self._log(message, "warning"))
        self._history: dict[int, Mapping[str, Tensor]] = {}
        """The trained parameters of the versions with which a response may still have to be sampled."""
        self._step = 0
        self._told = -1
        self._asked_at = 0.0

    @property
    def generated(self) -> int:
        """Tokens that workers have reported."""
        return self._conductor.generated

    def open(self, step: int) -> None:
        self._step = step
        learner = self._parts.learner
        if self._version == step:
            self._history[step] = learner.policy()
        weights = {}
        for known, policy in self._history.items():
            with learner.holding(dict(policy)):
                weights[known] = self._copied_weights()
        self._told, self._asked_at = step, time.monotonic()
        self._conductor.start(weights)
        self._timings.begin(self._config)
        runner = self._config.runner
        self._log(f"{runner.workers} workers sample and {runner.reward_workers} score, by schedule {runner.policy!r}")
        self._pusher.push(step)  # to the sampler of evaluations in this process

    def collect(self, step: int, tell: Tell) -> Collected:
        note = tell.watch("sampling", "rollout")
        tell.beside(self._beside.taken)
        asked = time.monotonic()
        waited = _Waited(tell)

        def check() -> None:
            note(0, self._config.batch_size)
            waited.look(self._conductor.waits)

        batch = self._conductor.batch(check)
        waited.look("")
        now = time.monotonic()
        elapsed, self._asked_at = now - self._asked_at, now
        self._timings.step(step, [trajectory.length for trajectory in batch.trajectories], batch.timings)
        tell_aimless(self._planner, tell)
        metrics = async_metrics(batch) | {"perf/wait_s": now - asked, "perf/reward_wait_s": batch.reward_wait_s}
        if self._config.rollout.budget:
            metrics |= size_metrics(batch.trajectories)
        return Collected(batch.trajectories, elapsed, batch.rows, metrics)

    def phase(self, step: int, name: str) -> str:
        return name

    def comparable(self, step: int, trajectories: Sequence[Trajectory]) -> Sequence[Trajectory]:
        return [t for t in trajectories if {version for version, _, _ in t.versions} == {step - 1}]

    def updated(self, step: int) -> None:
        self._step = step
        self._pusher.push(step)  # to the sampler of evaluations in this process
        if self._told == step:
            return
        self._told = step
        weights = None
        if self._version == step:
            if self._config.runner.reset_optimizer:
                self._parts.learner.forget_moments()
            self._history[step], weights = self._parts.learner.policy(), self._copied_weights()
        needed = self._conductor.updated(step, self._version, weights)
        self._history = {version: policy for version, policy in self._history.items() if version >= needed}

    @contextmanager
    def newest_weights(self) -> Iterator[None]:
        """Nothing to do: the sampler of this process samples only for evaluations, and always has the newest weights."""
        yield

    def state(self) -> State:
        older = {f"{SAVED}{version}": policy for version, policy in self._history.items() if version != self._step}
        return State({"runner": self._conductor.state_dict()}, {name: dict(policy) for name, policy in older.items()})

    def restore(self, step: int, state: State) -> None:
        self._step = step
        runner = state.values.get("runner")
        if runner is None:
            raise ValueError("the checkpoint was written with runner.kind 'sync'; resume the run with that setting")
        self._conductor.load_state_dict(runner)
        owners = {name: tensors for name, tensors in state.tensors.items() if name.startswith(SAVED)}
        self._history = {int(name.removeprefix(SAVED)): dict(tensors) for name, tensors in owners.items()}

    def close(self) -> None:
        self._conductor.close()

    def _check_quotas(self) -> None:
        """Raises RunFailed for a domain that the data lacks; logs how many prompts have no quota."""
        wanted = {quota.domain for quota in self._config.runner.quotas}
        found = Counter(prompt.example.domain for prompt in self._parts.prompts.train)
        if absent := sorted(wanted - found.keys()):
            known = ", ".join(map(repr, sorted(found)))
            raise RunFailed(f"runner.quotas: no training prompt is of domain {absent[0]!r}; there are {known}")
        left = sum(count for domain, count in found.items() if wanted and domain not in wanted)
        if left:
            self._say(f"{left} training prompts are of domains without a quota and are not used", 0, "warning")

    def _copied_weights(self) -> dict[str, Tensor]:
        """Copies of the weights: the learner keeps changing its own while workers fetch these."""
        return {name: tensor.clone() for name, tensor in self._pusher.weights()}

    def _log(self, message: str, level: Literal["info", "warning"] = "info") -> None:
        self._say(message, self._step, level)

    @property
    def _version(self) -> int:
        """The step after which the newest weights that sample were pushed."""
        every = self._config.runner.push_every
        return self._step // every * every


class _Waited:
    """Reports that the run is paused while rewards cannot be had, and that it continues."""

    def __init__(self, tell: Tell) -> None:
        self._tell, self._paused = tell, False

    def look(self, reason: str) -> None:
        if reason and not self._paused:
            self._tell.paused(reason)
        elif self._paused and not reason:
            self._tell.resumed()
        self._paused = bool(reason)


def async_metrics(batch: TrainingBatch) -> dict[str, float]:
    """Metrics of the age of the trained responses, in steps, and of the cost of the schedule; undefined values are left out."""
    values = {"async/dropped": float(batch.dropped), "async/dropped_groups": float(batch.dropped_groups)}
    values["perf/queue"] = float(batch.queue)
    if batch.staleness:
        values["async/staleness"] = sum(batch.staleness) / len(batch.staleness)
        values["async/staleness_max"] = float(max(batch.staleness))
    if batch.utilisation is not None:
        values["async/utilisation"] = batch.utilisation
    return values
