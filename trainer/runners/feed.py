"""Feeds a worker with responses: continuous batching over the responses of many groups."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from trainer.inference.sampling import EngineLost, JoinableSampler, Running, SampleRequest, SampleResult
from trainer.inference.weights import Weights
from trainer.scheduling import SampleId

from .time_accounting import WorkerDiary, WorkerStretch, WorkerTimes


class AttemptKey(NamedTuple):
    """A response and the number of the attempt, so that a late result is not taken for that of a later attempt."""

    sample: SampleId
    attempt: int


@dataclass(frozen=True)
class SampleJob:
    """Responses to be sampled by weights `version`."""

    keys: tuple[AttemptKey, ...]
    requests: tuple[SampleRequest, ...]
    version: int


class Ended(NamedTuple):
    """A response that is no longer sampled. `digest` is that of the weights as the worker holds them, read back after
    they were loaded. Without a `result`, `problem` says why, although the worker lives. `held_s` are the seconds since a
    turn of the worker could begin with it.
    """

    key: AttemptKey
    result: SampleResult | None
    version: int
    digest: str = ""
    problem: str = ""
    held_s: float = 0.0


Fetch = Callable[[], Weights]


@dataclass(frozen=True)
class _WaitingRequest:
    key: AttemptKey
    request: SampleRequest
    version: int
    fetch: Fetch


@dataclass
class _OpenBatch:
    running: Running
    digest: str
    keys: set[AttemptKey] = field(default_factory=set)


class Feed:
    """Keeps up to `slots` responses, of any groups, going side by side: when one ends, the next takes its place.

    Each is sampled by the version of the weights that its job names. As many versions are open together as the sampler
    allows; if it allows one, responses of another version wait until the last of the present one has ended. Used by one thread.
    """

    def __init__(self, sampler: JoinableSampler, slots: int) -> None:
        self._sampler, self._slots = sampler, slots
        self._waiting: list[_WaitingRequest] = []
        self._open: dict[int, _OpenBatch] = {}
        self._came_at: dict[AttemptKey, float] = {}
        self._spent, self._diary = WorkerTimes(), WorkerDiary()
        self._ended_at: float | None = None
        """The end of the last turn, if it left something to continue."""

    @property
    def idle(self) -> bool:
        return not self._waiting and not self._inside

    @property
    def _inside(self) -> int:
        return sum(len(opened.keys) for opened in self._open.values())

    def submit(self, job: SampleJob, fetch: Fetch) -> None:
        """Add a job; `fetch` gives the weights of its version if they are not here yet."""
        self._came_at.update(dict.fromkeys(job.keys, time.monotonic()))
        self._waiting += [
            _WaitingRequest(key, request, job.version, fetch)
            for key, request in zip(job.keys, job.requests, strict=True)
        ]

    def withdraw(self, keys: Collection[AttemptKey]) -> None:
        """Drop these responses, which makes room at once."""
        self._waiting = [waiting for waiting in self._waiting if waiting.key not in keys]
        for key in keys:
            self._came_at.pop(key, None)
        for opened in self._open.values():
            if gone := opened.keys.intersection(keys):
                opened.running.leave(gone)
                opened.keys -= gone

    def turn(self) -> list[Ended]:
        """Fill free places, and sample one token or more of every response; returns those that have ended. Raises EngineLost.

        A turn's seconds begin where the last one ended, unless nothing was left then: handing over results and taking in new
        work delay the responses as decoding does. The loading of weights is counted separately.
        """
        began, loaded = self._ended_at or time.monotonic(), self._spent.loads[1]
        before = self._inside
        ended = self._fill()
        sampled_from = time.monotonic() if self._spent.loads[1] > loaded else began
        busy = [(version, opened) for version, opened in self._open.items() if opened.keys]
        rows = self._inside
        for version, opened in busy:
            ended += self._step(version, opened)
        now = time.monotonic()
        if busy:
            self._spent.turn(len(busy), rows, rows - before, now - began - (self._spent.loads[1] - loaded))
            self._diary.did(False, sampled_from, now)
        self._ended_at = None if self.idle else now
        return [each._replace(held_s=now - self._came_at.pop(each.key, now)) for each in ended]

    def take_spent(self) -> WorkerTimes:
        """The times since the last call."""
        spent, self._spent = self._spent, WorkerTimes()
        return spent

    def take_stretches(self) -> tuple[WorkerStretch, ...]:
        """The work since the last call."""
        return self._diary.taken(time.monotonic())

    def _step(self, version: int, opened: _OpenBatch) -> list[Ended]:
        try:
            found = [(key, result) for key, result in opened.running.step() if key in opened.keys]
        except EngineLost:
            raise
        except Exception as error:  # all responses of this step
            problem = error_text(error)
            del self._open[version]
            opened.running.close()
            return [Ended(key, None, version, problem=problem) for key in opened.keys]
        opened.keys.difference_update(key for key, _ in found)
        return [Ended(key, result, version, opened.digest) for key, result in found]

    def _fill(self) -> list[Ended]:
        """Start waiting responses in the order in which they came; a response whose version cannot be opened yet lets others pass."""
        problems, waiting, free = [], [], self._slots - self._inside
        for each in self._waiting:
            opened = self._opened(each) if free > 0 else None
            if opened is None:
                waiting.append(each)
                continue
            try:
                opened.running.join(each.key, each.request)
            except ValueError as error:
                problems.append(Ended(each.key, None, each.version, problem=error_text(error)))
                continue
            opened.keys.add(each.key)
            free -= 1
        self._waiting = waiting
        return problems

    def _opened(self, each: _WaitingRequest) -> _OpenBatch | None:
        """The version of a response, opened if there is room for it; versions without responses are closed for that."""
        if each.version in self._open:
            return self._open[each.version]
        wanted = {waiting.version for waiting in self._waiting}
        for version, opened in list(self._open.items()):
            if not opened.keys and (version not in wanted or len(self._open) >= self._sampler.versions_at_once):
                opened.running.close()
                del self._open[version]
        if len(self._open) >= self._sampler.versions_at_once:
            return None
        started = time.monotonic()
        running, digest = self._sampler.open(each.fetch().items(), each.version)
        ended = time.monotonic()
        self._spent.load(ended - started)
        self._diary.did(True, started, ended)
        self._open[each.version] = _OpenBatch(running, digest)
        return self._open[each.version]


def error_text(error: BaseException) -> str:
    """Kind and last line of an error: some errors, such as a MemoryError, have no text."""
    return ": ".join([type(error).__name__, *str(error).strip().splitlines()[-1:]])
