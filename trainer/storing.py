"""Files of a run in object storage, for a process that shares no disk with its server.

The server signs an address for each piece; this process has no credentials of the bucket. A fetched file is compared with
its SHA-256 and appears under its name as a whole or not at all. A sent file is reported to the server once all of it is there.
"""

import hashlib
import logging
import os
import random
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import ValidationError

from trainer.contracts import ModelFile, ModelSource
from trainer.contracts.storing import FolderAsked, Links, Upload, pieces
from trainer.outputs import folder_digest, list_files

SCRATCH = "TOUCHSTONE_SCRATCH"
PATIENCE_S = 120.0
"""Seconds for which a server or storage that does not answer is asked again; then the caller gets an error and may ask once more. The
time counts for each piece of a file, from the moment at which that piece fails.
"""
_TIMEOUT = httpx.Timeout(120.0, connect=10.0)
_BLOCK = 1 << 20
_AT_ONCE = 4
_LONGEST_PAUSE_S = 10.0
T = TypeVar("T")


logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log each address, and these are signed


class StorageAway(RuntimeError):
    """The server or its storage did not answer within the allowed time; it may answer later."""


class StoreRefused(RuntimeError):
    """The requested file is missing, belongs to another process, or is not as it was written; the message says which."""


class _Again(Exception):
    """A request that may be repeated; the message says why."""


class _Addresses:
    """The signed addresses of a folder's files. An address is valid for about an hour, and fetching all files may take longer."""

    def __init__(self, links: Links, ask: Callable[[], Links]) -> None:
        self.links, self.are_old, self._ask = links, False, ask

    def of(self, file: ModelFile, number: int) -> str:
        """Raises _Again and StoreRefused."""
        if self.are_old:
            self.links, self.are_old = self._ask(), False
        for each in self.links.files:
            if (each.path, each.digest) == (file.path, file.digest) and number < len(each.urls):
                return each.urls[number]
        raise StoreRefused(f"{file.path} in the artifact store has changed while it was fetched")


