"""The work of a worker in any process: sample responses with given weights, score a group."""

import queue
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from trainer.inference.sampling import JoinableSampler
from trainer.rewards import Item
from trainer.rewards.access import AccessInvalid
from trainer.rewards.journal import JournalEntry, Notes
from trainer.rollouts import Reward, RewardScorer, RewardSetup

from .feed import AttemptKey, Ended, Feed, Fetch, SampleJob
from .time_accounting import WorkerStretch, WorkerTimes


@dataclass(frozen=True)
class ScoreJob:
    """Responses of one group to score. `known` are answers that the run has from before."""

    number: int
    keys: tuple[AttemptKey, ...]
    items: tuple[Item, ...]
    known: tuple[JournalEntry, ...] = ()


class ScoredGroup(NamedTuple):
    """The rewards of a group. `told` are the answers of judges and services, to be written down in the run's process."""

    rewards: tuple[Reward, ...]
    told: tuple[JournalEntry, ...] = ()


class Waits(NamedTuple):
    """The reason why a group has no rewards yet; it is handed out again later, with the answers `told` so far."""

    reason: str
    told: tuple[JournalEntry, ...] = ()


class Results(NamedTuple):
    """The results that are ready in a worker, and the times since its last report."""

    ended: tuple[Ended, ...]
    spent: WorkerTimes
    stretches: tuple[WorkerStretch, ...] = ()


class RolloutWorker:
    """A feed in its own thread: work is handed in and results are taken out while it samples."""

    def __init__(self, sampler: JoinableSampler, slots: int) -> None:
        self._feed = Feed(sampler, slots)
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[Results | BaseException] = queue.SimpleQueue()
        self.progress = 0
        """A number that grows with every decoded token; heartbeats look at it."""
        threading.Thread(target=self._work, name="sampling", daemon=True).start()

    def submit(self, job: SampleJob, fetch: Fetch) -> None:
        self._inbox.put(partial(self._feed.submit, job, fetch))

    def withdraw(self, keys: Collection[AttemptKey]) -> None:
        self._inbox.put(partial(self._feed.withdraw, keys))

    def collect(self, timeout_s: float) -> Results:
        """The results since the last call; waits for them. Raises the error that ended the sampling."""
        try:
            found = self._outbox.get(timeout=timeout_s)
        except queue.Empty:
            return Results((), WorkerTimes())
        if isinstance(found, BaseException):
            raise found
        return found

    def _work(self) -> None:
        try:
            while True:
                if self._feed.idle:
                    self._inbox.get()()
                while not self._inbox.empty():
                    self._inbox.get()()
                ended = self._feed.turn()
                self.progress += 1
                if ended:
                    self._outbox.put(Results(tuple(ended), self._feed.take_spent(), self._feed.take_stretches()))
        except BaseException as error:  # raised in the thread that waits for the results
            self._outbox.put(error)


class RewardWorker:
    """Scores groups, in any process; the first group opens what the rewards need."""

    def __init__(self, setup: RewardSetup) -> None:
        self._setup = setup
        self._scorer: RewardScorer | None = None
        self._notes = Notes()
        self.scored = 0

    def score(self, job: ScoreJob) -> ScoredGroup | Waits:
        """The rewards of a group. A response whose reward cannot be computed has none, with the reason; never 0. `Waits` if a service
        that must be asked does not answer now.
        """
        self._notes.begin(job.known)
        try:
            self._scorer = self._scorer or self._setup.open(self._notes)
            rewards = tuple(self._scorer.score(job.items, _Impatient()))
        except _Paused as paused:
            return Waits(str(paused), self._notes.fresh)
        except AccessInvalid:
            raise
        except Exception as error:
            rewards = tuple(
                Reward(None, excluded=f"the reward failed: {type(error).__name__}: {error}") for _ in job.items
            )
        self.scored += len(rewards)
        return ScoredGroup(rewards, self._notes.fresh)

    def close(self) -> None:
        if self._scorer:
            self._scorer.close()


class _Paused(Exception):
    pass


class _Impatient:
    """Gives a group up instead of waiting: the conductor waits, and the worker continues with other groups."""

    def check(self) -> None:
        pass

    def paused(self, reason: str) -> None:
        raise _Paused(reason)

    def resumed(self) -> None:
        pass

    def ran(self, name: str, start: float, end: float) -> None:
        """The conductor sees how long the group took."""
