"""Work in a thread of its own, in order: what takes long to put into words does not hold up who tells it."""

import queue
import threading
from collections.abc import Callable

AHEAD = 2
"""So many pieces wait at most; who is further ahead waits too, so memory stays bounded."""


class Behind:
    """Does what it is given, one piece after the other. What goes wrong is raised where the next piece is given, or `flush`."""

    def __init__(self, ahead: int = AHEAD) -> None:
        self._pieces: queue.Queue[Callable[[], None] | None] = queue.Queue(ahead)
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def put(self, piece: Callable[[], None]) -> None:
        self._raise_failure()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="records", daemon=True)
            self._thread.start()
        self._pieces.put(piece)

    def flush(self) -> None:
        """Wait until all that was given before has been done."""
        self.wait()
        self._raise_failure()

    def wait(self) -> None:
        """The same, whatever became of it."""
        if self._thread is not None and not self._closed:
            done = threading.Event()
            self._pieces.put(done.set)
            done.wait()

    def close(self) -> None:
        """After what was given has been done, whatever became of it."""
        if self._thread is not None and not self._closed:
            self._closed = True
            self._pieces.put(None)
            self._thread.join()

    def _work(self) -> None:
        while (piece := self._pieces.get()) is not None:
            try:
                piece()
            except BaseException as error:  # the one who gives the next piece raises it
                self._failure = self._failure or error

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
