"""Workers inside the test. They really sample, in an order that only a seed decides, and fail when the test wants it."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from trainer.config import PolicyConfig
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer
from trainer.inference.weights import Weights
from trainer.rollouts import RewardSetup
from trainer.runners.feed import AttemptKey, Feed, SampleJob
from trainer.runners.fleet import Alive, Report, SampleDone, ScoreDone, ScoreWaits, WorkerDown, WorkerUp
from trainer.runners.work import RewardWorker, ScoreJob, Waits


@cache
def _read(model_dir: Path) -> tuple[Any, Any]:
    """The model, which each fleet copies, and its tokenizer, which all share: to read both takes four times as long as to copy the model."""
    return load_model(model_dir), load_tokenizer(model_dir)


class FakeFleet:
    """`crashes`: the probability that a job ends its worker a few tokens later. `hangs`: the numbers of the jobs, from 1 on, whose workers
    do not return. Workers inside the test need no `places`.
    """

    def __init__(
        self,
        config: PolicyConfig,
        model_dir: Path,
        rewards: RewardSetup | None = None,
        seed: int = 0,
        crashes: float = 0.0,
        hangs: tuple[int, ...] = (),
        places: None = None,
        look: Any = None,
    ) -> None:
        model, tokenizer = _read(model_dir)
        self._sampler = LocalSampler(deepcopy(model), tokenizer)
        self._slots = config.sampler.max_batch
        self._feeds: dict[str, Feed] = {}
        self._doomed: dict[str, int] = {}
        """The turns that are left until a worker ends, by worker."""
        self._hung: set[str] = set()
        self._rewards = RewardWorker(rewards or RewardSetup(config))
        self._random, self._crashes, self._hangs = random.Random(seed), crashes, hangs  # noqa: S311
        self._weights: dict[int, Weights] = {}
        self._todo: list[Callable[[], Report | None]] = []
        self._alive: set[str] = set()
        self._count = 0
        self._thread = 0
        self._scores = True
        self.jobs: list[tuple[str, SampleJob]] = []
        self.scored: list[ScoreJob] = []
        self.replaced: list[str] = []
        self.spoil: Callable[[Any], Any] = lambda sampled: sampled

    def start(self, workers: int) -> None:
        for _ in range(workers):
            self._up()

    def publish(self, version: int, weights: Weights) -> None:
        self._weights[version] = {name: tensor.clone() for name, tensor in weights.items()}

    def forget(self, below: int) -> None:
        self._weights = {version: weights for version, weights in self._weights.items() if version >= below}

    def sample(self, worker: str, job: SampleJob) -> None:
        assert worker in self._alive
        self.jobs.append((worker, job))
        weights = self._weights[job.version]  # like Ray, it holds this until the job is done
        feed = self._feeds[worker]
        if len(self.jobs) in self._hangs:
            self._hung.add(worker)
        if self._random.random() < self._crashes:
            self._doomed.setdefault(worker, self._random.randrange(12))
        if feed.idle:
            self._todo.append(lambda: self._turn(worker))
        feed.submit(job, lambda: weights)

    def withdraw(self, worker: str, keys: Sequence[AttemptKey]) -> None:
        self._feeds[worker].withdraw(keys)

    def score(self, job: ScoreJob) -> None:
        self._todo.append(lambda: self._score(job))

    def score_no_more(self) -> None:
        self._scores = False

    def poll(self, timeout_s: float) -> list[Report]:
        assert self._thread in (0, threading.get_ident()), "only one thread may call a fleet"
        self._thread = threading.get_ident()
        if not self._todo:
            time.sleep(0.001)
            return []
        report = self._todo.pop(self._random.randrange(len(self._todo)))()
        return [report] if report else []

    def replace(self, worker: str) -> None:
        self.replaced.append(worker)
        self._gone(worker)

    def close(self) -> None:
        self._todo.clear()

    def _up(self) -> None:
        name = f"rollout-{self._count}"
        self._count += 1
        self._alive.add(name)
        self._feeds[name] = Feed(self._sampler, self._slots)
        self._todo.append(lambda: WorkerUp(name))

    def _score(self, job: ScoreJob) -> Report | None:
        if not self._scores:
            return None
        self.scored.append(job)
        scored = self._rewards.score(job)
        if isinstance(scored, Waits):
            self.score(replace(job, known=job.known + scored.told))
            return ScoreWaits(*scored)
        return ScoreDone(job, *scored)

    def _gone(self, worker: str) -> None:
        self._alive.remove(worker)
        del self._feeds[worker]
        self._up()

    def _turn(self, worker: str) -> Report | None:
        """Gives one or more tokens to every response that the worker samples."""
        if worker not in self._alive or worker in self._hung:
            return None
        if self._doomed.get(worker, 1) <= 0:
            self._gone(worker)
            return WorkerDown(worker, "killed by the test")
        if worker in self._doomed:
            self._doomed[worker] -= 1
        feed = self._feeds[worker]
        ended = feed.turn()
        if not feed.idle:
            self._todo.append(lambda: self._turn(worker))
        if not ended:
            return Alive(worker)
        return SampleDone(worker, tuple(map(self.spoil, ended)), feed.take_spent(), feed.take_stretches())
