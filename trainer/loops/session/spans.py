"""What the time of a step was spent on."""

import time
from typing import Literal

Work = Literal["rollout", "reward", "learner", "evaluation"]
"""Sampling; waiting for rewards; everything that measures or updates weights; measuring on held-out data."""


class Spans:
    """Divides the time of one step among the kinds of work. A report of progress says what the time since the report before it was spent
    on; what follows the last report belongs to the same work as that report.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._last, self._work = time.monotonic(), ""

    def reported(self, work: Work) -> None:
        """Progress of `work` was reported now."""
        self._spent(work)
        self._work = work

    def over(self, name: str) -> None:
        """Something has ended: a step, an evaluation, a checkpoint. If it reported nothing, all its time was spent on `name`."""
        self._spent(self._work or name)
        self._work = ""

    def metrics(self) -> dict[str, float]:
        """Seconds by `perf/<work>_s`. Work that took no time is left out."""
        return {f"perf/{work}_s": seconds for work, seconds in self._seconds.items()}

    def _spent(self, name: str) -> None:
        now = time.monotonic()
        self._seconds[name] = self._seconds.get(name, 0.0) + now - self._last
        self._last = now
