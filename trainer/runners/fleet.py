"""The workers as the conductor sees them; `RayFleet` is the real one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from trainer.inference.checksum import Weights
from trainer.rewards.journal import JournalEntry
from trainer.rollouts import Reward

from .feed import AttemptKey, Ended, SampleJob
from .spent import WorkerTimes
from .work import ScoreJob


@dataclass(frozen=True)
class SampleDone:
    """Some of a worker's responses are not sampled any more."""

    worker: str
    ended: tuple[Ended, ...]
    spent: WorkerTimes


@dataclass(frozen=True)
class ScoreDone:
    job: ScoreJob
    rewards: tuple[Reward, ...]
    told: tuple[JournalEntry, ...] = ()


@dataclass(frozen=True)
class ScoreWaits:
    """Somebody whom the rewards of a group must ask cannot be asked at present; the group is tried again and again."""

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
    """The worker has made progress since it was last asked, or has nothing to do."""

    worker: str


Report = SampleDone | ScoreDone | ScoreWaits | WorkerUp | WorkerDown | Alive


class Fleet(Protocol):
    """Rollout workers by name, and reward workers behind one queue. Only one thread calls it."""

    def start(self, workers: int) -> None:
        """Returns at once; each worker reports `WorkerUp` when it can be given work."""
        ...

    def publish(self, version: int, weights: Weights) -> None: ...

    def forget(self, below: int) -> None:
        """Weights older than `below` are asked for no more."""
        ...

    def sample(self, worker: str, job: SampleJob) -> None:
        """Beside whatever the worker samples already; it keeps what does not fit for later."""
        ...

    def withdraw(self, worker: str, keys: Sequence[AttemptKey]) -> None:
        """Nobody waits for these any more. Results that are on their way may still come."""
        ...

    def score(self, job: ScoreJob) -> None:
        """The result comes whatever happens to reward workers: lost or hung ones are replaced and the job is done again;
        after some attempts the rewards are missing, with the reason.
        """
        ...

    def score_no_more(self) -> None:
        """From here on no group is begun with: no step trains on those that wait."""
        ...

    def poll(self, timeout_s: float) -> list[Report]:
        """What has happened; waits at most `timeout_s` for anything at all. Raises RunFailed when no worker can start."""
        ...

    def replace(self, worker: str) -> None:
        """End it, however stuck it is, and start another, which reports `WorkerUp` under a name of its own."""
        ...

    def close(self) -> None: ...
