"""Sends runs that other tools have kept as logged runs: TensorBoard's event files, Trackio's databases, exports of Neptune.

The files are read on this machine; the server gets the same requests as from any program. If they are sent again, they are the same
runs, and only new values are added. Values that a run cannot hold are counted by their kind.
"""

import os
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from . import neptune, tensorboard, trackio
from .http import ApiError
from .server import Server
from .spool import AT_ONCE, Sender, Spool
from .values import flatten, word

LAST_STEP = 2**31 - 1
LONGEST_KEY, LONGEST_PARAM, LONGEST_TAG = 250, 6_000, 8_000  # characters that the server takes
MOST_OUT, MOST_MEMBERS = 16_000_000_000, 100_000  # bytes and files that come out of an archive
KINDS = "neither event files of TensorBoard (*tfevents*), nor a database of Trackio (*.db), nor an export of Neptune (*.parquet)."
Telling = Callable[["Sent"], None]


@dataclass
class Sent:
    """The result of sending one run."""

    tool: str
    experiment: str
    name: str
    run: str
    points: int = 0
    params: int = 0
    unsaid: "Counter[str]" = field(default_factory=Counter)

    def json(self) -> dict[str, Any]:
        return {**vars(self), "unsaid": dict(self.unsaid)}


class Target:
    """A run of the server, begun once for one source on this machine."""

    def __init__(self, server: Server, tool: str, experiment: str, name: str, what: str, began_ms: int) -> None:
        self._server = server
        sender = Sender(server, Spool(Path()))  # only for its requests; nothing is spooled
        key = sha256(f"{tool}\n{what}".encode()).hexdigest()[:64]
        begin = {
            "experiment": experiment,
            "name": name[:120],
            "at": began_ms,
            "tags": [{"key": "imported.from", "value": tool}],
        }
        self._post = sender.post
        self.sent = Sent(tool, experiment, name, sender.begin(begin | {"key": key})["run"])

    def scalars(self, found: Iterator[tensorboard.Scalar]) -> int:
        """Sends the scalars. Returns the time of the last one in milliseconds, 0 if there was none."""
        last = 0
        while batch := list(islice(found, AT_ONCE)):
            rows = []
            for each in batch:
                last = max(last, each.time_ms)
                if 0 <= each.step <= LAST_STEP and 0 < len(each.key) <= LONGEST_KEY:
                    rows.append(
                        {
                            "key": each.key,
                            "value": word(each.value),
                            "step": each.step,
                            "timestamp": max(each.time_ms, 0),
                        }
                    )
                else:
                    self.sent.unsaid["values at steps or with names that a run cannot have"] += 1
            self._batch({"metrics": rows})
            self.sent.points += len(rows)
        return last

    def params(self, config: Mapping[str, Any]) -> None:
        """Sends params. If the run has a param with another value, it keeps that value."""
        rows = []
        for key, value in flatten(config):
            text = "" if value is None else str(value)
            if not 0 < len(key) <= LONGEST_KEY or len(text) > LONGEST_PARAM:
                self.sent.unsaid["config values that are too long"] += 1
            else:
                rows.append({"key": key, "value": text})
        for start in range(0, len(rows), 100):
            try:
                self._batch({"params": rows[start : start + 100]})
                self.sent.params += len(rows[start : start + 100])
            except ApiError as error:
                if error.code != "INVALID_PARAMETER_VALUE":
                    raise
                self.sent.unsaid[f"config values: {error}"] += len(rows[start : start + 100])

    def tags(self, found: Mapping[str, str]) -> None:
        rows = [{"key": key[:LONGEST_KEY], "value": text[:LONGEST_TAG]} for key, text in found.items() if key]
        if cut := sum(len(text) > LONGEST_TAG for text in found.values()):
            self.sent.unsaid[f"ends of texts of more than {LONGEST_TAG:,} characters"] += cut
        for start in range(0, len(rows), 100):
            self._batch({"tags": rows[start : start + 100]})

    def end(self, at_ms: int) -> None:
        self._post(
            "runs/update", {"run_id": self.sent.run, "status": "FINISHED", **({"end_time": at_ms} if at_ms else {})}
        )

    def _batch(self, body: dict[str, Any]) -> None:
        if any(body.values()):
            self._post("runs/log-batch", {"run_id": self.sent.run, **body})


