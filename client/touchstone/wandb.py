"""`import touchstone.wandb as wandb`: with this one changed line, a program that logs to W&B logs here instead.

It knows `init`, `log`, `config`, `summary`, `Table`, `Histogram`, `Artifact`, `alert`, `save`, `finish` and `Settings`. Everything is first
written to disk (`spool`), so that nothing is lost if the server is away or the program dies. `touchstone sync` sends the rest. Other names
do nothing and say so once (`unsupported`).
"""

import atexit
import glob
import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from . import last_words
from .artifact import Artifact as Artifact
from .artifact import Table as Table
from .distributions import Histogram as Histogram
from .server import Server
from .spool import Background, Sender, Spool, now_ms
from .unsupported import Unsupported, once, standing_for
from .values import flatten, number, word
from .wandb_alias import install
from .wandb_config import Config, Summary, given_config
from .wandb_config import Error as Error
from .wandb_config import UsageError as UsageError

logger = logging.getLogger(__name__)
__path__: list[str] = []  # other packages import modules below wandb when this one is in its place
install()
ALERT = "touchstone.alert."  # the tags that the server takes as alerts: see webapp/tracking/alerts.py
ALERT_WAIT_S = 60.0
FINISH_S = 60.0  # how long `finish` waits for the server; the rest waits on disk
DEFAULT_PROJECT = "uncategorized"
LONGEST_PROJECT = 120  # characters of the name of an experiment
MODES = ("online", "offline", "disabled")
RUN_PAGE_S = 10.0  # how long `url` waits until the server knows the run
errors = SimpleNamespace(Error=Error, UsageError=UsageError, CommError=Error, AuthenticationError=Error)


class AlertLevel:
    INFO, WARN, ERROR = "INFO", "WARN", "ERROR"


