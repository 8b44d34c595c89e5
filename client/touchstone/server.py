"""The server for programs: a method for each operation of its API, and those that take several requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .api import Groups
from .calling import new_key
from .http import AGAIN, ApiError, Away, pause_s

if TYPE_CHECKING:  # a group is loaded when it is first used
    from .api.runs import LaunchedOut, LogLineOut, MetricPointOut

LONGEST_SILENCE_S = 60.0  # a feed sends something every quarter of a minute
OVER = ("finished", "failed", "stopped")  # states of a run


class Server(Groups):
    """A server of Touchstone, such as `Server().runs.get(7)`."""

    def follow(self, run: int) -> Iterator[dict[str, Any]]:
        """The messages about a run, as docs/api.md lists them, until the run is over. After an interruption they begin again with a message
        `now`: a program that draws curves then loads the missing points. Raises ApiError, Away."""
        failed = 0
        while True:
            try:
                for name, told in self.events(f"/runs/{run}/feed", silence_s=LONGEST_SILENCE_S, tries=1):
                    failed = 0
                    yield told
                    if name == "gone" or (name in ("now", "run") and told["state"] in OVER):
                        return
            except (Away, ApiError) as error:
                failed += 1
                if failed == self.tries or (isinstance(error, ApiError) and error.status not in AGAIN):
                    raise
            self.sleep(pause_s(failed))

    def launch(self, body: dict[str, Any], key: str | None = None) -> LaunchedOut:
        """Launches a run once, even if the request has to be tried several times. Raises ApiError with every field that is wrong."""
        return cast("LaunchedOut", self.post("/runs", body, key=key or new_key()))

    def points(self, run: int, key: str, after_step: int | None = None) -> Iterator[MetricPointOut]:
        """Every point of a metric, in the order of steps."""
        while True:
            page = self.runs.metrics(run, key=key, after_step=after_step)
            yield from page["points"]
            if (after_step := page["next"]) is None:
                return

    def log(self, run: int, after_seq: int | None = None) -> Iterator[LogLineOut]:
        """The newest lines of a run's log, or every line after one of them."""
        while lines := self.runs.log(run, after_seq=after_seq)["lines"]:
            yield from lines
            if after_seq is None:
                return
            after_seq = lines[-1]["seq"]

    def import_file(self, path: Path, name: str = "", **form: Any) -> dict[str, Any]:
        """Sends a file as a version of a dataset. Returns the import's job, which continues at `/imports/ID`. The same content again is the
        same version, so the file is also sent again if it may have arrived. Raises ApiError, Away, OSError."""
        job: dict[str, Any] = self.sent_file("/datasets/import", path, again=True, name=name or path.stem, **form)
        return job

    def imported(self, job: dict[str, Any], every_s: float = 2.0) -> dict[str, Any]:
        """Waits until an import is over, and returns its job."""
        while job["state"] in ("queued", "running"):
            self.sleep(every_s)
            job = self.get(f"/imports/{job['id']}")
        return job
