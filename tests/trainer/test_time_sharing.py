"""Several runs in one process compute in turns."""

import threading
from collections.abc import Callable
from contextlib import suppress

from tests.timeouts import SECONDS
from trainer import time_sharing
from trainer.time_sharing import TurnTaking


def run_all(made: TurnTaking, works: list[Callable[[], None]]) -> None:
    def carry_out(run: int) -> None:
        with made.of(run):
            works[run]()

    threads = [threading.Thread(target=carry_out, args=(run,), daemon=True) for run in range(len(works))]
    for thread in reversed(threads):  # the order of the turns is not that of the threads
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads)


def patient(count: int) -> list[Callable[[], bool]]:
    return [lambda: False for _ in range(count)]


def test_one_at_a_time_in_order_and_who_has_ended_is_passed_over() -> None:
    done: list[tuple[int, int]] = []
    sharing: list[int] = []

    def work(run: int, steps: int) -> Callable[[], None]:
        def steps_of_it() -> None:
            for step in range(steps):
                done.append((run, step))
                sharing.append(time_sharing.runs_in_turn())
                time_sharing.step_over()

        return steps_of_it

    run_all(TurnTaking(patient(3)), [work(0, 3), work(1, 1), work(2, 3)])
    assert done == [(0, 0), (1, 0), (2, 0), (0, 1), (2, 1), (0, 2), (2, 2)]
    assert sharing == [3, 3, 3, 3, 2, 2, 2]  # the first has ended after the last step of the other
    assert time_sharing.runs_in_turn() == 1, "this thread is in no turns"


def test_who_is_in_a_hurry_comes_next() -> None:
    done: list[int] = []
    hurries = [False] * 4

    def work(run: int) -> Callable[[], None]:
        def two_steps() -> None:
            for step in range(2):
                done.append(run)
                if (run, step) == (0, 0):
                    hurries[3] = True
                time_sharing.step_over()
                if run == 3:
                    hurries[3] = False

        return two_steps

    made = TurnTaking([lambda run=run: hurries[run] for run in range(4)], steps=9)  # type: ignore[misc]
    run_all(made, [work(run) for run in range(4)])
    assert done[:2] == [0, 3], "a turn of nine steps is over after the first, since somebody is in a hurry"


def test_who_waits_for_somebody_else_keeps_nobody_waiting() -> None:
    answered = threading.Event()

    def asks() -> None:
        with time_sharing.others_may_compute():
            assert answered.wait(SECONDS)

    run_all(TurnTaking(patient(2)), [asks, answered.set])


def test_who_fails_leaves_the_turns_to_the_others() -> None:
    done = []

    def fails() -> None:
        with suppress(RuntimeError), made.of(0):
            raise RuntimeError

    made = TurnTaking(patient(2))
    failing = threading.Thread(target=fails)
    failing.start()
    with made.of(1):
        done.append(1)
    failing.join(SECONDS)
    assert done == [1]