class Settings(dict[str, Any]):
    """Accepts all settings and ignores them, because they are about W&B's own service."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)


class Run:
    """One run. `log` returns at once, because a thread sends the spool."""

    def __init__(self, spool: Spool | None, name: str, project: str, mode: str, server: Server | None) -> None:
        self.name, self.project, self.mode = name, project, mode
        self.config, self.summary = Config(self.keep), Summary()
        self.step, self._last, self.start_time = 0, 0, time.time()
        self.group = self.job_type = self.notes = self.entity = ""
        self.sweep_id, self.resumed, self._tags = None, False, tuple[str, ...]()
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

    @property
    def offline(self) -> bool:
        return self.mode == "offline"

    @property
    def disabled(self) -> bool:
        return self.mode == "disabled"

    @property
    def path(self) -> str:
        return "/".join(filter(None, (self.entity, self.project, self.id)))

    @property
    def dir(self) -> str:
        """A folder in which the program may write. Its files are not sent: `save` sends a file."""
        if not self._spool:
            return os.getcwd()
        (self._spool.folder / "files").mkdir(exist_ok=True)
        return str(self._spool.folder / "files")

    @property
    def url(self) -> str | None:
        """The page of the run; None if the server does not know the run yet, and for a run that is not sent."""
        deadline = time.monotonic() + RUN_PAGE_S
        while self._sender and self._thread and not self._sender.run:
            if self._sender.problem or time.monotonic() > deadline or not self._thread.is_alive():
                return None
            time.sleep(0.05)
        return f"{self._sender.server.address}/mlflow/runs/{self._sender.run}" if self._sender else None

    def get_url(self) -> str | None:
        return self.url

    def project_name(self) -> str:
        return self.project

    @property
    def tags(self) -> tuple[str, ...]:
        return self._tags

    @tags.setter
    def tags(self, tags: Sequence[str] | None) -> None:
        """Adds tags. The server keeps those that are no longer among them."""
        fresh = [tag for tag in tags or () if tag not in self._tags]
        if gone := [tag for tag in self._tags if tag not in (tags or ())]:
            once("the tag %s stays at the run: tags are only added", gone[0])
        self._tags = (*self._tags, *fresh)
        if fresh:
            self.keep("batch", body={"tags": tags_of(fresh)})

    def keep(self, do: str, **said: Any) -> None:
        """A full disk does not end the program: a warning says what is lost."""
        if not self._spool:
            return
        try:
            self._spool.add(do, **said)
        except OSError as error:
            once(
                "values of this run are lost, because %s cannot be written: %s",
                self._spool.folder,
                error.strerror or error,
            )

    def about(self, known: Mapping[str, Any]) -> None:
        """Keeps the arguments of `init`."""
        for name, value in known.items():
            setattr(self, name, value)

    def log(self, data: Mapping[str, Any], step: int | None = None, commit: bool | None = None, **_: Any) -> None:
        """Adds to the current step. Without `step`, or with `commit`, the step is complete and the next begins. As with W&B, nothing can be
        added to a past step."""
        if self._ended:
            raise UsageError("This run is finished.")
        last_words.goes_on()
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
        self._last = self.step
        metrics, at = list[dict[str, Any]](), now_ms()
        for key, value in flatten(self._with_quantiles()):
            if isinstance(value, Table):
                self._file(f"tables/{key}-{self.step}.table.json", value.text().encode())
            elif (found := number(value)) is not None:
                metrics.append({"key": key[:250], "value": word(found), "step": self.step, "timestamp": at})
                self.summary.logged(key, found)
            elif isinstance(value, str):
                self.keep("batch", body={"tags": [{"key": key[:250], "value": value[:8_000]}]})
            elif value is not None:
                kind = value._name if isinstance(value, Unsupported) else type(value).__name__
                once("%s is not logged: it is a %s", key, kind)
        for start in range(0, len(metrics), 900):
            self.keep("metrics", metrics=metrics[start : start + 900])
        self._row = {}

    def _with_quantiles(self) -> dict[str, Any]:
        """The values of the step, with the quantiles of a histogram in its place."""
        found = dict[str, Any]()
        for key, value in flatten(self._row):
            if not isinstance(value, Histogram):
                found[key] = value
            elif value.quantiles:
                found |= {f"{key}/{name}": number for name, number in value.quantiles.items()}
            else:
                once("the histogram %s is not logged at steps at which it has no values", key)
        return found

    def _file(self, path: str, content: bytes | Path) -> None:
        if not self._spool:
            return
        kept = f"{uuid4().hex}.bin"
        try:
            if isinstance(content, Path):
                shutil.copyfile(content, self._spool.folder / kept)
            else:
                (self._spool.folder / kept).write_bytes(content)
        except OSError as error:
            (self._spool.folder / kept).unlink(missing_ok=True)
            once("the file %s is not kept: %s", path, error.strerror or error)
            return
        self.keep("file", path=path, kept=kept)

    def save(
        self, path: str | os.PathLike[str], base_path: str | os.PathLike[str] | None = None, **_: Any
    ) -> list[str]:
        """Sends files along with the run: the file, or those that a pattern such as `*.json` finds, under their paths below `base_path`."""
        found = [each for each in sorted(glob.glob(str(path), recursive=True)) if os.path.isfile(each)]
        if not found:
            once("no file is saved: there is none at %s", path)
        for each in found:
            self._file(os.path.relpath(each, base_path) if base_path else os.path.basename(each), Path(each))
        return found

    def log_artifact(
        self,
        artifact: Any,
        name: str | None = None,
        type: str | None = None,
        aliases: Sequence[str] | None = None,
        **_: Any,
    ) -> Artifact:
        """Sends the files of an artifact, or a file or folder as one, below `artifacts/NAME`. A tag of the run has its type, aliases and
        metadata. If an artifact of the name is logged again, files of the same path replace those before."""
        found = artifact if isinstance(artifact, Artifact) else _artifact(Path(artifact), name, type)
        for path, file in found.files.items():
            self._file(f"artifacts/{found.name}/{path}", file)
        told = {
            "type": found.type,
            "aliases": list(aliases or ()),
            "description": found.description,
            "metadata": found.metadata,
        }
        words = json.dumps({key: value for key, value in told.items() if value}, default=str)[:8_000]
        self.keep("batch", body={"tags": [{"key": f"artifact.{found.name}"[:250], "value": words}]})
        return found

    def log_model(self, path: Any, name: str | None = None, aliases: Sequence[str] | None = None, **_: Any) -> Artifact:
        return self.log_artifact(Path(path), name=name, type="model", aliases=aliases)

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
        self.step, self._alerts, self.resumed = step, alerts, True

    def finish(self, exit_code: int | None = None, **_: Any) -> None:
        """Sends the rest and ends the run. What the server has not accepted within a minute waits on disk for `touchstone sync`."""
        self._end(last_words.of_status(exit_code))

    def _end(self, why: str) -> None:
        """`why` it failed; empty: it has finished."""
        if self._ended:
            return
        with self._lock:
            if self._row:
                self._commit()
            self.config.send()
            self._keep_summary()
            if why:
                self.keep("batch", body={"tags": [{"key": last_words.ERROR, "value": why}]})
            self.keep("end", body={"status": "FAILED" if why else "FINISHED", "end_time": now_ms()})
            self._ended = True
        self._close()
        global run
        if run is self:
            run = None

    def _keep_summary(self) -> None:
        numbers, words = self.summary.said()
        at, step = now_ms(), self._last
        for key, value in numbers.items():
            point = {"key": key[:250], "value": word(value), "step": step, "timestamp": at}
            self.keep("metrics", metrics=[point])
        for key, text in words.items():
            self.keep("batch", body={"tags": [{"key": f"summary.{key}"[:250], "value": text[:8_000]}]})

    def _close(self) -> None:
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

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: Any) -> None:
        self._end(last_words.of_error(error) if error else "")

    def watch(self, *_: Any, **__: Any) -> None:
        once("watch does nothing: gradients are not logged")

    def unwatch(self, *_: Any, **__: Any) -> None:
        pass

    _label = unwatch  # transformers tells by it which trainer it is

    def define_metric(self, name: str, step_metric: Any = None, **_: Any) -> None:
        if step_metric is not None:
            once(
                "charts are drawn over the steps of log: define_metric changes nothing (%s over %s)", name, step_metric
            )

    def __getattr__(self, name: str) -> Any:
        return _missing(name, "run")


def _missing(name: str, of: str) -> Any:
    """A stand-in for a name that is not here. Raises AttributeError for names of Python's own."""
    if name.startswith("_"):
        raise AttributeError(name)
    return standing_for(f"{of}.{name}")


