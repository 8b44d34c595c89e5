"""Object storage for what runs need and leave behind, if an installation has some: ARTIFACT_STORE.

Names say whose a file is and what it holds: `runs/7/checkpoints/step-000010/SHA-256/00000`. A name never has another content,
and rows of the database list the files of a folder once all of them are there; so nothing is ever seen half-written, and what
no row lists is as good as absent. Each artifact has its files for itself: removing it takes none from another.
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Literal

import obstore
from django.conf import settings
from obstore.exceptions import BaseError

from trainer.contracts import ModelFile
from trainer.contracts.storing import LinkedFile, Links, pieces

from ..network.destinations import DestinationRefused
from ..problems import Problem
from . import buckets
from .buckets import BucketAccess, Store, UnusableBucket

NAME = "ARTIFACT_STORE"
SIGNED_FOR = timedelta(hours=1)
BLOCK = 1 << 20  # bytes read at a time
BEAT_S = 10.0  # how often a long copy reports that it continues
BATCH = 1_000  # names that one request removes; more S3 does not take


class StoreAway(Problem):
    """503: the storage does not answer, or refuses us. The request can be tried again; the message says what to check."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="store_away", status=503)


class StoreLost(Problem):
    """410: the storage does not have, or only in part, what a row lists."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="gone", status=410)


def is_configured() -> bool:
    return bool(settings.ENV.artifact_store)


def links(method: Literal["GET", "PUT"], place: str, files: Sequence[ModelFile]) -> Links:
    """A signed address for each piece of files below `place`. Raises StoreAway."""
    names = [_names(place, file) for file in files]
    flat = [name for each in names for name in each]
    with _words():
        store = _client()
        signed = iter(obstore.sign(store, method, flat, SIGNED_FOR) if flat else ())
    linked = tuple(
        LinkedFile(path=file.path, bytes=file.bytes, digest=file.digest, urls=tuple(next(signed) for _ in each))
        for file, each in zip(files, names, strict=True)
    )
    azure = {"x-ms-blob-type": "BlockBlob"} if isinstance(store, obstore.store.AzureStore) else {}
    return Links(files=linked, headers=azure if method == "PUT" else {})


def read(
    place: str, file: ModelFile, first: int = 0, last: int | None = None, within_s: float | None = None
) -> Iterator[bytes]:
    """The bytes `first <= i < last` of a file, in blocks. Raises StoreAway and StoreLost, with `within_s` after this long a wait."""
    end = file.bytes if last is None else last
    for name, (start, stop) in zip(_names(place, file), pieces(file.bytes), strict=True):
        at, until = max(first, start), min(end, stop)
        while at < until:
            with _words(name):
                block = bytes(
                    obstore.get_range(_client(within_s), name, start=at - start, end=min(at + BLOCK, until) - start)
                )
            if not block:
                raise StoreLost(f"{_address()} has only a part of {file.path}.")
            at += len(block)
            yield block


def fetch(place: str | Callable[[ModelFile], str], files: Iterable[ModelFile], target: Path) -> None:
    """The files as the folder `target`, whole or not at all. `place`: of all files, or of each. Raises StoreAway, StoreLost and OSError."""

    def of(file: ModelFile) -> str:
        return place if isinstance(place, str) else place(file)

    target.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
    try:
        for file in files:
            path, digest = partial / file.path, hashlib.sha256()
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as out:
                for block in read(of(file), file):
                    digest.update(block)
                    out.write(block)
            if digest.hexdigest() != file.digest:
                raise StoreLost(f"{file.path} in {_address()}/{of(file)} is not what was written.")
        with suppress(OSError):  # another process has just fetched the same
            os.rename(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def keep(place: str, folder: Path, files: Iterable[ModelFile], beat: Callable[[], None] = lambda: None) -> None:
    """Files of a folder of this server, piece by piece; what is there already is not sent again. `beat` is called before each,
    and every BEAT_S while one is sent.

    Raises StoreAway, and OSError if a file cannot be read or is shorter than it was.
    """
    for file in files:
        with (folder / file.path).open("rb") as stream:
            for name, (start, end) in zip(_names(place, file), pieces(file.bytes), strict=True):
                beat()
                if _size(name) == end - start:
                    continue
                stream.seek(start)
                content = stream.read(end - start)
                if len(content) != end - start:
                    raise OSError(f"{folder / file.path} became shorter while it was copied")
                _put(name, content, beat)


def _put(name: str, content: bytes, beat: Callable[[], None]) -> None:
    with _words(), ThreadPoolExecutor(1) as thread:  # `beat` stays in the caller's thread, with its connection
        sent = thread.submit(obstore.put, _client(), name, content)
        while not wait([sent], BEAT_S).done:
            beat()
        sent.result()


def copy(place: str, files: Iterable[ModelFile], other: str, beat: Callable[[], None] = lambda: None) -> None:
    """Within the storage, piece by piece; what is there already is not copied again. `beat` is called before each.

    Raises StoreAway and StoreLost.
    """
    for file in files:
        pairs = zip(_names(place, file), _names(other, file), pieces(file.bytes), strict=True)
        for name, copied, (start, end) in pairs:
            beat()
            if _size(copied) == end - start:
                continue
            with _words(name):
                obstore.copy(_client(), name, copied)


def remove(place: str) -> None:
    """Removes everything below. Raises StoreAway."""
    with _words():
        store = _client()
        for listed in obstore.list(store, f"{place}/", chunk_size=BATCH):
            obstore.delete(store, [each["path"] for each in listed])


def below(place: str) -> list[str]:
    """The names of the folders directly below. Raises StoreAway."""
    with _words():
        found = obstore.list_with_delimiter(_client(), f"{place}/")["common_prefixes"]
    return [name.rstrip("/").rpartition("/")[2] for name in found]


def _names(place: str, file: ModelFile) -> list[str]:
    return [f"{place}/{file.digest}/{number:05d}" for number in range(len(pieces(file.bytes)))]


def _size(name: str) -> int | None:
    with _words():
        try:
            return int(obstore.head(_client(), name)["size"])
        except FileNotFoundError:
            return None


def _address() -> str:
    return str(settings.ENV.artifact_store)


def _client(within_s: float | None = None) -> Store:
    if not is_configured():
        raise UnusableBucket("The files are in object storage, but ARTIFACT_STORE is not set any more.")
    return _opened(_address(), buckets.access(NAME), buckets.RETRY_S, within_s)


@lru_cache(maxsize=4)
def _opened(address: str, by: BucketAccess, _retry_s: float, within_s: float | None) -> Store:
    return buckets.open_bucket(address, by, within_s)


@contextmanager
def _words(name: str = "") -> Iterator[None]:
    """`name`: an object that a row lists."""
    try:
        yield
    except (UnusableBucket, DestinationRefused) as error:
        raise StoreAway(str(error)) from None
    except FileNotFoundError:
        if name:
            raise StoreLost(f"{_address()} no longer has {name}.") from None
        raise StoreAway(buckets.no_such(_address(), buckets.access(NAME))) from None
    except BaseError as error:
        raise StoreAway(buckets.error_text(error, _address(), buckets.access(NAME))) from None
