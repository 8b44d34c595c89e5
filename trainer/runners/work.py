"""What a worker does, wherever it runs: sample a group with given weights, score a group."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from trainer.inference.checksum import Weights
from trainer.inference.sampling import Sampler, SampleRequest, SampleResult
from trainer.rewards import Item
from trainer.rewards.access import AccessInvalid
from trainer.rewards.journal import Entry, Notes
from trainer.rollouts import Reward, RewardScorer, RewardSetup
from trainer.scheduling import SampleId


class Key(NamedTuple):
    """A response and the attempt at it, without which a late result could be taken for that of a later attempt."""

    sample: SampleId
    attempt: int


@dataclass(frozen=True)
class SampleJob:
    """Responses of one group, sampled side by side by weights `version`."""

    number: int
    keys: tuple[Key, ...]
    requests: tuple[SampleRequest, ...]
    version: int


@dataclass(frozen=True)
class ScoreJob:
    """Responses of one group to score. `known` is what the run was told of them before."""

    number: int
    keys: tuple[Key, ...]
    items: tuple[Item, ...]
    known: tuple[Entry, ...] = ()


class Scored(NamedTuple):
    """`told` is what others answered, to be written down where the run is."""

    rewards: tuple[Reward, ...]
    told: tuple[Entry, ...] = ()


class Waits(NamedTuple):
    """A group has no rewards yet, and why; it is to be handed out again later, with what was `told` by then."""

    reason: str
    told: tuple[Entry, ...] = ()


class Sampled(NamedTuple):
    """`digest` is that of the weights as the worker holds them, read back after they were loaded."""

    results: tuple[SampleResult, ...]
    version: int
    digest: str


class RolloutWorker:
    """A sampler that fetches the weights it is asked to use."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._digest = ""
        self._version = -1
        self.progress = 0
        """Grows with every token that is decoded: what a heartbeat looks at."""

    def sample(self, job: SampleJob, fetch: Callable[[int], Weights]) -> Sampled:
        if job.version != self._version:
            self._digest = self._sampler.load_weights(fetch(job.version).items(), job.version)
            self._version = job.version
        results = self._sampler.sample(job.requests, self._note)
        return Sampled(tuple(results), self._version, self._digest)

    def _note(self, done: int, total: int) -> None:
        self.progress += 1


class RewardWorker:
    """Scores groups, in whatever process; what the rewards ask is opened with the first group."""

    def __init__(self, setup: RewardSetup) -> None:
        self._setup = setup
        self._scorer: RewardScorer | None = None
        self._notes = Notes()
        self.scored = 0

    def score(self, job: ScoreJob) -> Scored | Waits:
        """A response whose reward cannot be computed has none, with the reason; never 0. `Waits` where somebody who must be
        asked cannot be asked at present."""
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
        return Scored(rewards, self._notes.fresh)

    def close(self) -> None:
        if self._scorer:
            self._scorer.close()


class _Paused(Exception):
    pass


class _Impatient:
    """Whoever hands out work waits; a worker goes on with other groups."""

    def check(self) -> None:
        pass

    def paused(self, reason: str) -> None:
        raise _Paused(reason)

    def resumed(self) -> None:
        pass
