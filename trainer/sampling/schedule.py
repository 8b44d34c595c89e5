"""Which phase a run is in. What it has seen decides when the next one begins; all of it is saved with a checkpoint."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.config.phases import Phase

from .plateau import level


class Schedule:
    """The phases of a run, in order, each after the one before it. Before the first, the config is as it is written."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        self._phases = tuple(phases)
        self._longest = max((phase.window for phase in phases), default=0)
        self._means: list[float] = []
        """Mean rewards of the steps since the newest phase began; no more of them than a window needs."""
        self.began: list[int] = []
        """The first step of each phase that has begun."""
        self.temperature: float | None = None
        """What the phases have set; None: what the config says."""

    @property
    def number(self) -> int:
        """Of the phase that the run is in, from 1; 0 before the first."""
        return len(self.began)

    @property
    def waiting(self) -> tuple[Phase, ...]:
        """The phases that have not begun."""
        return self._phases[self.number :]

    def due(self, step: int) -> Phase | None:
        """The next phase where it begins with `step`; changes nothing."""
        for phase in self.waiting[:1]:
            if phase.begins == "step":
                return phase if step >= phase.step else None
            seen = self._means[-phase.window :]
            return phase if len(seen) == phase.window and level(seen) else None
        return None

    def begin(self, step: int, temperature: float | None) -> None:
        """The next phase begins with `step`; `temperature`: what it samples with, None where that stays."""
        self.began.append(step)
        self._means = []
        if temperature is not None:
            self.temperature = temperature

    def note(self, mean: float | None) -> None:
        """A step has happened; `mean` of its rewards, None where there was none: such a step counts in no window."""
        if mean is not None:
            self._means = [*self._means, mean][-self._longest :] if self._longest else []

    def state_dict(self) -> dict[str, Any]:
        """Empty without phases."""
        if not self._phases:
            return {}
        return {"began": list(self.began), "means": list(self._means), "temperature": self.temperature}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Checkpoints of earlier releases have none."""
        self.began = list(state.get("began", ()))
        self._means = list(state.get("means", ()))
        self.temperature = state.get("temperature")