def _artifact(path: Path, name: str | None, type: str | None) -> Artifact:
    made = Artifact(name or path.name, type or "unspecified")
    if path.is_dir():
        made.add_dir(path)
    else:
        made.add_file(path)
    return made


def tags_of(tags: Iterable[str]) -> list[dict[str, str]]:
    return [{"key": f"tag.{tag}"[:250], "value": "yes"} for tag in tags]


run: Run | None = None


def init(
    project: str | None = None,
    name: str | None = None,
    config: Any = None,
    id: str | None = None,
    resume: str | bool | None = None,
    mode: str | None = None,
    tags: Sequence[str] | None = None,
    notes: str | None = None,
    group: str | None = None,
    job_type: str | None = None,
    reinit: bool | str | None = None,
    server: Server | None = None,
    **given: Any,
) -> Run:
    """Begins a run, in the experiment `project`. With `id` and `resume` it continues with one that this machine has begun."""
    global run
    if run is not None:
        if not reinit:
            return run
        run.finish()
    mode = mode or os.environ.get("WANDB_MODE") or "online"
    mode = "online" if mode == "shared" else mode
    if mode not in MODES:
        raise UsageError(f"mode must be one of {', '.join(MODES)}, not {mode!r}.")
    for part in ("fork_from", "resume_from", "sync_tensorboard"):
        if given.get(part):
            once("init(%s=...) does nothing here", part)
    project = (project or os.environ.get("WANDB_PROJECT") or DEFAULT_PROJECT)[:LONGEST_PROJECT]
    name = name or os.environ.get("WANDB_NAME") or ""
    about = {"notes": notes, "group": group or os.environ.get("WANDB_RUN_GROUP"), "job_type": job_type}
    run = _begun(id or os.environ.get("WANDB_RUN_ID"), resume, mode, project, name, about, tags or (), server)
    run.about({key: value or "" for key, value in about.items()} | {"entity": given.get("entity") or ""})
    run.config.update(given_config(config, given.get("config_exclude_keys"), given.get("config_include_keys")))
    last_words.listen()
    atexit.register(_at_exit, run)
    return run


