"""Work in its own thread, in order: making records of much data takes time and must not hold up the caller."""

import queue
import threading
from collections import deque
from collections.abc import Callable

AHEAD = 2
"""The most pieces that wait; a caller that is further ahead waits too, so memory stays bounded."""


class LeftUndone(RuntimeError):
    """Earlier pieces of work failed; the message names them and says why."""


class Behind:
    """Does the pieces of work that it is given, one after the other.

    An error is raised when the next piece is given, or by `flush`; the pieces behind the failed one are done all the same.
    """

    def __init__(self, ahead: int = AHEAD) -> None:
        self._pieces: queue.Queue[tuple[Callable[[], None], str] | None] = queue.Queue(ahead)
        self._failures: deque[tuple[str, BaseException]] = deque()
        self._thread: threading.Thread | None = None
        self._closed = False

    def put(self, piece: Callable[[], None], name: str) -> None:
        """Add a piece; `name` is what is missing if `piece` fails. Raises LeftUndone."""
        self._raise_failures()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="records", daemon=True)
            self._thread.start()
        self._pieces.put((piece, name))

    def flush(self) -> None:
        """Wait until all earlier pieces are done. Raises LeftUndone."""
        self.wait()
        self._raise_failures()

    def wait(self) -> None:
        """Wait until all earlier pieces are done; failures raise nothing here."""
        if self._thread is not None and not self._closed:
            done = threading.Event()
            self._pieces.put((done.set, ""))
            done.wait()

    def close(self) -> None:
        """End the thread after the earlier pieces are done; failures raise nothing here."""
        if self._thread is not None and not self._closed:
            self._closed = True
            self._pieces.put(None)
            self._thread.join()

    def _work(self) -> None:
        while (given := self._pieces.get()) is not None:
            piece, name = given
            try:
                piece()
            except BaseException as error:  # the caller that gives the next piece raises it
                self._failures.append((name, error))

    def _raise_failures(self) -> None:
        failures = [self._failures.popleft() for _ in range(len(self._failures))]
        if failures:
            (_, first) = failures[0]
            names = ", ".join(dict.fromkeys(name for name, _ in failures))
            raise LeftUndone(f"{names} could not be written: {str(first) or type(first).__name__}") from first
