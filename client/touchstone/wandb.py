"""`import touchstone.wandb as wandb`: with this one changed line, a program that logs to W&B logs here instead.

It knows `init`, `log`, `config`, `summary`, `Table`, `Histogram`, `alert`, `save`, `finish` and `Settings`. Everything is first written to disk
(`spool`), so that nothing is lost if the server is away or the program dies. `touchstone sync` sends the rest.
"""

import atexit
import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from .distributions import Histogram as Histogram
from .server import Server
from .spool import Background, Sender, Spool, now_ms
from .values import flat, number, word

logger = logging.getLogger(__name__)
ALERT = "touchstone.alert."  # the tags that the server takes as alerts: see webapp/tracking/alerts.py
ALERT_WAIT_S = 60.0
FINISH_S = 60.0  # how long `finish` waits for the server; the rest waits on disk
LONGEST = 6_000  # characters of a value of the config
DEFAULT_PROJECT = "uncategorized"
MODES = ("online", "offline", "disabled")


class UsageError(Exception):
    """The program asks for something that is not possible."""


class Table:
    """Rows under named columns, kept as a file of the run."""

    def __init__(
        self, columns: Sequence[str] = (), data: Iterable[Sequence[Any]] = (), dataframe: Any = None, **_: Any
    ) -> None:
        if dataframe is not None:
            columns, data = [str(name) for name in dataframe.columns], dataframe.values.tolist()
        self.columns, self.data = list(columns), list[list[Any]]()
        for row in data:
            self.add_data(*row)

    def add_data(self, *row: Any) -> None:
        """Raises UsageError if the row does not fit the columns."""
        if len(row) != len(self.columns):
            raise UsageError(f"A row of {len(row)} values does not fit {len(self.columns)} columns.")
        self.data.append(list(row))

    def text(self) -> str:
        return json.dumps({"columns": self.columns, "data": self.data}, default=str)


class AlertLevel:
    INFO, WARN, ERROR = "INFO", "WARN", "ERROR"


class Settings(dict[str, Any]):
    """Accepts all settings and ignores them, because they are about W&B's own service."""


class Config(dict[str, Any]):
    """The run's config. A value that was sent never changes. A value that was set before the first `log` may be set again."""

    def __init__(self, run: "Run") -> None:
        super().__init__()
        self._run, self._sent = run, dict[str, str]()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            super().__setattr__(name, value)
        else:
            self[name] = value

    def update(self, *given: Any, allow_val_change: bool = False, **named: Any) -> None:
        news = dict(*given, **named)
        changed = [key for key, value in news.items() if key in self and self[key] != value]
        if changed and not allow_val_change:
            raise UsageError(
                f"config.{changed[0]} is already {self[changed[0]]!r}; pass allow_val_change=True to change it."
            )
        super().update(news)

    def setdefaults(self, given: Mapping[str, Any]) -> None:
        for key, value in given.items():
            self.setdefault(key, value)

    def send(self) -> None:
        """Sends the values that are new since the last time, in pieces that the server accepts."""
        texts = {key: str(value)[:LONGEST] for key, value in flat(self)}
        changed = [key for key, text in texts.items() if self._sent.get(key, text) != text]
        for key in changed:
            logger.warning(
                "config.%s stays %s: it was already sent, and a config cannot change after that", key, self._sent[key]
            )
        news = [(key, text) for key, text in texts.items() if key not in self._sent]
        for start in range(0, len(news), 100):
            part = [{"key": key, "value": text} for key, text in news[start : start + 100]]
            self._run.keep("batch", body={"params": part})
        self._sent |= dict(news)


