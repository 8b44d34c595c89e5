"""The thread between the learner and the workers: it keeps the schedule, hands out jobs and collects results."""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from trainer.config import OnPolicyConfig
from trainer.inference.checksum import digest_of
from trainer.inference.sampling import tokens_of
from trainer.inference.weights import Weights
from trainer.loops.session.errors import RunFailed
from trainer.rewards.journal import Journal
from trainer.rollouts import Episode, RolloutTask, Trajectory, item_of
from trainer.scheduling import (
    Decision,
    DomainShare,
    Drop,
    Event,
    Finished,
    GroupSource,
    Heartbeat,
    LearnerReady,
    Paused,
    Replace,
    Rules,
    Sampled,
    Scheduler,
    Start,
    Stop,
    Tick,
    Train,
    Updated,
    WorkerJoined,
    WorkerLost,
)

from .feed import AttemptKey, Ended, SampleJob
from .fleet import Alive, Fleet, Report, SampleDone, ScoreDone, ScoreWaits, WorkerDown, WorkerUp
from .responses import OpenResponses, saved
from .time_accounting import LearnerClock, WorkerTimes
from .work import ScoreJob

_POLL_S = 0.02
Log = Callable[[str, Literal["info", "warning"]], None]
Ran = Callable[[str, str, float, float], None]


@dataclass(frozen=True)
class TrainingBatch:
    """The batch that the learner trains on. `rows` are places in `trajectories`; some are repeated if others were excluded."""

    trajectories: list[Trajectory]
    rows: list[int]
    staleness: list[int]
    dropped: int
    """The number of responses that were excluded since the batch before."""
    dropped_groups: int
    utilisation: float | None
    """The share of the workers' time in which they had something to sample, since the batch before."""
    reward_wait_s: float = 0.0
    """Seconds that the learner waited for rewards alone, while every response of the batch was there."""
    queue: int = 0
    """The number of groups that were complete and waited for a later step when this batch was taken."""
    timings: dict[str, Any] = field(default_factory=dict)
    """Seconds since the batch before, as JSON, for the simulator."""


@dataclass
class _Tally:
    dropped: int = 0
    dropped_groups: int = 0
    busy_s: float = 0.0
    present_s: float = 0.0
    spent: WorkerTimes = field(default_factory=WorkerTimes)
    transit_s: list[float] = field(default_factory=list)
    """For each response, the seconds on its way to the worker and back: from being handed out until its report, without the worker's time.
    """
    scoring_s: list[float] = field(default_factory=list)
    """For each group, the seconds from its last token to its rewards."""


@dataclass(frozen=True)
class _Snapshot:
    schedule: dict[str, Any]
    responses: tuple[Any, Any]
    oldest_needed: int


def rules_of(config: OnPolicyConfig) -> Rules:
    """The schedule that a run's config asks for."""
    runner = config.runner
    return Rules(
        runner.policy,
        config.rollout.prompts_per_step,
        config.rollout.group_size,
        ahead=runner.ahead,
        oversample=runner.oversample,
        max_staleness=runner.max_staleness,
        pinned=runner.policy != "april",
        whole_groups=True,
        clear_on_push=runner.clear_on_push,
        retries=runner.retries,
        heartbeat_s=runner.heartbeat_s,
        largest_group=config.rollout.budget.high if config.rollout.budget else None,
        late=runner.late,
        steps=config.steps,
        quotas={quota.domain: DomainShare(quota.share, quota.oversample) for quota in runner.quotas},
    )


