"""Waiting for rewards is a phase of a step with progress that can be stopped and seen to pause."""

from ..session.stage import Tell


class ScoringWatch:
    """The `trainer.rollouts.RewardWatch` of a step that scores `total` responses."""

    def __init__(self, tell: Tell, total: int, phase: str = "scoring") -> None:
        self._tell, self._total = tell, total
        self._note = tell.watch(phase, "reward")

    def check(self) -> None:
        self._note(0, self._total)

    def ran(self, name: str, start: float, end: float) -> None:
        self._tell.ran("reward", name, start, end)

    def paused(self, reason: str) -> None:
        self._tell.paused(reason)

    def resumed(self) -> None:
        self._tell.resumed()
