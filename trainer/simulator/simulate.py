"""A run on a virtual clock: the scheduler of real runs, simulated engines, a simulated learner."""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from trainer.scheduling import (
    Drop,
    Event,
    Finished,
    GroupSource,
    LearnerReady,
    Paused,
    Sampled,
    SampleId,
    Scheduler,
    Start,
    Stop,
    Stretch,
    Train,
    Updated,
    WorkerJoined,
    WorkerLost,
)
from trainer.scheduling.rules import PolicyName

from .config import Simulation
from .draws import Draws
from .engine import SimulatedEngine


class Standstill(RuntimeError):
    """The learner waits and nothing continues: no engine is left, or every group was dropped."""


@dataclass
class ScheduleRecord:
    """The events of the simulated run, for the report."""

    steps: list[Train] = field(default_factory=list)
    taken_at: list[float] = field(default_factory=list)
    """The time at which each batch went to the learner."""
    done_at: list[float] = field(default_factory=list)
    """The time at which each step was finished and its weights pushed."""
    tokens: list[int] = field(default_factory=list)
    """Response tokens of each batch; a repeated response counts once."""
    drops: list[Drop] = field(default_factory=list)
    learner_s: float = 0.0
    busy_s: float = 0.0
    slot_s: float = 0.0
    engine_s: float = 0.0
    """Seconds that engines existed, summed over the engines."""
    crashes: int = 0
    versions: list[int] = field(default_factory=list)
    """The number of weight versions that each finished response contains."""


