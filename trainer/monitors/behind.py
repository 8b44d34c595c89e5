"""Work in a thread of its own, in order: what takes long to put into words does not hold up who tells it."""

import queue
import threading
from collections import deque
from collections.abc import Callable

AHEAD = 2
"""So many pieces wait at most; who is further ahead waits too, so memory stays bounded."""


class LeftUndone(RuntimeError):
    """Pieces of work that were given before failed; the message names them and says why."""


class Behind:
    """Does what it is given, one piece after the other. What goes wrong is raised where the next piece is given, or `flush`; the
    pieces behind it are done all the same."""

    def __init__(self, ahead: int = AHEAD) -> None:
        self._pieces: queue.Queue[tuple[Callable[[], None], str] | None] = queue.Queue(ahead)
        self._failures: deque[tuple[str, BaseException]] = deque()
        self._thread: threading.Thread | None = None
        self._closed = False

    def put(self, piece: Callable[[], None], name: str) -> None:
        """`name`: what is missing if `piece` fails. Raises LeftUndone."""
        self._raise_failures()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="records", daemon=True)
            self._thread.start()
        self._pieces.put((piece, name))

    def flush(self) -> None:
        """Wait until all that was given before has been done. Raises LeftUndone."""
        self.wait()
        self._raise_failures()

    def wait(self) -> None:
        """The same, whatever became of it."""
        if self._thread is not None and not self._closed:
            done = threading.Event()
            self._pieces.put((done.set, ""))
            done.wait()

    def close(self) -> None:
        """After what was given has been done, whatever became of it."""
        if self._thread is not None and not self._closed:
            self._closed = True
            self._pieces.put(None)
            self._thread.join()

    def _work(self) -> None:
        while (given := self._pieces.get()) is not None:
            piece, name = given
            try:
                piece()
            except BaseException as error:  # the one who gives the next piece raises it
                self._failures.append((name, error))

    def _raise_failures(self) -> None:
        failures = [self._failures.popleft() for _ in range(len(self._failures))]
        if failures:
            (_, first) = failures[0]
            names = ", ".join(dict.fromkeys(name for name, _ in failures))
            raise LeftUndone(f"{names} could not be written: {str(first) or type(first).__name__}") from first
