"""Finds the files of a model: in a folder of this server, in the artifact store, or in both.

In the store, a model that a run has trained lies below that run (`artifact.files`), and one that a program has logged lies where the
program sent each of its files (`APART`). Any other model is copied to `models/ID` before the first run that loads it, and again when its
folder has changed.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.conf import settings

from trainer.contracts import ModelFile, ModelSource
from trainer.contracts.model_folder import FILE_NAME, MAX_FILE_BYTES, MAX_NAME
from trainer.contracts.storing import Links
from webapp.core.problems import Problem
from webapp.core.storage import artifact_store

from ..models import RegisteredModel

FETCHED = "fetched"
KEPT_FETCHED = timedelta(days=30)
APART = "apart"
"""A value of `RegisteredModel.stored`: the place below which each file lies at its own path, because a program has sent the files one by
one."""
WORDS = (".json", ".jinja", ".txt", ".model")
LONGEST_WORDS = 100_000_000  # bytes of a file that is read to find out what a model is
_NAME = re.compile(FILE_NAME)


@dataclass(frozen=True)
class Placed:
    """A folder in the artifact store: the files at `place`; if `apart`, each below it at its own path, where a program has sent it."""

    place: str
    files: tuple[ModelFile, ...]
    apart: bool = False

    def of(self, file: ModelFile) -> str:
        """The place of one of the files."""
        return f"{self.place}/{file.path}" if self.apart else self.place

    def links(self) -> Links:
        """Signed addresses from which a process reads the files. Raises StoreAway."""
        if not self.apart:
            return artifact_store.links("GET", self.place, self.files)
        told = [artifact_store.links("GET", self.of(file), [file]) for file in self.files]
        return Links(files=tuple(each.files[0] for each in told))

    def fetch(self, target: Path) -> None:
        """The files as the folder `target`, whole or not at all. Raises StoreAway, StoreLost and OSError."""
        artifact_store.fetch(self.of, self.files, target)

    def named(self, path: str) -> ModelFile | None:
        return next((file for file in self.files if file.path == path), None)

    @property
    def mark(self) -> str:
        return digest(self.files)


def placed(model: RegisteredModel) -> Placed | None:
    """A model's place in the store; None if it lies only in a folder, or comes from a hub. Load `artifact` with the row to save a query."""
    if sent := _sent(model):
        return sent
    if artifact_store.is_configured() and model.stored.get("files"):
        apart = model.stored.get(APART, "")
        return placed_at(apart or f"models/{model.pk}", model.stored["files"], apart=bool(apart))
    return None


def _sent(model: RegisteredModel) -> Placed | None:
    """The files that the run which made the model has sent to the store."""
    artifact = getattr(model, "artifact", None)
    if model.source != RegisteredModel.Source.RUN or artifact is None or not artifact.files:
        return None
    return placed_at(f"runs/{artifact.run_id}/{artifact.path}", artifact.files)


def to_read(model: RegisteredModel) -> Placed | None:
    """The place in the store from which the model's files are read; None if they are read from the folder of this server.

    Files that a run has sent to the store are newer than those in its folder, which may be from before there was a store. A folder that
    somebody registered is the original of its copy in the store.
    """
    return placed(model) if _sent(model) or not Path(model.path).is_dir() else None


def placed_at(place: str, files: list[dict[str, object]], *, apart: bool = False) -> Placed:
    return Placed(place, tuple(ModelFile.model_validate(each) for each in files), apart)


def outline(found: Placed, target: Path) -> None:
    """Writes the files of a model without its weights as the folder `target`: files of words are whole, of safetensors there is the
    header, and every file has its length. Raises StoreAway, StoreLost and OSError."""
    for file in found.files:
        path = target / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            for block in artifact_store.read(found.of(file), file, 0, _told(found, file)):
                out.write(block)
            out.truncate(file.bytes)


def _told(found: Placed, file: ModelFile) -> int:
    """The number of bytes at the beginning of a file that say what it is."""
    if not file.path.endswith(".safetensors"):
        return file.bytes if file.path.endswith(WORDS) and file.bytes <= LONGEST_WORDS else 0
    begins = b"".join(artifact_store.read(found.of(file), file, 0, min(8, file.bytes)))
    return min(file.bytes, 8 + min(int.from_bytes(begins, "little"), LONGEST_WORDS))


def missing_folder(model: RegisteredModel) -> str:
    """The folder that is gone: of a run's model, or of a model under it; empty if none is. Other sources are not looked at."""
    row: RegisteredModel | None = model
    while row is not None:
        if row.source == RegisteredModel.Source.RUN and not Path(row.path).is_dir() and not placed(row):
            return row.path
        row = row.base if row.format == RegisteredModel.Format.PEFT else None
    return ""


def copied(workspace_id: int, sources: Iterable[ModelSource], beat: Callable[[], None] = lambda: None) -> None:
    """Copies every folder of `sources` into the store that is not there yet.

    `beat` is called before each file and piece, and again while one takes long. Raises StoreAway, OSError, and Problem if a folder is
    gone, changes while it is copied, or holds a file that the store cannot keep.
    """
    for path in _folders(sources):
        row = _row(workspace_id, path)
        if row is not None and not (row.source == RegisteredModel.Source.RUN and placed(row)):
            _copy(row, beat)


