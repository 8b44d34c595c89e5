"""Reads a large file in separate processes, beside the one that feeds the database, so that the cores share the work.

Reading takes half as long again as the database, so two processes read, each of them every second batch. They send pickles through pipes to
the
worker; each pickle follows its length. If one side dies, the other sees its pipe close, so neither outlives or waits for a dead one. This
works
from any thread of any worker, because a child is an ordinary program and not a fork.
"""

import gc
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from struct import Struct
from typing import IO, Any

from webapp.core.background.sandbox import confine

from ..formats.importers import REGISTRY
from .reader import LoadBatch, Reader, Sides

READERS = 2
MEMORY = 3_000_000_000  # bytes that reading may take in addition to those of the process before it begins
PASSED_PER_S = 1_000  # rows, at least
BATCH_S = 180.0  # if no batch comes for this long, the file was made to keep us busy
AHEAD = 2  # pickles read before they are needed; with fewer, both sides could wait for each other while an answer is written
COLLECT = (
    16  # batches after which garbage is collected: with its default settings, the collector takes a seventh of the time
)
# for the GNU C library, others ignore it: memory that a batch frees is kept for the next one. If it were given back, it would
# be zeroed again page by page, which takes a tenth of the time; the peak is the same
KEEPING = {"MALLOC_TRIM_THRESHOLD_": str(1 << 29), "MALLOC_MMAP_THRESHOLD_": str(1 << 29)}
ROOT = Path(__file__).resolve().parents[3]
_length = Struct(">Q")


class Died(RuntimeError):
    """The process that reads the file ended before the file did; `how`, in words."""

    def __init__(self, code: int) -> None:
        self.how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        kept = "what it had read is kept, and the import continues from there"
        super().__init__(f"The process that reads the file {self.how} before it was done; {kept}.")


class Endless(RuntimeError):
    """The process that reads the file takes longer than any file needs."""


class TooLarge(RuntimeError):
    """The process that reads the file needed more memory than it is allowed."""


def ready(
    reader: Reader, before: Callable[[list[str]], Sides] | None, alone: bool = False
) -> Generator[LoadBatch, None, None]:
    """The batches of `reader.ready`, made by other processes; `alone`: by one. Raises their errors, Died if one ended early, Endless and
    TooLarge if one exceeds its limits."""
    # a converter that is bound to its file reads all of it, so two processes would read everything twice
    turns = 1 if alone or REGISTRY[reader.format].bind else READERS
    with ExitStack() as stack:
        processes = [stack.enter_context(_process()) for _ in range(turns)]
        readers = [replace(reader, turn=turn, turns=turns) for turn in range(turns)]
        parts = [stack.enter_context(closing(_part(*each, before))) for each in zip(processes, readers, strict=True)]
        for part in cycle(parts):
            if (batch := next(part, None)) is None:
                return
            yield batch


def _part(
    process: subprocess.Popen[bytes], reader: Reader, before: Callable[[list[str]], Sides] | None
) -> Generator[LoadBatch, None, None]:
    """The batches of `reader.ready` that the process makes."""
    with ThreadPoolExecutor(1, thread_name_prefix="import") as thread:
        try:
            assert process.stdin and process.stdout  # noqa: S101  pipes
            _send(process.stdin, (reader, before is not None, MEMORY))
            coming = deque(thread.submit(_received, process.stdout) for _ in range(AHEAD))
            patience = (
                BATCH_S + reader.taken.rows / PASSED_PER_S
            )  # rows that are taken already are read again, and skipped
            while (said := coming.popleft().result(patience)) is not None:
                patience = BATCH_S
                coming.append(thread.submit(_received, process.stdout))
                if isinstance(said, LoadBatch):
                    yield said
                elif isinstance(said, list) and before:
                    _send(process.stdin, before(said))
                else:
                    raise said
        except (EOFError, BrokenPipeError) as error:
            raise Died(process.wait()) from error
        except TimeoutError as error:
            raise Endless(f"The process that reads the file sent nothing for {BATCH_S:g} s.") from error
        finally:
            process.kill()  # a thread that still reads then comes to the end
            thread.shutdown(cancel_futures=True)


def _process() -> subprocess.Popen[bytes]:
    from webapp.core.background.children import environment  # here, because the child loads no Django

    command = [sys.executable, "-c", f"from {__name__} import main; main()"]
    env = {**environment(), **KEEPING}
    return subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


def _send(to: IO[bytes], what: Any) -> None:
    data = pickle.dumps(what, pickle.HIGHEST_PROTOCOL)
    rest = memoryview(_length.pack(len(data)) + data)
    while rest:
        rest = rest[to.write(rest) :]


def _received(source: IO[bytes]) -> Any:
    """The next message of the other end. Raises EOFError if it is closed."""
    (size,) = _length.unpack(_exactly(source, _length.size))
    return pickle.loads(_exactly(source, size))  # noqa: S301  from our own process


def _exactly(source: IO[bytes], size: int) -> bytearray:
    data = bytearray(size)
    rest = memoryview(data)
    while rest:
        count = source.readinto(rest)  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        rest = rest[count:]
    return data


def main() -> None:
    """The child: reads the file until it is done, or until nobody listens any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both processes; the parent says when to end
    gc.freeze()
    gc.disable()
    source, to = os.fdopen(0, "rb", 0), os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)  # printed text must not come between the pickles

    def before(keys: list[str]) -> Callable[[], Sides]:
        _send(to, keys)
        return lambda: _received(source)

    try:
        reader, asks, memory = _received(source)
        confine(memory)
        end: Exception | None
        try:
            for number, each in enumerate(reader.ready(before if asks else None), 1):
                _send(to, each)
                if number % COLLECT == 0:
                    gc.collect()
            end = None
        except MemoryError:
            end = TooLarge(f"Its rows need more than {memory // 10**6:,} MB of memory to be read.")
        except Exception as error:  # any error, because the parent raises it
            error.add_note("".join(traceback.format_exception(error)))
            end = error
        _send(to, end)
    except (EOFError, BrokenPipeError):
        """The parent is gone; so is the import."""
