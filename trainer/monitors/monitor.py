"""The object that the training loops call: it numbers, stores, prints and sends events."""

import time
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from trainer.contracts import (
    AlarmData,
    ArtifactData,
    DevicesData,
    Histogram,
    LogData,
    MetricsData,
    ProgressData,
    RolloutRecord,
    RolloutsData,
    SpansData,
    StateData,
)
from trainer.contracts.events import TERMINAL_STATES, EventData
from trainer.storing import ObjectStore, StorageAway

from . import large_records
from .console import Console
from .sink import Command, HttpSink
from .spool import Spool, disk_is_full
from .worker_thread import Behind

Records = Sequence[RolloutRecord] | Callable[[], Sequence[RolloutRecord]]
"""Records, or a function that makes them."""
_PROGRESS_EVERY_S = 1.0
_ROLLOUT_EVENT_BYTES = 1_000_000
_LARGEST_RECORD_BYTES = 2_000_000  # half of what a post may carry

Written = TypeVar("Written")


class RunMonitor:
    """The monitor of a run. `sink` and `console` are optional: a run without a server only writes its spool.

    `store` is the place that files of the run's folder are sent to before an event names them.
    """

    def __init__(
        self,
        spool: Spool,
        sink: HttpSink | None = None,
        console: Console | None = None,
        retry_s: float = 2.0,
        store: ObjectStore | None = None,
    ) -> None:
        self._spool, self._sink, self._console, self._retry_s = spool, sink, console, retry_s
        self._store = store
        self._stop = False
        self.also_stops: Callable[[], bool] = lambda: False
        """A further reason to stop, asked beside the server's."""
        spool.give_up = lambda: self.command != "continue"
        self._behind = Behind()
        self._last_progress = 0.0
        self._last_phase = ""

    def metrics(self, step: int, values: dict[str, float], histograms: dict[str, Histogram] | None = None) -> None:
        """Values that are not finite are left out: an undefined value is missing, never zero."""
        finite = {key: value for key, value in values.items() if abs(value) < float("inf")}
        if finite or histograms:
            self._emit(MetricsData(values=finite, histograms=histograms or {}), step)

    def rollouts(self, step: int, records: Records) -> None:
        """Record rollouts, cut into events well below the size that one post may carry.

        If `records` is a function, the records are made and written in another thread, in order; `flush`, states and `close` wait
        for them. Raises LeftUndone for earlier records.
        """
        if callable(records):
            self._behind.put(lambda: self._write_rollouts(step, records()), f"Records of responses of step {step}")
        else:
            self._write_rollouts(step, records)

    def flush(self) -> None:
        """Wait until all records are written, and all events on the disk. Raises LeftUndone, which names the records that are not."""
        try:
            self._behind.flush()
        finally:
            self._spool.sync()

    def _write_rollouts(self, step: int, records: Sequence[RolloutRecord]) -> None:
        part: list[RolloutRecord] = []
        size = 0
        for record in records:
            length = large_records.size(record)
            if part and size + length > _ROLLOUT_EVENT_BYTES:
                self._emit(RolloutsData(rollouts=tuple(part)), step)
                part, size = [], 0
            if length > _LARGEST_RECORD_BYTES:
                turns, record = large_records.split(record, _LARGEST_RECORD_BYTES)
                for event in turns:
                    self._emit(event, step)
                length = large_records.size(record)
            part.append(record)
            size += length
        if part:
            self._emit(RolloutsData(rollouts=tuple(part)), step)

    def log(self, message: str, step: int = 0, level: Literal["debug", "info", "warning", "error"] = "info") -> None:
        self._emit(LogData(level=level, message=message), step)

    def alarm(self, step: int, alarm: AlarmData) -> None:
        self._emit(alarm, step)

    def spans(self, step: int, spans: SpansData) -> None:
        self._emit(spans, step)

    def devices(self, learner: str, sampler: str) -> None:
        self._emit(DevicesData(learner=learner, sampler=sampler), 0)

    def progress(self, step: int, phase: str, done: int, total: int, eta_s: float | None) -> None:
        """Report progress, at most once a second for each phase, and always at a phase's first call."""
        now = time.monotonic()
        if phase == self._last_phase and now - self._last_progress < _PROGRESS_EVERY_S:
            return
        self._last_progress, self._last_phase = now, phase
        self._emit(ProgressData(phase=phase, done=done, total=total, eta_s=eta_s), step)

    def state(
        self,
        state: Literal["running", "paused", "stopped", "finished", "failed"],
        reason: str = "",
        step: int = 0,
        summary: dict[str, float] | None = None,
        lost: bool = False,
    ) -> None:
        if state in TERMINAL_STATES:
            self._behind.wait()  # no event comes after the end
        self._emit(StateData(state=state, reason=reason, summary=summary or {}, lost=lost), step)

    def artifact(self, artifact: ArtifactData, step: int) -> None:
        """Record an artifact. Raises StorageAway if the run was told to stop and its storage does not answer either."""
        self._emit(self._sent(artifact, step), step)

    def _sent(self, artifact: ArtifactData, step: int) -> ArtifactData:
        """The artifact once it is in the artifact store, if there is one. The run waits for a store that does not answer, and the log says
        so.
        """
        if self._store is None:
            return artifact
        waited = False
        while True:
            try:
                files = self._store.keep(self._spool.path.parent / artifact.path, artifact.path)
            except StorageAway as error:
                if self.command != "continue":
                    raise
                if not waited:
                    self.log(
                        f"{artifact.path} cannot be stored: {error}. It is tried again until it succeeds",
                        step,
                        "warning",
                    )
                    waited = True
                time.sleep(self._retry_s)
                continue
            if waited:
                self.log(f"{artifact.path} is stored: the artifact store answers again", step)
            return artifact.model_copy(update={"files": files})

    def patiently(self, write: Callable[[], Written], step: int) -> Written:
        """Call `write` until the disk has room for it, in state `paused` meanwhile. Gives up if the run is told to stop."""
        paused = False
        while True:
            try:
                result = write()
            except Exception as error:  # libraries that write have errors of their own
                if not disk_is_full(error) or self.command != "continue":
                    raise
                if not paused:
                    self._spool.pause(step)
                    paused = True
                time.sleep(self._retry_s)
                continue
            if paused:
                self._spool.unpause(step)
            return result

    def request_stop(self) -> None:
        """Ask for a stop as the server's `stop` does; the signal handler calls this."""
        self._stop = True

    @property
    def command(self) -> Command:
        if self._sink and self._sink.command != "continue":
            return self._sink.command
        return "stop" if self._stop or self.also_stops() else "continue"

    def close(self) -> bool:
        """Deliver the rest. True if the server has everything, or, without a server, the disk has."""
        self._behind.close()
        written = self._spool.settle()
        delivered = self._sink.close() if self._sink else written
        self._spool.close()
        return delivered

    def _emit(self, data: EventData, step: int) -> None:
        event = self._spool.append(data, step)
        if self._sink:
            self._sink.notify()
        if self._console:
            self._console.show(event)