def links(workspace_id: int, sources: Iterable[ModelSource], path: str) -> Links | None:
    """Addresses of the files under `path`; None if `path` is none of `sources`, or is not in the store.

    Raises StoreAway.
    """
    row = _row(workspace_id, path) if path in _folders(sources) else None
    found = placed(row) if row else None
    return found.links() if found else None


def _folders(sources: Iterable[ModelSource]) -> list[str]:
    paths = [path for source in sources for path in (source.path, *source.adapters)]
    return [path for path in dict.fromkeys(paths) if Path(path).is_absolute()]


def _row(workspace_id: int, path: str) -> RegisteredModel | None:
    """The model of this folder. If several are registered from it: the one that lies in the store already, or else the first."""
    rows = list(RegisteredModel.objects.select_related("artifact").filter(workspace_id=workspace_id, path=path))
    return next((row for row in rows if placed(row)), rows[0] if rows else None)


def _copy(row: RegisteredModel, beat: Callable[[], None]) -> None:
    folder = Path(row.path)
    if not folder.is_dir():
        if row.stored.get("files"):
            return  # this machine has it no more, but the store has it
        raise Problem(f"The files of {row.name} are gone: there is no folder {folder}.", code="gone", status=410)
    mark = _mark(folder)
    if row.stored.get("mark") == mark:
        return
    files = listed(folder, beat)
    artifact_store.keep(f"models/{row.pk}", folder, files, beat)
    if _mark(folder) != mark:
        raise Problem(f"The folder of {row.name} changes while it is copied.", code="changing", status=409)
    told = {"mark": mark, "files": [file.model_dump() for file in files]}
    RegisteredModel.objects.filter(pk=row.pk).update(stored=told)  # last, so that every file that is listed is there
    row.stored = told


def listed(folder: Path, beat: Callable[[], None] = lambda: None) -> list[ModelFile]:
    """The files of a folder of this server with their digests. Raises OSError, and Problem if the store cannot keep one."""
    return [_file(folder, path, beat) for path in _files(folder)]


def digest(files: Iterable[ModelFile]) -> str:
    """Changes with any name or content."""
    lines = [f"{file.digest}  {file.path}\n" for file in files]
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


def _files(folder: Path) -> list[Path]:
    """All files of a model's folder but the hidden ones. Raises Problem for a name that the store does not take."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    shown = [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    for path in shown:
        name = path.relative_to(folder).as_posix()
        if len(name) > MAX_NAME or not _NAME.fullmatch(name):
            takes = f"names of letters, digits, `_`, `-` and `.`, with their folders at most {MAX_NAME} characters long"
            raise _unfit(folder, name, f"it takes {takes}")
    return shown


def _unfit(folder: Path, name: str, why: str) -> Problem:
    told = f"{folder}/{name}".encode(errors="replace").decode()  # a name need not be UTF-8
    return Problem(f"The artifact store cannot keep the file {told}: {why}.", code="unfit_file", status=409)


def _mark(folder: Path) -> str:
    """Changes with the names, sizes and times of the files: it shows whether they may have changed."""
    facts = [(path.relative_to(folder).as_posix(), path.stat()) for path in _files(folder)]
    told = json.dumps([(name, fact.st_size, fact.st_mtime_ns) for name, fact in facts])
    return hashlib.sha256(told.encode()).hexdigest()


def _file(folder: Path, path: Path, beat: Callable[[], None]) -> ModelFile:
    digest, size, due = hashlib.sha256(), 0, 0.0
    with path.open("rb") as stream:
        while block := stream.read(artifact_store.BLOCK):
            if time.monotonic() >= due:
                beat()
                due = time.monotonic() + artifact_store.BEAT_S
            digest.update(block)
            size += len(block)
    name = path.relative_to(folder).as_posix()
    if size > MAX_FILE_BYTES:
        raise _unfit(folder, name, f"it has {size:,} bytes, and {MAX_FILE_BYTES:,} is the most")
    return ModelFile(path=name, bytes=size, digest=digest.hexdigest())


def local_source(source: ModelSource, workspace_id: int) -> ModelSource:
    """The source with folders of this server. A model that is read from the store is fetched once, into var/fetched.

    Call it before a process of this server loads a model. Raises StoreAway, StoreLost and OSError.
    """
    folders = _folders([source])
    if not folders or not artifact_store.is_configured() and all(Path(path).is_dir() for path in folders):
        return source
    path, *adapters = [_here(workspace_id, path) for path in (source.path, *source.adapters)]
    return source.model_copy(update={"path": path, "adapters": tuple(adapters)})


def _here(workspace_id: int, path: str) -> str:
    row = _row(workspace_id, path) if Path(path).is_absolute() else None
    found = to_read(row) if row else None
    return str(fetched(found)) if found else path


def fetched(found: Placed) -> Path:
    """A copy on this server, which all who ask for the same model share. Raises StoreAway, StoreLost and OSError."""
    target = Path(settings.VAR) / FETCHED / found.mark
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.with_suffix(".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # one process fetches, the others wait for it
            if not target.is_dir():
                found.fetch(target)
    os.utime(target)
    return target


def forget_fetched() -> None:
    """Removes copies that nobody has asked for in KEPT_FETCHED, and parts of copies that a dead process has left."""
    before = time.time() - KEPT_FETCHED.total_seconds()
    for path in (Path(settings.VAR) / FETCHED).glob("*"):
        with suppress(OSError):  # another process has just removed it
            if path.stat().st_mtime < before:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
