"""Estimates the remaining time of a run."""

from trainer.config import OnPolicyConfig


class Clock:
    """Estimates the time left from the remaining steps and evaluations, each taken to last as long as the latest ones."""

    def __init__(self, config: OnPolicyConfig, evaluates: bool) -> None:
        self._config, self._evaluates = config, evaluates
        self._step_s: float | None = None
        self._evaluation_s: float | None = None

    def step_took(self, seconds: float) -> None:
        # The first step sees cold caches and long scaffolds; later ones count more.
        self._step_s = seconds if self._step_s is None else 0.7 * self._step_s + 0.3 * seconds

    def evaluation_took(self, seconds: float) -> None:
        self._evaluation_s = seconds

    def eta_s(self, completed: int) -> float | None:
        """Seconds left after `completed` steps; None before the end of the first step."""
        if self._step_s is None:
            return None
        steps = self._config.steps - completed
        return steps * self._step_s + self._evaluations_after(completed) * (self._evaluation_s or 0.0)

    def _evaluations_after(self, completed: int) -> int:
        if not self._evaluates or completed >= self._config.steps:
            return 0
        every = self._config.evaluation.every
        if not every:
            return 1
        due = {*range(0, self._config.steps + 1, every), self._config.steps}
        return sum(step > completed for step in due)
