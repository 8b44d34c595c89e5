"""The workers as the conductor sees them; `RayFleet` is the real implementation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from trainer.inference.weights import Weights
from trainer.rewards.journal import JournalEntry
from trainer.rollouts import Reward

from .feed import AttemptKey, Ended, SampleJob
from .time_accounting import WorkerStretch, WorkerTimes
from .work import ScoreJob


@dataclass(frozen=True)
class SampleDone:
    """Responses that a worker no longer samples."""

    worker: str
    ended: tuple[Ended, ...]
    spent: WorkerTimes
    stretches: tuple[WorkerStretch, ...] = ()


@dataclass(frozen=True)
class ScoreDone:
    job: ScoreJob
    rewards: tuple[Reward, ...]
    told: tuple[JournalEntry, ...] = ()


@dataclass(frozen=True)
class ScoreWaits:
    """A service that the rewards of a group need does not answer now; the group is tried again and again."""

    reason: str
    told: tuple[JournalEntry, ...] = ()


@dataclass(frozen=True)
class WorkerUp:
    worker: str


@dataclass(frozen=True)
class WorkerDown:
    worker: str
    reason: str


@dataclass(frozen=True)
class Alive:
    """The worker has made progress since the last question, or has nothing to do."""

    worker: str


Report = SampleDone | ScoreDone | ScoreWaits | WorkerUp | WorkerDown | Alive


class Fleet(Protocol):
    """Rollout workers by name, and reward workers behind one queue. Only one thread calls it."""

    def start(self, workers: int) -> None:
        """Start the workers. Returns at once; each worker reports `WorkerUp` when it can be given work."""
        ...

    def publish(self, version: int, weights: Weights) -> None: ...

    def forget(self, below: int) -> None:
        """Drop weights older than `below`: they are no longer asked for."""
        ...

    def sample(self, worker: str, job: SampleJob) -> None:
        """Sample these beside what the worker samples already; the worker keeps for later what does not fit."""
        ...

    def withdraw(self, worker: str, keys: Sequence[AttemptKey]) -> None:
        """Stop sampling these. Results that are on their way may still come."""
        ...

    def score(self, job: ScoreJob) -> None:
        """Score a group. A result always comes: lost or hung reward workers are replaced and the job is done again;
        after some attempts the rewards are missing, with the reason.
        """
        ...

    def score_no_more(self) -> None:
        """Begin no further group: no step trains on those that wait."""
        ...

    def poll(self, timeout_s: float) -> list[Report]:
        """The reports so far; waits at most `timeout_s` for the first. Raises RunFailed if no worker can start."""
        ...

    def replace(self, worker: str) -> None:
        """End the worker, even if it hangs, and start another, which reports `WorkerUp` under its own name."""
        ...

    def close(self) -> None: ...
