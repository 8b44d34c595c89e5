"""Waiting for rewards as one phase of a step: with progress, and so that it can be stopped or seen to pause."""

from ..session.stage import Tell


class ScoringWatch:
    """`trainer.rollouts.RewardWatch` of a step: what is scored is `total` responses."""

    def __init__(self, tell: Tell, total: int, phase: str = "scoring") -> None:
        self._tell, self._total = tell, total
        self._note = tell.watch(phase)

    def check(self) -> None:
        self._note(0, self._total)

    def paused(self, reason: str) -> None:
        self._tell.paused(reason)

    def resumed(self) -> None:
        self._tell.resumed()
