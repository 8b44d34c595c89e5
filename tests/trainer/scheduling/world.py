"""A simulation of workers that finish, crash, pause and come back, in an order that only a seed decides. It has no clock."""

import json
import random
from collections.abc import Callable

from trainer.scheduling import (
    Decision,
    Drop,
    Event,
    Finished,
    GroupSource,
    LearnerReady,
    Paused,
    Rules,
    Sampled,
    Scheduler,
    Start,
    Stop,
    Stretch,
    Train,
    Updated,
    WorkerJoined,
    WorkerLost,
)


class World:
    def __init__(
        self,
        rules: Rules,
        seed: int,
        crashes: float = 0.0,
        failures: float = 0.0,
        domain_of: Callable[[int], str] = lambda number: "",
        long: Callable[[int], bool] = lambda number: False,
        push_every: int = 1,
        size_of: Callable[[int], int | None] = lambda number: None,
    ) -> None:
        self.rules, self.random = rules, random.Random(seed)  # noqa: S311 - chance, not secrecy
        self.crashes, self.failures, self.domain_of, self.long = crashes, failures, domain_of, long
        self.push_every = push_every
        self.size_of = size_of
        self.scheduler = Scheduler(rules, GroupSource(domain_of, size_of))
        self.running: dict[tuple[str, tuple[int, int]], Start] = {}
        self.stopping: set[tuple[str, tuple[int, int]]] = set()
        self.trained: list[Train] = []
        self.dropped: list[Drop] = []
        self.starts: list[Start] = []
        self.workers = 0
        self.now = 0.0

    def run(self, steps: int, resumes: int = 0, workers: int = 3, slots: int = 5) -> None:
        """`resumes`: how often the process is killed after a step and continues from the state that was saved there."""
        breaks = set(self.random.sample(range(1, steps), resumes)) if resumes else set()
        for _ in range(workers):
            self._join(slots)
        self.tell(LearnerReady())
        for _ in range(200_000):
            train = self._pending
            if train is not None:
                self._update(train)
                if len(self.trained) == steps:
                    return
                if len(self.trained) in breaks:
                    breaks.remove(len(self.trained))
                    self._killed_and_resumed(workers, slots)
                self.tell(LearnerReady())
            else:
                self._something_happens(slots)
        raise AssertionError("the schedule came to a standstill")

    def extend(self, rules: Rules) -> None:
        """The process ends after its last step. A process with these rules continues from the saved state."""
        state = json.loads(json.dumps(self.scheduler.state_dict()))
        self.rules, self.scheduler = rules, Scheduler(rules, GroupSource(self.domain_of, self.size_of))
        self.scheduler.load_state_dict(state)
        self.running.clear()

    def tell(self, event: Event) -> None:
        self.now += 1.0
        for decision in self.scheduler.handle(event, self.now):
            self._obey(decision)
        s = self.scheduler
        assert s.admitted == s.trained + s.dropped + len(s.groups)

    @property
    def _pending(self) -> Train | None:
        return self.trained[-1] if self.trained and self.trained[-1].step > self.scheduler.step else None

    def _obey(self, decision: Decision) -> None:
        match decision:
            case Start():
                key = (decision.worker, decision.sample)
                assert key not in self.running and not any(s == decision.sample for _, s in self.running)
                self.running[key] = decision
                self.starts.append(decision)
            case Stop():
                key = (decision.worker, decision.sample)
                if decision.keep:
                    self.stopping.add(key)
                else:
                    del self.running[key]
            case Train():
                self.trained.append(decision)
            case Drop():
                self.dropped.append(decision)

    def _update(self, train: Train) -> None:
        for group in train.groups:
            assert all(0 <= age <= self.rules.max_staleness for age in group.staleness)
            size = self.size_of(group.number) or self.rules.group_size
            assert len(group.rows) == size and len(set(group.rows)) == group.valid
        # A job that the barrier stopped returns its response, or finishes at this moment.
        for key in sorted(self.stopping & self.running.keys()):
            if key in self.running:
                self._pause(key) if self.random.random() < 0.9 else self._finish(key)
        self.stopping.clear()
        self.tell(Updated(train.step, train.step // self.push_every * self.push_every))

    def _something_happens(self, slots: int) -> None:
        chance = self.random.random()
        if chance < self.crashes and self.workers:
            workers = sorted({key[0] for key in self.running}) or ["w0"]
            self._crash(self.random.choice(workers), slots)
            return
        keys = [key for key in sorted(self.running) if not (self.long(key[1][0]) and self.random.random() < 0.98)]
        if keys:
            self._finish(self.random.choice(keys))
        elif not self.running:
            raise AssertionError("nothing runs, and the learner waits")

    def _finish(self, key: tuple[str, tuple[int, int]]) -> None:
        start = self.running.pop(key)
        if self.random.random() < 0.5:
            self.tell(Sampled(start.sample, start.attempt))
            # the groups that were being scored are scored after the next event
            if self.running and self.random.random() < 0.1:
                self._something_happens(5)
        problem = "the environment crashed" if self.random.random() < self.failures else ""
        self.tell(Finished(start.sample, start.attempt, self._stretches(start), problem))

    def _pause(self, key: tuple[str, tuple[int, int]]) -> None:
        start = self.running.pop(key)
        self.tell(Paused(start.sample, start.attempt, self._stretches(start)))

    def _stretches(self, start: Start) -> tuple[Stretch, ...]:
        done = start.stretches[-1].end if start.stretches else 0
        return (*start.stretches, Stretch(start.version, done, done + self.random.randint(1, 9)))

    def _crash(self, worker: str, slots: int) -> None:
        self.running = {key: start for key, start in self.running.items() if key[0] != worker}
        self.tell(WorkerLost(worker, "killed"))
        self._join(slots)

    def _join(self, slots: int) -> None:
        self.workers += 1
        self.tell(WorkerJoined(f"w{self.workers}", slots))

    def _killed_and_resumed(self, workers: int, slots: int) -> None:
        state = json.loads(json.dumps(self.scheduler.state_dict()))
        self.extend(self.rules)
        assert json.loads(json.dumps(self.scheduler.state_dict())) == state
        for _ in range(workers):
            self._join(slots)