def _begun(
    known: str | None,
    resume: str | bool | None,
    mode: str,
    project: str,
    name: str,
    about: Mapping[str, str | None],
    tags: Sequence[str],
    server: Server | None,
) -> Run:
    if mode == "disabled":
        return Run(None, name, project, mode, None)
    spool, begun, alerts = _spool(known, resume or os.environ.get("WANDB_RESUME"))
    made = Run(spool, name, project, mode, (server or Server()) if mode == "online" else None)
    if begun:
        made.continues(begun, alerts)
        made.keep("batch", body={"tags": [{"key": "resumed", "value": str(now_ms())}]})
        made.keep("end", body={"status": "RUNNING"})
    else:
        said = [{"key": key, "value": value} for key, value in about.items() if value]
        made.keep("begin", experiment=project, name=name, tags=said, at=now_ms(), key=spool.folder.name)
    made.tags = tuple(tags)
    return made


def _at_exit(begun: Run) -> None:
    """Ends a run that its program has not ended."""
    begun._end(last_words.at_exit())


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


def log(data: Mapping[str, Any], step: int | None = None, commit: bool | None = None, **_: Any) -> None:
    _active().log(data, step, commit)


def alert(title: str, text: str = "", level: str = AlertLevel.INFO, **given: Any) -> None:
    _active().alert(title, text, level, **given)


def save(path: str | os.PathLike[str], base_path: str | os.PathLike[str] | None = None, **_: Any) -> list[str]:
    return _active().save(path, base_path)


def log_artifact(
    artifact: Any, name: str | None = None, type: str | None = None, aliases: Sequence[str] | None = None
) -> Artifact:
    return _active().log_artifact(artifact, name, type, aliases)


def log_model(path: Any, name: str | None = None, aliases: Sequence[str] | None = None) -> Artifact:
    return _active().log_model(path, name, aliases)


def define_metric(name: str, step_metric: Any = None, **given: Any) -> None:
    _active().define_metric(name, step_metric, **given)


def finish(exit_code: int | None = None, **_: Any) -> None:
    if run is not None:
        run.finish(exit_code)


def watch(*_: Any, **__: Any) -> None:
    once("watch does nothing: gradients are not logged")


def unwatch(*_: Any, **__: Any) -> None:
    pass


def login(*_: Any, **__: Any) -> bool:
    """Whether a token is known: `touchstone login` or TOUCHSTONE_TOKEN gives one. Keys of W&B are not used."""
    return bool(Server().token)


def setup(*_: Any, **__: Any) -> None:
    pass


teardown = require = ensure_configured = setup


def termlog(text: str = "", **_: Any) -> None:
    logger.info("%s", text)


def termwarn(text: str = "", **_: Any) -> None:
    logger.warning("%s", text)


termerror = termwarn


def __getattr__(name: str) -> Any:
    """`wandb.config` and `wandb.summary` are those of the current run. Other names that are not here stand for something that does nothing."""
    if name in ("config", "summary"):
        return getattr(_active(), name)
    return _missing(name, "wandb")
