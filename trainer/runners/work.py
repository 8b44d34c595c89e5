"""What a worker does, wherever it runs: sample a group with given weights, score a group."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trainer.config.rewards import RewardPart
from trainer.contracts import Rubric
from trainer.inference.checksum import Weights
from trainer.inference.sampling import Sampler, SampleRequest, SampleResult
from trainer.rollouts import Reward, RewardFunction
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
    """Responses of one group to score."""

    number: int
    keys: tuple[Key, ...]
    rubric: Rubric
    results: tuple[SampleResult, ...]


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


@dataclass
class RewardWorker:
    components: Sequence[RewardPart]
    max_new_tokens: int
    scored: int = field(default=0, init=False)

    def score(self, job: ScoreJob) -> tuple[Reward, ...]:
        """A response whose reward cannot be computed has none, with the reason; never 0."""
        function = RewardFunction(self.components, self.max_new_tokens)
        rewards = tuple(self._one(function, job.rubric, result) for result in job.results)
        self.scored += len(rewards)
        return rewards

    @staticmethod
    def _one(function: RewardFunction, rubric: Rubric, result: SampleResult) -> Reward:
        try:
            return function(rubric, result)
        except Exception as error:
            return Reward(None, excluded=f"the reward failed: {type(error).__name__}: {error}")
