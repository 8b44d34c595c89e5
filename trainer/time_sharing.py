"""Several runs in threads of one process take turns of one or a few steps: one run computes at a time.

A run alone takes no turns, and everything here lets it pass. Imports no torch.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar


class TurnTaking:
    """Gives the next turn to the run that waits longest, except that a run in a hurry goes first: a run that must stop need not wait
    for a round of all the others.
    """

    def __init__(self, hurries: Sequence[Callable[[], bool]], steps: int = 1) -> None:
        """`hurries` has one entry for each run, in the order of the first round. `steps` make a turn."""
        self._hurries, self._steps = hurries, steps
        self._changed = threading.Condition()
        self._waiting = list(range(len(hurries)))
        self._at_work: int | None = None
        self._alive = set(self._waiting)

    @contextmanager
    def of(self, run: int) -> Iterator[None]:
        """The whole of run `run`, in its own thread: begins with its first turn, and leaves the turns to the others at its end."""
        token = _mine.set(_Mine(self, run))
        self._await(run)
        try:
            yield
        finally:
            _mine.reset(token)
            with self._changed:
                self._alive.discard(run)
            self._leave()

    @property
    def alive(self) -> int:
        return len(self._alive)

    def pass_on(self, run: int) -> None:
        """Pass the turn on, behind all that wait; returns when it is the run's turn again."""
        with self._changed:
            self._waiting.append(run)
        self._leave()
        self._await(run)

    @contextmanager
    def away(self, run: int) -> Iterator[None]:
        """While the block runs, the run computes nothing, and others may."""
        self._leave()
        try:
            yield
        finally:
            with self._changed:
                self._waiting.append(run)
            self._await(run)

    def is_over(self, steps: int) -> bool:
        """Whether the turn is over after this many of its steps."""
        return steps >= self._steps or any(self._hurries[run]() for run in self._waiting)

    def _leave(self) -> None:
        with self._changed:
            self._at_work = None
            self._changed.notify_all()

    def _await(self, run: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._at_work is None and self._next() == run)
            self._waiting.remove(run)
            self._at_work = run

    def _next(self) -> int:
        return next((run for run in self._waiting if self._hurries[run]()), self._waiting[0])


class _Mine:
    """The place of this thread's run in the turns."""

    def __init__(self, turns: TurnTaking, run: int) -> None:
        self.turns, self.run, self.steps = turns, run, 0


_mine: ContextVar[_Mine | None] = ContextVar("turns", default=None)


def step_over() -> None:
    """Note that the run of this thread has made a step. Returns when it may begin the next."""
    mine = _mine.get()
    if mine is None:
        return
    mine.steps += 1
    if mine.turns.is_over(mine.steps):
        mine.steps = 0
        mine.turns.pass_on(mine.run)


@contextmanager
def others_may_compute() -> Iterator[None]:
    """While the block runs, this run waits for something outside this process, and others may compute."""
    mine = _mine.get()
    if mine is None:
        yield
        return
    with mine.turns.away(mine.run):
        yield


def runs_in_turn() -> int:
    """The number of runs that take turns here, this run included."""
    mine = _mine.get()
    return mine.turns.alive if mine else 1