def send(
    server: Server,
    path: Path,
    experiment: str = "",
    follow_s: float = 0.0,
    told: Telling = lambda sent: None,
    passed: Callable[[str], None] = lambda why: None,
) -> list[Sent]:
    """Sends the runs at a path: a file, or a folder or an archive with files of one tool or of several. `passed` hears of each file in it
    that cannot be read. With `follow_s`, event files are read again after that many seconds, until KeyboardInterrupt. Raises ValueError if
    there are no runs."""
    if not path.exists():
        raise ValueError(f"There is nothing at {path}.")
    with unpacked(path) as root:
        home = path.resolve().name.split(".")[0] or "imported"
        folders = tensorboard.folders(root) if root.is_dir() or "tfevents" in root.name else {}
        databases, parquet, problems = _found(root)
        if not (folders or databases or parquet):
            raise ValueError(problems[0] if problems else f"{path} holds no runs: {KINDS}")
        for why in problems:
            passed(why)
        sent = [one for each in databases for one in _trackio(server, each, experiment, told)]
        sent += _neptune(server, parquet, experiment, told)
        return sent + (_event_files(server, root, folders, experiment or home, follow_s, told) if folders else [])


def _found(root: Path) -> tuple[list[trackio.Database], list[Path], list[str]]:
    """The databases of Trackio, the files of Neptune, and why other files of these kinds cannot be read."""
    databases, parquet, problems = list[trackio.Database](), list[Path](), list[str]()
    for each in _files(root):
        try:
            if _is_database(each):
                databases.append(trackio.Database(each))
            elif each.suffix == ".parquet":
                neptune.check(each)
                parquet.append(each)
        except ValueError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"{each} cannot be read: {error.strerror or error}")
    return databases, parquet, problems