class Conductor:
    """Runs the schedule in a thread. The learner calls `start`, `batch`, `updated`, `state_dict` and `close`."""

    def __init__(
        self,
        config: OnPolicyConfig,
        fleet: Fleet,
        responses: OpenResponses,
        tasks: Mapping[str, RolloutTask],
        log: Log,
        source: GroupSource | None = None,
        journal: Journal | None = None,
        ran: Ran = lambda work, name, start, end: None,
    ) -> None:
        """`source` gives the groups, with their domains and sizes. `ran` is told in the thread what workers did, and when."""
        self._config, self._fleet, self._responses, self._tasks = config, fleet, responses, tasks
        self._log, self._journal, self._ran = log, journal, ran
        self._rules = rules_of(config)
        self._scheduler = Scheduler(self._rules, source or GroupSource())
        self._digests: dict[int, str] = {}
        self._sampling: dict[AttemptKey, str] = {}
        """The worker that samples each response."""
        self._sent_at: dict[AttemptKey, float] = {}
        """The time at which each response that is being sampled was handed out."""
        self._unscored: dict[int, list[AttemptKey]] = {}
        """The responses of each group that have all their tokens, until the others of the group have theirs."""
        self._scores: dict[int, ScoreJob] = {}
        self._stopped: set[AttemptKey] = set()
        """Responses that will be put off at the end of their segment."""
        self._workers: set[str] = set()
        self._count = 0
        self._whole_at: dict[int, float] = {}
        """The time at which the last response of each group ended, until the group is trained on."""
        self._asked_at = 0.0
        self._clock = LearnerClock()
        self._tally = _Tally()
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._batches: queue.SimpleQueue[TrainingBatch] = queue.SimpleQueue()
        self._failure: BaseException | None = None
        self.waits = ""
        """The reason why rewards cannot be had now; the learner reads it."""
        self.generated = 0
        """Tokens that workers have reported, of responses that are trained on or not."""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="conductor", daemon=True)
        self._remember()

    # The learner's side

    def start(self, weights: Mapping[int, Weights]) -> None:
        """Start the workers. `weights` by version are the newest, and those that responses of a resumed run began with."""
        for version, tensors in weights.items():
            self._publish(version, tensors)
        self._fleet.start(self._config.runner.workers)
        self._thread.start()

    def batch(self, check: Callable[[], None]) -> TrainingBatch:
        """The next batch; `check` is called meanwhile and may raise. Raises the error of the thread."""
        self._asked_at = time.monotonic()
        self._inbox.put(self._ready)
        while True:
            check()
            try:
                return self._batches.get(timeout=0.1)
            except queue.Empty:
                self._raise_failure()

    def updated(self, step: int, version: int, weights: Weights | None) -> int:
        """Note that step `step` is done; `weights` are those of `version` if they are new. Returns the oldest version still needed."""
        told = threading.Event()

        def tell() -> None:
            if weights is not None:
                self._publish(version, weights)
            self._clock.updated()
            self._tell(Updated(step, version), then=self._remember)
            self._fleet.forget(self._scheduler.oldest_needed())
            told.set()

        self._inbox.put(tell)
        while not told.wait(0.1):
            self._raise_failure()
        return self._snapshot.oldest_needed

    def state_dict(self) -> dict[str, Any]:
        """The state right after the last `updated`, as JSON."""
        return {"schedule": self._snapshot.schedule, "responses": saved(*self._snapshot.responses)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state; called before `start`."""
        self._scheduler.load_state_dict(state["schedule"])
        sizes = {number: group.size for number, group in self._scheduler.groups.items()}
        self._responses.load(state["responses"], sizes)
        self._remember()

    def close(self) -> None:
        """End the thread, which closes the fleet; if the thread never started, close the fleet here."""
        self._closing.set()
        if self._thread.ident is None:
            self._fleet.close()
        elif self._thread.is_alive():
            self._thread.join(timeout=60.0)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    # The thread

    def _work(self) -> None:
        before = time.monotonic()
        try:
            while not self._closing.is_set():
                while not self._inbox.empty():
                    self._inbox.get()()
                for report in self._fleet.poll(_POLL_S):
                    self._hear(report)
                self._tell(Tick())
                now = time.monotonic()
                self._tally.busy_s += (now - before) * len(set(self._sampling.values()))
                self._tally.present_s += (now - before) * len(self._workers)
                before = now
        except BaseException as error:  # raised in the learner's thread, which waits
            self._failure = error
        finally:
            self._fleet.close()

    def _ready(self) -> None:
        self._clock.ready()
        self._tell(LearnerReady())

    def _hear(self, report: Report) -> None:
        match report:
            case WorkerUp():
                self._workers.add(report.worker)
                places = self._rules.places(self._config.sampler.max_batch, self._config.runner.workers)
                self._tell(WorkerJoined(report.worker, places))
            case WorkerDown():
                self._log(f"{report.worker} was lost and is replaced: {report.reason}", "warning")
                self._lose(report.worker)
                self._tell(WorkerLost(report.worker, report.reason))
            case Alive():
                self._tell(Heartbeat(report.worker))
            case SampleDone():
                self._tally.spent.add(report.spent)
                self.generated += tokens_of(ended.result for ended in report.ended if ended.result is not None)
                for ended in report.ended:
                    if self._sampling.get(ended.key) == report.worker:  # not a response that was given up
                        del self._sampling[ended.key]
                        self._tally.transit_s.append(time.monotonic() - self._sent_at.pop(ended.key) - ended.held_s)
                        self._sampled(report.worker, ended)
                self._note(report)
            case ScoreWaits():
                self.waits = report.reason
                self._write_down(report)
            case ScoreDone():
                self.waits = ""
                self._write_down(report)
                if self._scores.pop(report.job.number, None):
                    self._scored(report)

    def _note(self, report: SampleDone) -> None:
        """Place what the worker did before its report on the clock of this process. The way of the report makes it late."""
        now = time.monotonic()
        for loading, ago_s, seconds in report.stretches:
            name = "weights to a worker" if loading else report.worker
            self._ran("rollout", name, now - ago_s, now - ago_s + seconds)

    def _write_down(self, report: ScoreDone | ScoreWaits) -> None:
        """Write the answers down before they are used, so that a run killed right after does not ask again."""
        if self._journal:
            self._journal.add(report.told)

    def _sampled(self, worker: str, ended: Ended) -> None:
        key, put_off = ended.key, ended.key in self._stopped
        self._stopped.discard(key)
        if ended.result is None:
            self._responses.lose(key)
            self._tell(Finished(key.sample, key.attempt, problem=f"sampling failed: {ended.problem}"))
            return
        if ended.digest != self._digests[ended.version]:
            raise RunFailed(
                f"{worker} does not hold the weights of version {ended.version} that were pushed to it: their "
                f"checksum is {ended.digest}, that of the learner's {self._digests[ended.version]}"
            )
        if not self._scheduler.awaits(*key):
            self._responses.lose(key)
        elif self._responses.add(key, ended.result):
            self._unscored.setdefault(key.sample.group, []).append(key)
            self._tell(Sampled(key.sample, key.attempt))
        elif put_off:
            self._tell(Paused(key.sample, key.attempt, self._responses.put_off(key)))
        else:  # the next segment, with the newest weights unless a response keeps its first weights
            self._dispatch(worker, [key], ended.version if self._rules.pinned else self._scheduler.version)

    def _scored(self, report: ScoreDone) -> None:
        whole_at = self._whole_at.get(report.job.keys[0].sample.group)
        if whole_at is not None:
            now = time.monotonic()
            self._tally.scoring_s.append(now - whole_at)
            self._ran("reward", "rewards of a group", whole_at, now)
        for key, reward in zip(report.job.keys, report.rewards, strict=True):
            if self._scheduler.awaits(*key):
                self._tell(Finished(key.sample, key.attempt, self._responses.scored(key, reward)))
            else:
                self._responses.lose(key)

    def _score_whole_groups(self) -> None:
        """Send groups for scoring of which no response is being sampled or waits for sampling."""
        for group in [group for group in self._unscored if self._scheduler.sampled(group)]:
            keys = self._unscored.pop(group)
            awaited = [key for key in keys if self._scheduler.awaits(*key)]
            for key in set(keys).difference(awaited):
                self._responses.lose(key)
            self._score(sorted(awaited))

    def _score(self, keys: list[AttemptKey]) -> None:
        if not keys:
            return
        task, longest = (
            self._tasks[self._responses.plan(keys[0].sample).example_key],
            self._config.rollout.max_new_tokens,
        )
        self._count += 1
        self._whole_at[keys[0].sample.group] = time.monotonic()
        items = tuple(
            item_of(
                f"train/{key.sample.group}/{key.sample.place}", Episode(task, (self._responses.whole(key),)), longest
            )
            for key in keys
        )
        known = self._journal.at([item.place for item in items]) if self._journal else ()
        job = self._scores[self._count] = ScoreJob(self._count, tuple(keys), items, known)
        self._fleet.score(job)

    def _dispatch(self, worker: str, keys: list[AttemptKey], version: int) -> None:
        self._sampling.update(dict.fromkeys(keys, worker))
        self._sent_at.update(dict.fromkeys(keys, time.monotonic()))
        self._fleet.sample(worker, SampleJob(tuple(keys), tuple(map(self._responses.request, keys)), version))

    def _tell(self, event: Event, then: Callable[[], None] = lambda: None) -> None:
        """Give an event to the schedule. `then` is called after the schedule's decision and before what follows from it."""
        decisions = self._scheduler.handle(event, time.monotonic())
        then()
        for decision in decisions:
            self._obey(decision)
        groups: dict[tuple[str, int, int], list[AttemptKey]] = {}
        for start in (decision for decision in decisions if isinstance(decision, Start)):
            self._responses.begin(start, self._scheduler.groups[start.sample.group].size)
            together = groups.setdefault((start.worker, start.sample.group, start.version), [])
            together.append(AttemptKey(start.sample, start.attempt))
        for (worker, _, version), keys in groups.items():
            self._dispatch(worker, keys, version)
        self._score_whole_groups()

    def _obey(self, decision: Decision) -> None:
        match decision:
            case Stop():
                self._stop(AttemptKey(decision.sample, decision.attempt), decision)
            case Train():
                self._batches.put(self._batch(decision))
                if self._scheduler.over:
                    self._fleet.score_no_more()
            case Drop():
                self._dropped(decision)
            case Replace():
                self._log(f"{decision.worker} hangs and is replaced: {decision.reason}", "warning")
                self._lose(decision.worker)
                self._fleet.replace(decision.worker)

    def _stop(self, key: AttemptKey, stop: Stop) -> None:
        if stop.keep:
            self._stopped.add(key)  # the response goes on to the end of its segment
        elif self._sampling.pop(key, None):
            del self._sent_at[key]
            self._responses.lose(key)
            self._stopped.discard(key)
            self._fleet.withdraw(stop.worker, [key])

    def _lose(self, worker: str) -> None:
        self._workers.discard(worker)
        for key in [key for key, owner in self._sampling.items() if owner == worker]:
            del self._sampling[key], self._sent_at[key]
            self._responses.lose(key)
            self._stopped.discard(key)

    def _dropped(self, drop: Drop) -> None:
        if drop.index is None:
            self._tally.dropped_groups += 1
            self._responses.forget(drop.group)
            self._whole_at.pop(drop.group, None)
            self._log(f"group {drop.group} is not trained on: {drop.reason}", "warning")
        else:
            self._tally.dropped += 1
            self._log(f"response {drop.index} of group {drop.group} is excluded: {drop.reason}", "info")

    def _batch(self, train: Train) -> TrainingBatch:
        trajectories: list[Trajectory] = []
        rows: list[int] = []
        for group, taken in enumerate(train.groups):
            places = {place: len(trajectories) + i for i, place in enumerate(taken.rows[: taken.valid])}
            trajectories += self._responses.taken(taken.number, list(places), group)
            rows += [places[place] for place in taken.rows]
        tally, self._tally = self._tally, _Tally()
        whole_at = max((self._whole_at.pop(taken.number, 0.0) for taken in train.groups), default=0.0)
        return TrainingBatch(
            trajectories,
            rows,
            [age for taken in train.groups for age in taken.staleness],
            tally.dropped,
            tally.dropped_groups,
            tally.busy_s / tally.present_s if tally.present_s else None,
            time.monotonic() - max(self._asked_at, whole_at),
            len(self._scheduler.complete),
            self._clock.taken()
            | {
                "sizes": [len(taken.rows) for taken in train.groups],
                "scoring_s": tally.scoring_s,
                "transit_s": tally.transit_s,
                **tally.spent.written(),
            },
        )

    def _publish(self, version: int, weights: Weights) -> None:
        self._digests[version] = digest_of(weights)
        self._fleet.publish(version, weights)

    def _remember(self) -> None:
        self._snapshot = _Snapshot(
            self._scheduler.state_dict(), self._responses.snapshot(), self._scheduler.oldest_needed()
        )