class ObjectStore:
    """Sends and fetches files. `url` is the server's address for this run or job; `token` is its key. `folder` is this node's, for
    models that several runs load.
    """

    def __init__(self, url: str, token: str, folder: Path, patience_s: float = PATIENCE_S) -> None:
        self._url, self._folder, self._patience_s = url, folder, patience_s
        # proxies from the environment must not stand between a run and its own server
        self._server = httpx.Client(
            headers={"Authorization": f"Bearer {token}"}, timeout=httpx.Timeout(60.0, connect=5.0), trust_env=False
        )
        self._storage = httpx.Client(timeout=_TIMEOUT)

    def keep(self, place: Path, path: str) -> tuple[ModelFile, ...]:
        """Send the file or folder `place`, which is the artifact `path`. Raises StorageAway, StoreRefused and OSError."""
        files = list_files(place)
        by_path = {file.path: place / file.path if place.is_dir() else place for file in files}
        for file in files:  # one by one, because an address is valid for about an hour
            self._send(by_path[file.path], file, path)
        return files

    def model(self, path: str) -> Path:
        """The folder on this node of the model that the assignment calls `path`; other runs here load the same copy."""
        links = self._patiently(lambda: self._links("folders", FolderAsked(name=path)))
        target = self._folder / "models" / folder_digest(links.files)
        return target if target.is_dir() else self.fetch(path, target)

    def source(self, source: ModelSource) -> ModelSource:
        """The source with folders of this node. A hub id stays as it is."""
        path, *adapters = [
            str(self.model(each)) if Path(each).is_absolute() else each for each in (source.path, *source.adapters)
        ]
        return ModelSource(path=path, adapters=tuple(adapters), head=source.head)

    def fetch(self, name: str, target: Path) -> Path:
        """Fetch the folder `name` as `target`, complete or not at all. Raises StorageAway, StoreRefused and OSError."""
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        arriving = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
        try:
            self._fill(name, arriving)
            with suppress(OSError):  # another process has just fetched the same
                os.rename(arriving, target)
        finally:
            shutil.rmtree(arriving, ignore_errors=True)
        if not target.is_dir():
            raise OSError(f"{target} cannot be made")
        return target

    def close(self) -> None:
        self._server.close()
        self._storage.close()

    def _fill(self, name: str, folder: Path) -> None:
        ask = partial(self._links, "folders", FolderAsked(name=name))
        addresses = _Addresses(self._patiently(ask), ask)
        for file in addresses.links.files:
            path, digest = folder / file.path, hashlib.sha256()
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as out:
                for number in range(len(pieces(file.bytes))):
                    digest = self._patiently(partial(self._get, addresses, file, number, out, digest))
            if digest.hexdigest() != file.digest:
                raise StoreRefused(f"{file.path} of {name} in the artifact store is not what was written")

    def _get(
        self, addresses: _Addresses, file: ModelFile, number: int, out: BinaryIO, before: "hashlib._Hash"
    ) -> "hashlib._Hash":
        """Write a piece behind those that are there, over the remains of an earlier try. Returns the digest so far."""
        (start, end), digest = pieces(file.bytes)[number], before.copy()
        out.seek(start)
        out.truncate()
        try:
            with self._asked("GET", addresses.of(file, number)) as response:
                for block in response.iter_bytes(_BLOCK):
                    digest.update(block)
                    out.write(block)
        except _Again:
            addresses.are_old = True
            raise
        if out.tell() != end:
            raise _Again(f"{file.path} broke off after {out.tell() - start:,} bytes of a piece")
        return digest

    def _send(self, place: Path, file: ModelFile, path: str) -> None:
        """Send a file. Pieces that have arrived are not sent again when others fail; each try has new addresses."""
        missing = dict(enumerate(pieces(file.bytes)))

        def send() -> None:
            links = self._links("uploads", Upload(path=path, files=(file,)))
            urls = links.files[0].urls
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                sent = {
                    threads.submit(self._put, place, piece, urls[number], links.headers): number
                    for number, piece in missing.items()
                }
                wait(sent, return_when=FIRST_EXCEPTION)
                threads.shutdown(cancel_futures=True)  # otherwise the rest would fail one after the other
            for each in [each for each in sent if not each.cancelled() and each.exception() is None]:
                del missing[sent[each]]
            for each in sent:
                if not each.cancelled():
                    each.result()

        self._patiently(send, left=lambda: len(missing))

    def _put(self, path: Path, piece: tuple[int, int], url: str, headers: dict[str, str]) -> None:
        start, end = piece
        told = {**headers, "Content-Length": str(end - start)}
        with self._asked("PUT", url, headers=told, content=_blocks(path, start, end)):
            pass

    @contextmanager
    def _asked(self, method: str, url: str, **more: object) -> Iterator[httpx.Response]:
        """Make a request. Errors never name the address, which is signed. Raises _Again and StoreRefused."""
        host = urlsplit(url).netloc
        try:
            with self._storage.stream(method, url, **more) as response:  # type: ignore[arg-type]
                if response.status_code == 404:
                    raise StoreRefused(f"a file is missing in the artifact store at {host}")
                if response.status_code not in (200, 201):
                    raise _Again(f"the artifact store at {host} answers {response.status_code}")
                yield response
        except httpx.HTTPError as error:
            raise _Again(f"the artifact store at {host} does not answer ({type(error).__name__})") from None

    def _links(self, what: str, asked: Upload | FolderAsked) -> Links:
        try:
            answer = self._server.post(
                f"{self._url}/store/{what}",
                content=asked.model_dump_json().encode(),
                headers={"Content-Type": "application/json"},
            )
        except httpx.HTTPError as error:
            raise _Again(f"the server does not answer ({type(error).__name__})") from None
        if answer.status_code >= 500 or answer.status_code in (408, 429):
            raise _Again(_reason(answer))
        if answer.status_code != 200:
            raise StoreRefused(_reason(answer))
        try:
            return Links.model_validate_json(answer.content)
        except ValidationError as error:
            # without the values, because signed addresses are among them
            wrong = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_input=False)]
            raise StoreRefused(f"the server's answer cannot be read: {'; '.join(wrong[:5])}") from None

    def _patiently(self, work: Callable[[], T], left: Callable[[], int] = lambda: 1) -> T:
        """Repeat `work` until it succeeds. Raises StorageAway if it fails for the allowed time without less being `left` to do.

        The time for which it had worked before does not count.
        """
        pause, deadline, before = 0.5, None, left()
        while True:
            try:
                return work()
            except _Again as error:
                if deadline is None or left() < before:
                    pause, deadline, before = 0.5, time.monotonic() + self._patience_s, left()
                if time.monotonic() + pause > deadline:
                    raise StorageAway(str(error)) from None
            time.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  spreads nodes that wait for the same storage
            pause = min(2 * pause, _LONGEST_PAUSE_S)


def _blocks(path: Path, start: int, end: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(start)
        while start < end and (block := file.read(min(_BLOCK, end - start))):
            start += len(block)
            yield block


def _reason(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"the server answers {answer.status_code}"


def scratch(url: str) -> Path:
    """The folder of this node for work of the server at `url`: TOUCHSTONE_SCRATCH, or our own folder among temporary files.

    Raises OSError if another user owns it.
    """
    root = Path(os.environ.get(SCRATCH) or Path(tempfile.gettempdir()) / f"touchstone-{os.getuid()}")
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = root.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        raise PermissionError(f"{root} is not this user's; name another folder in {SCRATCH}")
    parts = urlsplit(url)
    return root / hashlib.sha256(f"{parts.scheme}://{parts.netloc}".encode()).hexdigest()[:12]