def _files(root: Path) -> list[Path]:
    return [root] if root.is_file() else sorted(each for each in root.rglob("*") if each.is_file())


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(trackio.MAGIC)) == trackio.MAGIC


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The path itself, or a temporary folder with the contents of an archive. Raises ValueError if they are too large."""
    if path.is_file() and zipfile.is_zipfile(path):
        with tempfile.TemporaryDirectory(prefix="touchstone-") as folder, zipfile.ZipFile(path) as archive:
            _check(len(archive.infolist()), sum(each.file_size for each in archive.infolist()))
            archive.extractall(folder)  # noqa: S202  names are made safe, and what comes out is bounded by the directory
            yield Path(folder)
    elif path.is_file() and tarfile.is_tarfile(path):
        with tempfile.TemporaryDirectory(prefix="touchstone-") as folder, tarfile.open(path) as archive:
            count = size = 0
            for member in archive:
                count, size = count + 1, size + member.size
                _check(count, size)
                if member.isfile():
                    archive.extract(member, folder, filter="data")
            yield Path(folder)
    else:
        yield path


def _check(members: int, size: int) -> None:
    if members > MOST_MEMBERS or size > MOST_OUT:
        raise ValueError(
            f"The archive holds more than {MOST_MEMBERS:,} files or {MOST_OUT // 10**9} GB; unpack it and import the folder."
        )


def _event_files(
    server: Server,
    root: Path,
    folders: dict[Path, list[Path]],
    experiment: str,
    follow_s: float,
    told: Telling,
) -> list[Sent]:
    runs: dict[Path, tuple[Target, dict[Path, tensorboard.EventFile], list[int]]] = {}
    try:
        while True:
            for folder, paths in folders.items():
                if folder not in runs:
                    inside = os.path.relpath(folder, root if root.is_dir() else root.parent)
                    name = experiment if inside == "." else inside
                    began = min(_began_ms(each, tensorboard.EventFile(each).scalars()) for each in paths)
                    target = Target(server, "TensorBoard", experiment, name, f"{inside}\n{paths[0].name}", began)
                    runs[folder] = (target, {}, [0])
                target, readers, last = runs[folder]
                _look(target, readers, paths, last)
            if not follow_s:
                break
            for target, readers, _ in runs.values():
                told(_so_far(target, readers))
            server.sleep(follow_s)
            folders = tensorboard.folders(root)
    except KeyboardInterrupt:
        if not follow_s:
            raise
    return [_over(target, readers, last[0], told) for target, readers, last in runs.values()]


def _began_ms(path: Path, found: Iterator[tensorboard.Scalar]) -> int:
    """The time of the first value, or of the file if it was written earlier. A copied file is younger than its values."""
    written = round(path.stat().st_mtime * 1000)
    first = next(found, None)
    return min(written, first.time_ms) if first and first.time_ms > 0 else written


def _look(target: Target, readers: dict[Path, tensorboard.EventFile], paths: list[Path], last: list[int]) -> None:
    for path in paths:
        reader = readers.setdefault(path, tensorboard.EventFile(path))
        last[0] = max(last[0], target.scalars(reader.scalars()))
        if reader.config:
            target.params(reader.config)
            reader.config = {}
        if reader.texts:
            target.tags({f"text.{key}": text for key, text in reader.texts.items()})
            reader.texts = {}


def _so_far(target: Target, readers: dict[Path, tensorboard.EventFile]) -> Sent:
    """The result with what its files hold that a run does not: files are read on, so they keep their own counts."""
    return replace(target.sent, unsaid=sum((each.unsaid for each in readers.values()), Counter(target.sent.unsaid)))


def _over(target: Target, readers: dict[Path, tensorboard.EventFile], last: int, told: Telling) -> Sent:
    found = _so_far(target, readers)
    target.end(last)
    told(found)
    return found


def _trackio(server: Server, opened: trackio.Database, experiment: str, told: Telling) -> Iterator[Sent]:
    path = opened.path
    for key, name, what in opened.runs():
        target = Target(
            server,
            "Trackio",
            experiment or path.stem,
            name,
            f"{path.stem}\n{what}",
            _began_ms(path, opened.scalars(key, Counter())),
        )
        config = opened.config(key)
        target.params({name: value for name, value in config.items() if not name.startswith("_")})
        about = {
            f"trackio.{name.strip('_').lower()}": str(value)
            for name, value in config.items()
            if name.startswith("_") and value
        }
        alerts = {f"alert.{number}": text for number, text in enumerate(opened.alerts(key), 1)}
        target.tags(about | alerts)
        target.end(target.scalars(opened.scalars(key, target.sent.unsaid)))
        told(target.sent)
        yield target.sent


def _neptune(server: Server, files: list[Path], experiment: str, told: Telling) -> list[Sent]:
    runs: dict[neptune.Place, tuple[Target, list[int]]] = {}
    about = neptune.about(files)
    for path in files:
        for part in neptune.parts(path):
            place = (part.project, part.run)
            if place not in runs:
                known = about.get(place, {})
                name, began = str(known.get(neptune.NAME) or part.run), known.get(neptune.BEGAN)
                began_ms = round((began.timestamp() if began else path.stat().st_mtime) * 1000)
                what = f"{part.project}\n{part.run}"
                target = Target(server, "Neptune", experiment or part.project[:120], name, what, began_ms)
                runs[place] = (target, [0])
            target, last = runs[place]
            target.params(part.config)
            last[0] = max(last[0], target.scalars(iter(part.scalars)))
            target.sent.unsaid.update(part.unsaid)
    for target, last in runs.values():
        target.end(last[0])
        told(target.sent)
    return [target.sent for target, _ in runs.values()]
