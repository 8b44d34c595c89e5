"""A model answers token by token, from a process that holds its weights (`trainer.serving`).

All processes of the web server on this machine share one such process for each model, over a socket. The first that asks starts it. It
ends together with the process that started it, or when nobody has asked for minutes; an idle one leaves when another model needs its room.
"""

import asyncio
import fcntl
import hashlib
import json
import socket
import subprocess
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from django.conf import settings
from django.db import close_old_connections

from trainer.contracts import ModelSource
from webapp.core.background.children import environment
from webapp.core.problems import Problem
from webapp.machine.places import socket_path

from ..folders.stored import local_source

MOST_MODELS = 4  # held at the same time
START_S = 90.0  # until the socket is there: Python starts, the libraries do not load yet
ROOM_S = 10.0  # for idle processes to leave
ANSWER_S = 600.0  # between two lines: the model may still load
PEEK_S = 2.0
LONGEST_LINE = 4_000_000
ENDED = "The process of the model ended before it answered. Try again."
Event = dict[str, Any]

_children: list[subprocess.Popen[bytes]] = []


class CannotAnswer(Problem):
    """`code`: busy, memory, ended or failed. The message says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message, code=code, status=503)


async def answers(
    source: ModelSource, digest: str, request: dict[str, Any], workspace_id: int
) -> AsyncGenerator[Event, None]:
    """The events of `trainer.serving`: `loading`, `start`, `token` ..., and `done` or `error` in the end.

    If memory is short, idle models leave and the model is asked once more. Faults of the model or its process are events, never raised.
    """
    place = _place(source, digest)
    for again in (True, False):
        begun = False
        try:
            async with aclosing(_asked(place, source, request, workspace_id)) as events:
                async for event in events:
                    short = again and event.get("code") == "memory"
                    if short and await asyncio.to_thread(_make_room, place, MOST_MODELS):
                        break  # another model has left: there is more memory now
                    begun = begun or event["event"] in ("start", "token")
                    over = event["event"] in ("done", "error")
                    yield event
                    if over:
                        return
                else:
                    raise CannotAnswer("ended", ENDED)
        except CannotAnswer as problem:
            if problem.code != "ended" or begun or not again:
                yield {"event": "error", "code": problem.code, "message": problem.message}
                return


async def _asked(
    place: Path, source: ModelSource, request: dict[str, Any], workspace_id: int
) -> AsyncGenerator[Event, None]:
    reader, writer = await _connected(place, source, workspace_id)
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        await writer.drain()
        while line := await asyncio.wait_for(reader.readline(), ANSWER_S):
            yield json.loads(line)
    except TimeoutError as error:
        raise CannotAnswer("failed", f"The model has not answered for {ANSWER_S:g} s.") from error
    except (OSError, ValueError) as error:
        raise CannotAnswer("ended", ENDED) from error
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _connected(
    place: Path, source: ModelSource, workspace_id: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    for start in (True, False):
        try:
            return await asyncio.open_unix_connection(str(place), limit=LONGEST_LINE)
        except (FileNotFoundError, ConnectionRefusedError):
            if start:
                await asyncio.to_thread(_start, place, source, workspace_id)
    raise CannotAnswer("ended", ENDED)


def _start(place: Path, source: ModelSource, workspace_id: int) -> None:
    """Starts the process, unless another process of the web server has just started it. Raises CannotAnswer."""
    try:
        source = local_source(source, workspace_id)  # may take minutes: other models start meanwhile
    except (Problem, OSError) as error:
        raise CannotAnswer("failed", str(error)) from error
    finally:
        close_old_connections()  # this is a thread of its own
    place.parent.mkdir(parents=True, exist_ok=True)
    with _alone(place.parent):
        if _is_up(place):
            return
        if len(_others(place)) >= MOST_MODELS and not _make_room(place, 1):
            raise CannotAnswer("busy", f"{MOST_MODELS} other models are being tried now. Try again in a moment.")
        adapters = [part for folder in source.adapters for part in ("--adapter", folder)]
        command = [
            *settings.MODEL_COMMAND,
            "--model",
            source.path,
            "--head",
            source.head,
            *adapters,
            "--socket",
            str(place),
        ]
        with TemporaryFile() as said:
            try:
                child = subprocess.Popen(
                    command,
                    cwd=settings.BASE_DIR,
                    env=environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                )
            except OSError as error:
                raise CannotAnswer("failed", f"The process of the model cannot be started: {error}") from error
            _children[:] = [each for each in _children if each.poll() is None] + [child]
            _wait_until_up(place, child, said)


def _wait_until_up(place: Path, child: subprocess.Popen[bytes], said: IO[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while not _is_up(place):
        if child.poll() is not None:
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            reason = lines[-1][:500] if lines else f"it ended with status {child.returncode}"
            raise CannotAnswer("failed", f"The process of the model could not be started: {reason}")
        if time.monotonic() > deadline:
            child.kill()
            raise CannotAnswer("failed", f"The process of the model did not start within {START_S:g} s.")
        time.sleep(0.05)


def _make_room(place: Path, wanted: int) -> int:
    """Asks the other models to leave, until `wanted` have left; how many did. Models that are answering stay."""
    left = 0
    for other in _others(place):
        if left < wanted and _told_to_leave(other):
            left += 1
    return left


def _told_to_leave(place: Path) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(PEEK_S)
            connection.connect(str(place))
            connection.sendall(b'{"op":"yield"}\n')
            if b"leaving" not in connection.recv(1000):
                return False
    except OSError:
        return False
    deadline = time.monotonic() + ROOM_S
    while place.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not place.exists()


def _others(place: Path) -> list[Path]:
    return [path for path in place.parent.glob("model-*.sock") if path != place and _is_up(path)]


def _is_up(place: Path) -> bool:
    """Whether a process listens. A connection that asks nothing does not disturb it."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(PEEK_S)
            connection.connect(str(place))
    except OSError:
        return False
    return True


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One at a time, among all processes of the web server."""
    with (folder / "model.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _place(source: ModelSource, digest: str) -> Path:
    """One socket for each model. A folder that was written again has another `digest`, and so another socket."""
    name = hashlib.sha256(f"{source.model_dump_json()}\n{digest}".encode()).hexdigest()[:16]
    return socket_path(settings.VAR, f"model-{name}.sock")
