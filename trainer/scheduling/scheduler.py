"""The schedule of a run: events in, decisions out."""

import heapq
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.contracts.plurals import with_noun

from .groups import UNFINISHED, Group, Sample, padded
from .policies import POLICIES
from .records import (
    Decision,
    Drop,
    Event,
    Finished,
    GroupTaken,
    Heartbeat,
    LearnerReady,
    Paused,
    Replace,
    Sampled,
    SampleId,
    Start,
    Stop,
    Tick,
    Train,
    Updated,
    WorkerJoined,
    WorkerLost,
)
from .rules import Rules, too_old
from .source import GroupSource


@dataclass(slots=True)
class _Worker:
    slots: int
    seen: float
    running: set[SampleId]

    @property
    def free(self) -> int:
        return self.slots - len(self.running)


class Scheduler:
    """Trains on every admitted group once, or drops it with a reason, even if workers fail: `admitted == trained +
    dropped + len(groups)` after every event.
    """

    def __init__(self, rules: Rules, source: GroupSource) -> None:
        self._rules, self._source, self._policy = rules, source, POLICIES[rules.policy](rules)
        self.step = self.version = self.taken = 0
        self.admitted = self.trained = self.dropped = 0
        self._groups: dict[int, Group] = {}
        self._complete: dict[int, Group] = {}
        self.by_domain: Counter[str] = Counter()
        self._at_learner: tuple[Group, ...] = ()
        self._waiting: list[SampleId] = []
        self._workers: dict[str, _Worker] = {}
        self._roomy: list[tuple[int, str]] = []
        self._learner_waits = self._holding = False
        self._ticked = math.inf
        self._out: list[Decision] = []

    @property
    def groups(self) -> Mapping[int, Group]:
        """The outstanding groups, by number."""
        return self._groups

    @property
    def complete(self) -> Mapping[int, Group]:
        """The groups that could be trained on, in the order in which they were finished."""
        return self._complete

    @property
    def at_learner(self) -> Sequence[Group]:
        return self._at_learner

    @property
    def over(self) -> bool:
        """Whether the batch of the run's last step has gone to the learner: nothing that is sampled or scored is of use any more."""
        return self._rules.batches_left(self.taken) <= 0

    def handle(self, event: Event, now: float) -> list[Decision]:
        """The decisions that follow from `event`; `now` in seconds of any clock that does not run backwards."""
        self._out = []
        _HANDLERS[type(event)](self, event, now)
        self._admit()
        self._train()
        self._start()
        return self._out

    def oldest_needed(self) -> int:
        """The oldest weights with which a response may still have to be sampled; older ones can be deleted."""
        if not self._rules.pinned:
            return self.version
        open_ = (s.version for g in self._groups.values() if g.open for s in g.samples if s.state in UNFINISHED)
        return min((version for version in open_ if version is not None), default=self.version)

    def awaits(self, sample_id: SampleId, attempt: int) -> bool:
        """Whether the scheduler still takes a result of this attempt."""
        group = self._groups.get(sample_id.group)
        sample = group.samples[sample_id.place] if group else None
        return sample is not None and sample.state in ("running", "scoring") and sample.attempt == attempt

    def sampled(self, group: int) -> bool:
        """Whether no response of the group is being sampled or waits for sampling."""
        found = self._groups.get(group)
        return found is None or all(sample.state not in ("waiting", "running") for sample in found.samples)

    def state_dict(self) -> dict[str, Any]:
        """The state as JSON, without the workers: those of the resumed run join again."""
        return {
            "step": self.step,
            "version": self.version,
            "counts": [self.admitted, self.trained, self.dropped],
            "source": self._source.state_dict(),
            "groups": [group.state_dict() for group in self._groups.values()],
            "complete": list(self._complete),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state after the last `Updated`: the learner does not wait, and nothing is being sampled."""
        self.step, self.version, self.taken = state["step"], state["version"], state["step"]
        self.admitted, self.trained, self.dropped = state["counts"]
        self._source.load_state_dict(state["source"])
        self._groups = {row["number"]: Group.of(row) for row in state["groups"]}
        self._complete = {number: self._groups[number] for number in state["complete"]}
        self.by_domain = Counter(group.domain for group in self._groups.values())
        self._waiting = [
            SampleId(group.number, index)
            for group in self._groups.values()
            for index, sample in enumerate(group.samples)
            if sample.state == "waiting"
        ]
        heapq.heapify(self._waiting)
        self._learner_waits = self._holding = False
        self._at_learner = ()

    # Events

    def _joined(self, event: WorkerJoined, now: float) -> None:
        if event.worker in self._workers:
            raise ValueError(f"worker {event.worker!r} is there already")
        # A group whose responses start together must fit into one worker.
        slots = max(event.slots, self._rules.largest if self._rules.whole_groups else 1)
        self._workers[event.worker] = _Worker(slots, now, set())
        self._offer(event.worker)

    def _lost(self, event: WorkerLost, now: float) -> None:
        worker = self._workers.pop(event.worker, None)
        for sample_id in sorted(worker.running) if worker else ():
            sample = self._sample(sample_id)
            sample.losses += 1
            if sample.losses > self._rules.retries:
                reason = f"its worker was lost {sample.losses} times, the last time: {event.reason}"
                self._exclude(sample_id, sample, reason)
            else:
                self._wait_again(sample_id, sample)

    def _heard(self, event: Heartbeat, now: float) -> None:
        if event.worker in self._workers:
            self._workers[event.worker].seen = now

    def _sampled(self, event: Sampled, now: float) -> None:
        sample = self._current(event, now)
        if sample is not None:
            self._release(event.sample, sample)
            sample.state, sample.worker = "scoring", ""

    def _finished(self, event: Finished, now: float) -> None:
        sample = self._current(event, now)
        if sample is None:
            return
        self._release(event.sample, sample)
        if event.problem:
            self._exclude(event.sample, sample, event.problem)
            return
        sample.state, sample.stretches = "done", event.stretches
        self._close_one(self._groups[event.sample.group])

    def _paused(self, event: Paused, now: float) -> None:
        sample = self._current(event, now)
        if sample is not None:
            self._release(event.sample, sample)
            sample.stretches = event.stretches
            self._wait_again(event.sample, sample)

    def _ready(self, event: LearnerReady, now: float) -> None:
        self._learner_waits = True

    def _updated(self, event: Updated, now: float) -> None:
        pushed = event.version != self.version
        self.step, self.version, self._holding = event.step, event.version, False
        self.by_domain.subtract(group.domain for group in self._at_learner)
        self._at_learner = ()
        if pushed and self._rules.clear_on_push:
            self._begin_again()
        self._expire()

    def _tick(self, event: Tick, now: float) -> None:
        limit = self._rules.heartbeat_s
        asleep, self._ticked = now - self._ticked, now
        if asleep > limit / 2:
            # The scheduler itself was away: a suspended machine must not lose all its workers.
            for worker in self._workers.values():
                worker.seen += asleep
        for name in [name for name, worker in self._workers.items() if now - worker.seen > limit]:
            worker = self._workers[name]
            doing = f"while sampling {len(worker.running)} responses" if worker.running else "while idle"
            if worker.running:
                doing += f", the first of group {min(worker.running).group}"
            reason = f"no sign of life for {now - worker.seen:.0f} s (allowed: {limit:g} s) {doing}"
            self._lost(WorkerLost(name, reason), now)
            self._out.append(Replace(name, reason))

    # Decisions

    def _admit(self) -> None:
        if self._holding:
            return
        for domain in self._policy.wanted(self):
            number, found, size = self._source.take(domain)
            size = self._rules.group_size if size is None else size
            if not 1 <= size <= self._rules.largest:
                raise ValueError(f"group {number} has {size} responses; a group has 1 to {self._rules.largest}")
            samples = [Sample(version=self._version_at_admission) for _ in range(size)]
            self._groups[number] = Group(number, found, samples, size)
            self.by_domain[found] += 1
            self.admitted += 1
            for index in range(size):
                heapq.heappush(self._waiting, SampleId(number, index))

    def _train(self) -> None:
        batch = self._policy.batch(self) if self._learner_waits else None
        if batch is None:
            return
        self._learner_waits, self._holding, self.taken = False, self._policy.barrier, self.step + 1
        self._out.append(Train(self.step + 1, tuple(self._taken(group) for group in batch)))
        for group in batch:
            del self._groups[group.number], self._complete[group.number]
        self._at_learner = tuple(batch)
        self.trained += len(batch)
        if self._holding or self.over:
            for name, worker in self._workers.items():
                for sample in sorted(worker.running):
                    self._out.append(Stop(name, sample, self._sample(sample).attempt, keep=True))

    def _taken(self, group: Group) -> GroupTaken:
        valid = group.valid()
        oldest = [group.samples[index].oldest for index in valid]
        staleness = tuple(self.step - version for version in oldest if version is not None)
        rows = padded(valid, group.size)
        return GroupTaken(group.number, group.domain, rows, len(valid), staleness)

    def _start(self) -> None:
        while self._waiting and not self._holding and not self.over:
            first = self._waiting[0]
            if not self._policy.usable(first.group):
                return  # the groups behind it have higher numbers and are not usable either
            if not self._waits(first):
                heapq.heappop(self._waiting)
                continue
            size = self._gang(first.group) if self._rules.whole_groups else 1
            name = self._roomiest(size)
            if name is None:
                return
            while size:
                sample_id = heapq.heappop(self._waiting)
                if self._waits(sample_id):
                    self._start_one(name, sample_id)
                    size -= 1
            self._offer(name)

    def _start_one(self, name: str, sample_id: SampleId) -> None:
        sample = self._sample(sample_id)
        if sample.version is None or not self._rules.pinned:
            sample.version = self.version
        self._groups[sample_id.group].begin(sample)
        sample.state, sample.worker = "running", name
        sample.attempt += 1
        self._workers[name].running.add(sample_id)
        self._out.append(Start(name, sample_id, sample.attempt, sample.version, sample.stretches))

    def _expire(self) -> None:
        """Exclude responses that have become too old to be trained on."""
        tau = self._rules.max_staleness
        for group in list(self._groups.values()):
            for index, sample in enumerate(group.samples):
                oldest = sample.oldest
                if sample.state != "excluded" and oldest is not None and too_old(oldest, self.step, tau):
                    reason = f"{self.step - oldest} steps old, {tau} are allowed"
                    self._exclude(SampleId(group.number, index), sample, reason)

    def _begin_again(self) -> None:
        for group in self._groups.values():
            group.begun = None
            for index, sample in enumerate(group.samples):
                if sample.state != "excluded":
                    self._stop(SampleId(group.number, index), sample)
                    group.open += sample.state == "done"
                    sample.stretches, sample.version = (), self._version_at_admission
                    self._wait_again(SampleId(group.number, index), sample)
        self._complete.clear()

    # Samples and groups

    @property
    def _version_at_admission(self) -> int | None:
        return self.version if self._rules.pinned and self._policy.at_admission else None

    def _sample(self, sample_id: SampleId) -> Sample:
        return self._groups[sample_id.group].samples[sample_id.place]

    def _waits(self, sample_id: SampleId) -> bool:
        group = self._groups.get(sample_id.group)
        return group is not None and group.samples[sample_id.place].state == "waiting"

    def _gang(self, number: int) -> int:
        return sum(sample.state == "waiting" for sample in self._groups[number].samples)

    def _current(self, event: Sampled | Finished | Paused, now: float) -> Sample | None:
        """The response of an event; None if its result is no longer awaited from this attempt."""
        if not self.awaits(event.sample, event.attempt):
            return None
        sample = self._sample(event.sample)
        if sample.worker:
            self._workers[sample.worker].seen = now
        return sample

    def _release(self, sample_id: SampleId, sample: Sample) -> None:
        worker = self._workers.get(sample.worker)
        if worker is not None and sample_id in worker.running:
            worker.running.remove(sample_id)
            self._offer(sample.worker)

    def _stop(self, sample_id: SampleId, sample: Sample) -> None:
        worker = self._workers.get(sample.worker)
        if sample.state == "running" and worker is not None and sample_id in worker.running:
            self._out.append(Stop(sample.worker, sample_id, sample.attempt, keep=False))
            self._release(sample_id, sample)

    def _wait_again(self, sample_id: SampleId, sample: Sample) -> None:
        sample.state, sample.worker = "waiting", ""
        heapq.heappush(self._waiting, sample_id)

    def _exclude(self, sample_id: SampleId, sample: Sample, reason: str) -> None:
        group = self._groups.get(sample_id.group)
        if group is None:  # the whole group has been dropped
            return
        self._stop(sample_id, sample)
        was_open, sample.state = sample.state in UNFINISHED, "excluded"
        self._out.append(Drop(sample_id.group, sample_id.place, reason))
        if was_open:
            self._close_one(group)
        elif group.number in self._complete and not padded(group.valid(), group.size):
            self._drop(group)

    def _close_one(self, group: Group) -> None:
        group.open -= 1
        if group.open:
            return
        if padded(group.valid(), group.size):
            self._complete[group.number] = group
        else:
            self._drop(group)

    def _drop(self, group: Group) -> None:
        valid = len(group.valid())
        self._out.append(Drop(group.number, None, f"{valid} of {with_noun(group.size, 'responses')} valid"))
        del self._groups[group.number]
        self._complete.pop(group.number, None)
        self.by_domain[group.domain] -= 1
        self.dropped += 1

    # Workers

    def _offer(self, name: str) -> None:
        """Note how much room a worker has. If an older note gives another number, it is ignored."""
        free = self._workers[name].free
        if free > 0:
            heapq.heappush(self._roomy, (-free, name))

    def _roomiest(self, wanted: int) -> str | None:
        """A worker with the most room; None if that is not enough for `wanted` responses."""
        while self._roomy:
            free, name = self._roomy[0]
            worker = self._workers.get(name)
            if worker is not None and worker.free == -free:
                return name if worker.free >= wanted else None
            heapq.heappop(self._roomy)
        return None


_HANDLERS: dict[type, Callable[[Scheduler, Any, float], None]] = {
    WorkerJoined: Scheduler._joined,
    WorkerLost: Scheduler._lost,
    Heartbeat: Scheduler._heard,
    Sampled: Scheduler._sampled,
    Finished: Scheduler._finished,
    Paused: Scheduler._paused,
    LearnerReady: Scheduler._ready,
    Updated: Scheduler._updated,
    Tick: Scheduler._tick,
}
