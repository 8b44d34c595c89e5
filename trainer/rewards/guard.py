"""Runs code that may raise or hang, so that it does not end the run."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from .parts import Item, Part, Unscored

SECONDS = 5.0
"""The time for one part of one response."""
T = TypeVar("T")


def call_guarded(call: Callable[[], T], seconds: float) -> tuple[T | None, str]:
    """The value of the call, or None with the reason. A thread cannot be killed: if it hangs, it is left as a daemon."""
    outcome: list[tuple[T | None, str]] = []

    def run() -> None:
        try:
            outcome.append((call(), ""))
        except Exception as error:
            outcome.append((None, reason(error)))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return outcome[0] if outcome else (None, f"took longer than {seconds:g} s")


def reason(error: BaseException) -> str:
    """The reason for a response without a value."""
    return str(error) if isinstance(error, Unscored) else f"{type(error).__name__}: {error}"


async def measure_each(items: Sequence[Item], measure: Callable[[Item], Part]) -> list[Part]:
    """Calls `measure` for every item in threads, at most SECONDS for each. If it raises or hangs, the item is missing with the reason."""
    return [await asyncio.to_thread(_one, partial(measure, item)) for item in items]


def _one(call: Callable[[], Part]) -> Part:
    part, why = call_guarded(call, SECONDS)
    return Part(None, why) if part is None else part
