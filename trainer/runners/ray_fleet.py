"""Workers as Ray actors. Ray is imported only here, in its neighbours and in the job's entry."""

import os
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import ray
from ray.exceptions import OutOfMemoryError, RayActorError, RayTaskError

from trainer import node
from trainer.arithmetic import settle_arithmetic
from trainer.config import OnPolicyConfig
from trainer.config.memory import is_shortage
from trainer.inference.sampling import EngineLost
from trainer.inference.weights import Weights
from trainer.loops.session.errors import RunFailed
from trainer.rollouts import Reward, RewardSetup

from .feed import AttemptKey, SampleJob, error_text
from .fleet import Alive, Report, SampleDone, ScoreDone, ScoreWaits, WorkerDown, WorkerUp
from .placement import Look, Places, RolePlace, reserve
from .work import Results, RewardWorker, RolloutWorker, ScoredGroup, ScoreJob, Waits

_START_S = (
    900.0  # a worker imports torch, and may start an engine: half a minute, but many times as long on a busy machine
)
_FAILED_STARTS = 5
_ASK_AGAIN_S = 10.0
_COLLECT_S = 5.0
"""The number of seconds that one call waits for a worker's results."""
_OBJECT_STORE_BYTES = 300_000_000
_CONNECTS, _CONNECT_PAUSE_S = 4, 5.0
# Ray's message when a node that it starts took longer than the allowed 30 s, as on a busy machine
_BUSY = ("timed out during startup", "GCS has become overloaded")


@ray.remote(max_restarts=0, max_task_retries=0, concurrency_groups={"pulse": 1, "results": 1})  # type: ignore[call-overload]  # Ray declares no groups
class RolloutActor:
    """Samples in one thread, takes work and hands out results in two others, and answers heartbeats in a fourth."""

    def __init__(self, model_dir: str, config: OnPolicyConfig, threads: int) -> None:
        from trainer.inference.build import build_sampler
        from trainer.inference.models import load_tokenizer

        settle_arithmetic(threads)
        directory = node.model(Path(model_dir), "base")
        sampler = build_sampler(config, directory, load_tokenizer(directory))
        self._worker = RolloutWorker(sampler, config.sampler.max_batch)

    def ready(self) -> int:
        return os.getpid()

    def sample(self, job: SampleJob, boxed: list[Any]) -> None:
        # The reference comes in a list, so that Ray does not fetch weights that are here already.
        self._worker.submit(job, lambda: ray.get(boxed[0]))

    def withdraw(self, keys: Sequence[AttemptKey]) -> None:
        self._worker.withdraw(keys)

    @ray.method(concurrency_group="results")
    def collect(self) -> Results:
        return self._worker.collect(_COLLECT_S)

    @ray.method(concurrency_group="pulse")
    def pulse(self) -> int:
        """A number that grows while tokens are decoded."""
        return self._worker.progress


@ray.remote(max_restarts=0, max_task_retries=0)
class RewardActor:
    def __init__(self, setup: RewardSetup) -> None:
        self._worker = RewardWorker(node.rewards(setup))

    def ready(self) -> int:
        return os.getpid()

    def score(self, job: ScoreJob) -> ScoredGroup | Waits:
        return self._worker.score(job)


@dataclass
class _Member:
    """An actor. `since` is when its start, or its present work, began."""

    name: str
    kind: Literal["rollout", "reward"]
    actor: Any
    since: float
    place: RolePlace | None
    pid: int = 0
    up: bool = False
    sampling: set[AttemptKey] = field(default_factory=set)
    progress: int = -1
    pulse_at: float = 0.0
    scoring: ScoreJob | None = None


@dataclass
class _Call:
    kind: str
    member: _Member
    job: Any = None


@dataclass
class _WaitingGroup:
    """A group that waits for a reward worker."""

    job: ScoreJob
    losses: int = 0
    reason: str = ""
    not_before: float = 0.0