class Run:
    """One run. `log` returns at once, because a thread sends the spool."""

    def __init__(self, spool: Spool | None, name: str, project: str, mode: str, server: Server | None) -> None:
        self.name, self.project, self.mode = name, project, mode
        self.config, self.summary = Config(self), dict[str, Any]()
        self.step = 0
        self._spool, self._row = spool, dict[str, Any]()
        self._lock = threading.RLock()
        self._ended, self._alerts, self._alerted = False, 0, dict[str, float]()
        self._sender = Sender(server, spool) if server and spool else None
        self._thread = Background(self._sender) if self._sender else None
        if self._thread:
            self._thread.start()

    @property
    def id(self) -> str:
        """The id with which `init(id=..., resume=...)` continues the run."""
        return self._spool.folder.name if self._spool else ""

    def keep(self, do: str, **said: Any) -> None:
        if self._spool:
            self._spool.add(do, **said)

    def log(self, data: Mapping[str, Any], step: int | None = None, commit: bool | None = None) -> None:
        """Adds to the current step. Without `step`, or with `commit`, the step is complete and the next begins. As with W&B, nothing can be
        added to a past step."""
        if self._ended:
            raise UsageError("This run is finished.")
        with self._lock:
            if step is not None and step < self.step:
                logger.warning("step %d is not logged: the run is already at step %d", step, self.step)
                return
            if step is not None and step > self.step:
                self._commit()
                self.step = step
            self._row |= data
            if commit if commit is not None else step is None:
                self._commit()
                self.step += 1

    def _commit(self) -> None:
        self.config.send()
        metrics, at = list[dict[str, Any]](), now_ms()
        for key, value in flat(self._with_quantiles()):
            if isinstance(value, Table):
                self._file(f"tables/{key}-{self.step}.table.json", value.text().encode())
            elif (found := number(value)) is not None:
                metrics.append({"key": key[:250], "value": word(found), "step": self.step, "timestamp": at})
                self.summary[key] = found
            elif isinstance(value, str):
                self.keep("batch", body={"tags": [{"key": key[:250], "value": value[:8_000]}]})
            else:
                logger.warning("%s of step %d is a %s, which is not logged", key, self.step, type(value).__name__)
        for start in range(0, len(metrics), 900):
            self.keep("metrics", metrics=metrics[start : start + 900])
        self._row = {}

    def _with_quantiles(self) -> dict[str, Any]:
        """The values of the step, with the quantiles of a histogram in its place."""
        found = dict[str, Any]()
        for key, value in flat(self._row):
            if not isinstance(value, Histogram):
                found[key] = value
            elif value.quantiles:
                found |= {f"{key}/{name}": number for name, number in value.quantiles.items()}
            else:
                logger.warning("the histogram %s of step %d has no values", key, self.step)
        return found

    def _file(self, path: str, content: bytes) -> None:
        if not self._spool:
            return
        kept = f"{uuid4().hex}.bin"
        (self._spool.folder / kept).write_bytes(content)
        self.keep("file", path=path, kept=kept)

    def save(self, path: str | os.PathLike[str], **_: Any) -> None:
        """Sends a file along with the run, under its name."""
        if self._spool:
            kept = f"{uuid4().hex}.bin"
            shutil.copyfile(path, self._spool.folder / kept)
            self.keep("file", path=Path(path).name, kept=kept)

    def alert(
        self,
        title: str,
        text: str = "",
        level: str = AlertLevel.INFO,
        wait_duration: float | timedelta | None = ALERT_WAIT_S,
        **_: Any,
    ) -> None:
        """Tells the people who watch the run, and webhooks. The page of the run shows it as a tag.

        After an alert, those with the same title are left out for `wait_duration` seconds.
        """
        wait = wait_duration.total_seconds() if isinstance(wait_duration, timedelta) else wait_duration or 0.0
        now = time.monotonic()
        if title in self._alerted and now - self._alerted[title] < wait:
            logger.info("the alert %r was sent less than %g seconds ago, so it is left out", title, wait)
            return
        self._alerted[title] = now
        self._alerts += 1
        said = json.dumps({"title": str(title)[:200], "text": str(text)[:4_000], "level": str(level)})
        self.keep("batch", body={"tags": [{"key": f"{ALERT}{self._alerts}", "value": said}]})

    def continues(self, step: int, alerts: int) -> None:
        """Continues the numbers of steps and alerts of a run that this machine has begun."""
        self.step, self._alerts = step, alerts

    def finish(self, exit_code: int | None = None, **_: Any) -> None:
        """Sends the rest and ends the run. What the server has not accepted within a minute waits on disk for `touchstone sync`."""
        if self._ended:
            return
        with self._lock:
            if self._row:
                self._commit()
            self.config.send()
            for key, value in self.summary.items():
                if isinstance(value, str):
                    self.keep("batch", body={"tags": [{"key": f"summary.{key}"[:250], "value": value[:8_000]}]})
            self.keep("end", body={"status": "FAILED" if exit_code else "FINISHED", "end_time": now_ms()})
            self._ended = True
        if self._thread and self._sender and self._spool:
            left = self._thread.close(FINISH_S)
            for why in self._sender.refused:
                logger.warning("the server refused: %s", why)
            if left:
                logger.warning(
                    "%d lines of %s wait in %s: %s `touchstone sync` sends them later.",
                    left,
                    self.name,
                    self._spool.folder,
                    self._sender.problem,
                )
        if self._spool:
            self._spool.release()
        global run
        if run is self:
            run = None

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        self.finish(exit_code=1 if kind else 0)

    def watch(self, *_: Any, **__: Any) -> None:
        """Gradients are not logged."""

    def define_metric(self, *_: Any, **__: Any) -> None:
        """Charts are drawn over steps."""