class SimulatedRun:
    """One policy from its first step to its last."""

    def __init__(self, config: Simulation, policy: PolicyName, draws: Draws) -> None:
        self._config, self._policy, self._draws = config, policy, draws
        self._rules = config.rules(policy)
        self._scheduler = Scheduler(self._rules, GroupSource(self._draws.domain, self._draws.size))
        self._engines: dict[str, SimulatedEngine] = {}
        self._born: dict[str, float] = {}
        self._stretches: dict[SampleId, tuple[int, tuple[Stretch, ...]]] = {}
        self._whole: dict[int, list[Finished]] = {}
        """The responses that have all their tokens, by group, until the others of the group have theirs."""
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._now = 0.0
        self.record = ScheduleRecord()

    def run(self) -> ScheduleRecord:
        """Run to the last step. Raises Standstill."""
        for number in range(self._config.engines(self._policy)):
            self._join(f"e{number}", 0)
        self._tell(LearnerReady())
        while len(self.record.done_at) < self._config.steps:
            if not self._agenda:
                raise Standstill(f"{self._policy}: nothing happens after {self._now:.0f} s, and the learner waits")
            self._now, _, happen = heapq.heappop(self._agenda)
            happen()
        for name in list(self._engines):
            self._retire(name)
        return self.record

    def _tell(self, event: Event) -> None:
        for decision in self._scheduler.handle(event, self._now):
            match decision:
                case Start():
                    engine = self._engines[decision.worker]
                    engine.start(decision, self._draws.tokens(decision.sample), self._now)
                    self._expect(engine)
                case Stop():
                    self._stop(decision)
                case Train():
                    self._train(decision)
                case Drop():
                    self.record.drops.append(decision)

    # Engines

    def _join(self, name: str, lives: int) -> None:
        engine = SimulatedEngine(name, self._config.engine, self._now, self._scheduler.version, self._rules.pinned)
        self._engines[name], self._born[name] = engine, self._now
        life = self._draws.life_s(name)
        if life < math.inf:
            self._at(self._now + life, lambda: self._crash(name, lives))
        places = self._rules.places(self._config.engine.slots, self._config.engines(self._policy))
        self._tell(WorkerJoined(name, places))

    def _crash(self, name: str, lives: int) -> None:
        self._retire(name)
        self.record.crashes += 1
        again = f"{name.partition('.')[0]}.{lives + 1}"
        self._at(self._now + self._config.engine.restart_s, lambda: self._join(again, lives + 1))
        self._tell(WorkerLost(name, "crashed"))

    def _retire(self, name: str) -> None:
        engine = self._engines.pop(name)
        engine.advance(self._now)
        self.record.busy_s += engine.busy_s
        self.record.slot_s += engine.slot_s
        self.record.engine_s += self._now - self._born.pop(name)

    def _expect(self, engine: SimulatedEngine) -> None:
        """Put the next end of a response on the agenda. The entry is void if the engine's stamp has changed by then."""
        when, stamp = engine.next_end(), engine.stamp
        if when is not None:
            self._at(when, lambda: self._end(engine, stamp))

    def _end(self, engine: SimulatedEngine, stamp: int) -> None:
        if engine.stamp != stamp or engine.name not in self._engines:
            return
        start = engine.ended(self._now)
        stretches = engine.stretches(start, self._draws.tokens(start.sample), self._rules.pinned)
        if transit_s := self._config.engine.transit_s:
            self._at(self._now + transit_s, lambda: self._deliver(start, stretches))
        else:
            self._deliver(start, stretches)
        self._expect(engine)

    def _deliver(self, start: Start, stretches: tuple[Stretch, ...]) -> None:
        if not self._scheduler.awaits(
            start.sample, start.attempt
        ):  # the response was given up while its result was on the way
            return
        self.record.versions.append(len({stretch.version for stretch in stretches}))
        group = start.sample.group
        self._whole.setdefault(group, []).append(Finished(start.sample, start.attempt, stretches))
        self._tell(Sampled(start.sample, start.attempt))
        if self._scheduler.sampled(group):
            self._score(self._whole.pop(group))

    def _score(self, finished: list[Finished]) -> None:
        """A group gets its rewards together, some time after its last token."""
        rewarded = self._now + self._draws.latency_s(finished[0].sample.group)
        for each in finished:
            self._at(rewarded, partial(self._tell, each))

    def _stop(self, stop: Stop) -> None:
        engine = self._engines[stop.worker]
        stopped = engine.stop(stop.sample, self._now)
        if stopped is not None and stop.keep:
            paused = Paused(stop.sample, stop.attempt, engine.stretches(*stopped, self._rules.pinned))
            self._at(self._now, lambda: self._tell(paused))
        self._expect(engine)

    # Learner

    def _train(self, train: Train) -> None:
        samples = [SampleId(group.number, place) for group in train.groups for place in group.rows[: group.valid]]
        tokens = sum(self._draws.tokens(sample) for sample in samples)
        learner = self._config.learner
        duration = learner.step_s + tokens * learner.token_s / self._config.learner_devices(self._policy)
        self.record.steps.append(train)
        self.record.taken_at.append(self._now)
        self.record.tokens.append(tokens)
        self._at(self._now + duration, lambda: self._updated(train.step, duration))

    def _updated(self, step: int, duration: float) -> None:
        self.record.learner_s += duration
        every = self._config.schedule.push_every
        version = step // every * every
        pause = self._config.learner.push_s if version != self._scheduler.version else 0.0
        turns = self._policy in ("sync", "april")  # a schedule that takes turns samples after the whole step
        pause += self._config.learner.rest_s if turns else 0.0
        self._at(
            self._now + pause, lambda: self._next_step(step, version, 0.0 if turns else self._config.learner.rest_s)
        )

    def _next_step(self, step: int, version: int, rest_s: float) -> None:
        if version != self._scheduler.version and not self._rules.pinned:
            for engine in self._engines.values():
                engine.push(version, self._now)
                self._expect(engine)
        self.record.done_at.append(self._now)
        self._tell(Updated(step, version))
        self._at(self._now + rest_s, lambda: self._tell(LearnerReady()))

    def _at(self, when: float, happen: Callable[[], None]) -> None:
        self._count += 1  # events of the same moment happen in the order in which they were made
        heapq.heappush(self._agenda, (when, self._count, happen))


def simulate(config: Simulation, policy: PolicyName, draws: Draws) -> ScheduleRecord:
    """Run all steps of one policy. Raises Standstill if the run stops before its last step."""
    return SimulatedRun(config, policy, draws).run()