@dataclass
class RayFleet:
    """A `Fleet` on Ray: the cluster that `RAY_ADDRESS` names, as in a Ray job, else one on this machine."""

    config: OnPolicyConfig
    model_dir: Path
    rewards: RewardSetup
    places: Places | None = None
    """Places that the run has already, because other processes of it are in the same group."""
    look: Look = lambda reason: None
    _members: dict[str, _Member] = field(default_factory=dict)
    _calls: dict[Any, _Call] = field(default_factory=dict)
    _weights: dict[int, Any] = field(default_factory=dict)
    _queue: deque[_WaitingGroup] = field(default_factory=deque)
    _waiting: dict[int, _WaitingGroup] = field(default_factory=dict)
    _reports: list[Report] = field(default_factory=list)
    _scores: bool = True
    """Whether groups still go to reward workers."""
    _failed_starts: int = 0
    _count: int = 0

    def start(self, workers: int) -> None:
        connect()
        self.places = self.places or reserve(self.config, self.look)
        for _ in range(workers):
            self._spawn("rollout")
        for _ in range(self.config.runner.reward_workers):
            self._spawn("reward")

    def publish(self, version: int, weights: Weights) -> None:
        connect()
        self._weights[version] = ray.put(dict(weights))

    def forget(self, below: int) -> None:
        self._weights = {version: ref for version, ref in self._weights.items() if version >= below}

    def sample(self, worker: str, job: SampleJob) -> None:
        member = self._members.get(worker)
        if member is None:
            return  # the last poll found it dead, and reports that after other news
        member.sampling.update(job.keys)
        self._calls[member.actor.sample.remote(job, [self._weights[job.version]])] = _Call("sample", member)

    def withdraw(self, worker: str, keys: Sequence[AttemptKey]) -> None:
        if member := self._members.get(worker):
            member.sampling.difference_update(keys)
            self._calls[member.actor.withdraw.remote(keys)] = _Call("sample", member)

    def score(self, job: ScoreJob) -> None:
        self._waiting[job.number] = _WaitingGroup(job)
        self._queue.append(self._waiting[job.number])

    def score_no_more(self) -> None:
        self._scores = False

    def poll(self, timeout_s: float) -> list[Report]:
        self._feel_pulses()
        self._hand_out()
        ready, _ = ray.wait(list(self._calls), num_returns=1, timeout=timeout_s)
        if ready:
            ready, _ = ray.wait(list(self._calls), num_returns=len(self._calls), timeout=0)
        for ref in ready:
            call = self._calls.pop(ref, None)  # None: another call of this round found its actor dead
            if call is not None:
                self._collect(ref, call)
        self._look_for_the_stuck()
        reports, self._reports = self._reports, []
        return reports

    def replace(self, worker: str) -> None:
        if worker in self._members:
            self._end(self._members[worker])
            self._spawn("rollout")

    def close(self) -> None:
        for member in list(self._members.values()):
            self._end(member)
        if self.places:
            self.places.leave("rollout", "reward")

    def pids(self) -> dict[str, int]:
        """The process of every worker that is up."""
        return {name: member.pid for name, member in self._members.items() if member.up}

    # Starting and ending

    def _spawn(self, kind: Literal["rollout", "reward"]) -> None:
        name, place = f"{kind}-{self._count}", self.places.take(kind) if self.places else None
        self._count += 1
        options: dict[str, Any] = dict(place.options) if place else {"num_cpus": 0, "scheduling_strategy": "SPREAD"}
        if kind == "rollout":
            threads = max(1, self.config.runner.cpus_per_worker)
            arguments = (str(self.model_dir.absolute()), self.config, threads)
            if self.config.sampler.kind == "vllm":  # the interpreter that started Ray may not have it
                options["runtime_env"] = {"py_executable": sys.executable}
            actor = RolloutActor.options(**options).remote(*arguments)  # type: ignore[attr-defined]  # of ray.remote
        else:
            actor = RewardActor.options(**options).remote(self.rewards)  # type: ignore[attr-defined]  # of ray.remote
        member = self._members[name] = _Member(name, kind, actor, time.monotonic(), place)
        self._call("ready", member, actor.ready.remote())

    def _end(self, member: _Member) -> None:
        if self._members.pop(member.name, None) and self.places and member.place:
            self.places.give_back(member.place)
        self._calls = {ref: call for ref, call in self._calls.items() if call.member is not member}
        ray.kill(member.actor, no_restart=True)

    def _lost(self, member: _Member, reason: str) -> None:
        self._end(member)
        if not member.up:
            self._failed_starts += 1
            if self._failed_starts >= _FAILED_STARTS:
                raise RunFailed(f"workers do not start; the last one said: {reason}")
        if member.scoring is not None:
            self._again(self._waiting[member.scoring.number], reason)
        self._reports.append(WorkerDown(member.name, reason))
        self._spawn(member.kind)

    def _again(self, waiting: _WaitingGroup, reason: str) -> None:
        waiting.losses, waiting.reason = waiting.losses + 1, reason
        if waiting.losses <= self.config.runner.retries:
            self._queue.appendleft(waiting)
            return
        excluded = f"its reward worker was lost {waiting.losses} times, the last time: {reason}"
        self._scored(waiting.job, ScoredGroup(tuple(Reward(None, excluded=excluded) for _ in waiting.job.keys)))

    def _wait(self, waiting: _WaitingGroup, waits: Waits) -> None:
        """Keep a group that waits: it is scored once the services that it needs answer. The worker is not at fault."""
        waiting.not_before = time.monotonic() + _ASK_AGAIN_S
        waiting.job = replace(waiting.job, known=waiting.job.known + waits.told)
        self._queue.append(waiting)
        self._reports.append(ScoreWaits(*waits))

    # Calls and their results

    def _call(self, kind: str, member: _Member, ref: Any, job: Any = None) -> None:
        member.since = time.monotonic()
        self._calls[ref] = _Call(kind, member, job)

    def _collect(self, ref: Any, call: _Call) -> None:
        member = call.member
        try:
            result = ray.get(ref)
        except RayTaskError as error:
            if isinstance(error.cause, EngineLost):
                self._lost(member, str(error.cause))  # the actor lives, but its engine does not
            else:
                self._raised(call, error_text(error.cause or error))
            return
        except (
            RayActorError,
            OutOfMemoryError,
        ) as error:  # the latter if Ray's monitor ended it to save its node
            self._lost(member, _first_line(error))
            return
        match call.kind:
            case "ready":
                member.up, member.pid, self._failed_starts = True, result, 0
                if member.name.startswith("rollout"):
                    self._reports.append(WorkerUp(member.name))
                    self._await_results(member)
            case "results":
                self._await_results(member)
                self._sampled(member, result)
            case "score":
                member.scoring = None
                if isinstance(result, Waits):
                    self._wait(self._waiting[call.job.number], result)
                else:
                    self._scored(call.job, result)
            case "pulse":
                if result != member.progress or not member.sampling:
                    self._reports.append(Alive(member.name))
                member.progress = result

    def _raised(self, call: _Call, message: str) -> None:
        """Note that the work failed while the worker lives. Raises RunFailed if it would fail everywhere, because memory is too small."""
        match call.kind:
            case "results" if is_shortage(message):
                raise RunFailed(f"{call.member.name}: {message}")
            case "score":
                call.member.scoring = None
                self._again(self._waiting[call.job.number], message)
            case _:
                self._lost(call.member, message)

    def _await_results(self, member: _Member) -> None:
        self._calls[member.actor.collect.remote()] = _Call("results", member)

    def _sampled(self, member: _Member, results: Results) -> None:
        """Raises RunFailed if a response failed because memory is too small, as it would on every worker."""
        for each in results.ended:
            if is_shortage(each.problem):
                raise RunFailed(f"{member.name}: {each.problem}")
        member.sampling.difference_update(each.key for each in results.ended)
        if results.ended:
            self._reports.append(SampleDone(member.name, *results))

    def _scored(self, job: ScoreJob, scored: ScoredGroup) -> None:
        del self._waiting[job.number]
        self._reports.append(ScoreDone(job, *scored))

    def _hand_out(self) -> None:
        """Give groups to idle reward workers."""
        for member in self._members.values():
            if not self._queue or not self._scores:
                return
            if member.up and member.name.startswith("reward") and member.scoring is None:
                due = next((each for each in self._queue if each.not_before <= time.monotonic()), None)
                if due is None:
                    return
                self._queue.remove(due)
                job = member.scoring = due.job
                self._call("score", member, member.actor.score.remote(job), job)

    def _feel_pulses(self) -> None:
        now, every = time.monotonic(), self.config.runner.heartbeat_s / 5
        asked = {call.member.name for call in self._calls.values() if call.kind == "pulse"}
        for member in self._members.values():
            due = member.up and member.name.startswith("rollout") and member.name not in asked
            if due and now - member.pulse_at >= every:
                member.pulse_at = now
                self._calls[member.actor.pulse.remote()] = _Call("pulse", member)

    def _look_for_the_stuck(self) -> None:
        """Look for actors that hang. The schedule judges rollout workers by their pulse; others are judged by how long they take."""
        now, limit = time.monotonic(), self.config.runner.heartbeat_s
        for member in list(self._members.values()):
            took = now - member.since
            if not member.up and took > _START_S:
                cpus = self.config.runner.cpus_per_worker
                needed = f"{cpus} free CPUs and memory" if cpus else "memory"
                raise RunFailed(
                    f"{member.name} did not start within {_START_S:.0f} s. Is there a node with {needed} for another copy of "
                    "the model, and not too busy? Lower runner.workers"
                    + (" or runner.cpus_per_worker." if cpus else ".")
                )
            if member.scoring is not None and took > limit:
                self._lost(member, f"no reward after {took:.0f} s (allowed: {limit:g} s)")


def connect() -> None:
    """Connect to the cluster that `RAY_ADDRESS` names, or start one on this machine."""
    for left in reversed(range(_CONNECTS)):
        if ray.is_initialized():
            return
        try:
            return _init()
        except Exception as error:  # Ray raises only a general error here
            if not left or not any(sign in str(error) for sign in _BUSY):
                raise
            ray.shutdown()
            time.sleep(_CONNECT_PAUSE_S)


def _init() -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if os.environ.get("RAY_ADDRESS"):
        ray.init(**quiet)
    else:
        ray.init(**quiet, include_dashboard=False, object_store_memory=_OBJECT_STORE_BYTES)


def _first_line(error: Exception) -> str:
    """The first line of an error: Ray explains at length what may have ended an actor."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
