"""Workers inside the test: they sample for real, in an order that only a seed decides, and fail when they are told to."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainer.config import PolicyConfig
from trainer.inference.checksum import Weights
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer
from trainer.rollouts import RewardSetup
from trainer.runners.fleet import Alive, Report, SampleDone, ScoreDone, ScoreWaits, WorkerDown, WorkerUp
from trainer.runners.work import RewardWorker, RolloutWorker, SampleJob, ScoreJob, Waits


class FakeFleet:
    """`crashes`: the chance that a job takes its worker along. `hangs`: the places of jobs, 1 for the first, that never come back."""

    def __init__(
        self,
        config: PolicyConfig,
        model_dir: Path,
        rewards: RewardSetup | None = None,
        seed: int = 0,
        crashes: float = 0.0,
        hangs: tuple[int, ...] = (),
    ) -> None:
        tokenizer = load_tokenizer(model_dir)
        self._sampler = RolloutWorker(LocalSampler(load_model(model_dir), tokenizer))
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
        weights = self._weights[job.version]  # as Ray does, held until the job is done
        if len(self.jobs) not in self._hangs:
            self._todo.append(lambda: self._sample(worker, job, weights))

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
        self._alive.remove(worker)
        self._up()

    def close(self) -> None:
        self._todo.clear()

    def _up(self) -> None:
        name = f"rollout-{self._count}"
        self._count += 1
        self._alive.add(name)
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

    def _sample(self, worker: str, job: SampleJob, weights: Weights) -> Report | None:
        if worker not in self._alive:
            return None
        if self._random.random() < self._crashes:
            self._alive.remove(worker)
            self._up()
            return WorkerDown(worker, "killed by the test")
        self._todo.append(lambda: Alive(worker))
        return SampleDone(worker, job, self.spoil(self._sampler.sample(job, lambda version: weights)))