run: Run | None = None


def init(
    project: str | None = None,
    name: str | None = None,
    config: Mapping[str, Any] | None = None,
    id: str | None = None,
    resume: str | bool | None = None,
    mode: str | None = None,
    tags: Sequence[str] | None = None,
    notes: str | None = None,
    group: str | None = None,
    job_type: str | None = None,
    reinit: bool | str | None = None,
    server: Server | None = None,
    **_: Any,
) -> Run:
    """Begins a run, in the experiment `project`. With `id` and `resume` it continues with one that this machine has begun."""
    global run
    if run is not None:
        if not reinit:
            return run
        run.finish()
    mode = mode or os.environ.get("WANDB_MODE") or "online"
    if mode not in MODES:
        raise UsageError(f"mode must be one of {', '.join(MODES)}, not {mode!r}.")
    project = project or os.environ.get("WANDB_PROJECT") or DEFAULT_PROJECT
    name = name or os.environ.get("WANDB_NAME") or ""
    if mode == "disabled":
        run = Run(None, name, project, mode, None)
    else:
        spool, begun, alerts = _spool(id, resume)
        run = Run(spool, name, project, mode, (server or Server()) if mode == "online" else None)
        if begun:
            run.continues(begun, alerts)
            run.keep("batch", body={"tags": [{"key": "resumed", "value": str(now_ms())}]})
            run.keep("end", body={"status": "RUNNING"})
        else:
            about = {"notes": notes, "group": group, "job_type": job_type}
            said = [{"key": key, "value": value} for key, value in about.items() if value]
            said += [{"key": f"tag.{tag}"[:250], "value": "yes"} for tag in tags or ()]
            run.keep("begin", experiment=project, name=name, tags=said, at=now_ms(), key=spool.folder.name)
    run.config.update(dict(config or {}))
    atexit.register(run.finish)
    return run


def _spool(known: str | None, resume: str | bool | None) -> tuple[Spool, int, int]:
    """The spool, the step at which a run continues (0: it begins), and the number of its alerts so far. Raises UsageError."""
    if known is not None and not (0 < len(known) <= 64 and known.replace("-", "").replace("_", "").isalnum()):
        raise UsageError("id must have 1 to 64 letters, digits, - and _.")
    spool = Spool.new(known)
    if not spool.take():
        raise UsageError(f"Another program is logging to the run {known!r} now.")
    lines = spool.after(0)
    if not any(line["do"] == "begin" for line in lines):
        if resume == "must":
            raise UsageError(f"No run {known!r} was started on this machine.")
        return spool, 0, 0
    if resume in (None, False, "never"):
        raise UsageError(f"The run {known!r} was started before; pass resume='allow' to continue it.")
    steps = [each["step"] for line in lines if line["do"] == "metrics" for each in line["metrics"]]
    tags = [each["key"] for line in lines if line["do"] == "batch" for each in line["body"].get("tags", ())]
    return spool, max(steps, default=0) + 1, sum(key.startswith(ALERT) for key in tags)


def _active() -> Run:
    if run is None:
        raise UsageError("Call init() first.")
    return run


def log(data: Mapping[str, Any], step: int | None = None, commit: bool | None = None) -> None:
    _active().log(data, step, commit)


def alert(title: str, text: str = "", level: str = AlertLevel.INFO, **given: Any) -> None:
    _active().alert(title, text, level, **given)


def save(path: str | os.PathLike[str], **_: Any) -> None:
    _active().save(path)


def finish(exit_code: int | None = None, **_: Any) -> None:
    if run is not None:
        run.finish(exit_code)


def watch(*_: Any, **__: Any) -> None:
    """Gradients are not logged."""


def __getattr__(name: str) -> Any:
    """`wandb.config` and `wandb.summary` are those of the current run."""
    if name in ("config", "summary"):
        return getattr(_active(), name)
    raise AttributeError(f"touchstone.wandb has no {name}")
