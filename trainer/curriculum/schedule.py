"""Which phase a run is in. What it has seen decides when the next one begins; all of it is saved with a checkpoint."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.config.sections.order import Order, Pool
from trainer.config.sections.phase_kinds import REWARD, RewardedPhase, rewarded
from trainer.config.sections.phases import Phase

from .plateau import level
from .toggle import budget_phase

_ROUNDING = 1e-9
_SAVED = ("phases", "began", "means", "passed", "temperature", "budgets")


class Schedule:
    """The phases of a run, in order, each after the one before it. Before the first, the config is as it is written."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        self._phases = tuple(phases)
        self._longest = max((phase.window for phase in phases), default=0)
        self._means: list[float] = []
        """What the next phase watches, since the newest began: mean rewards of the steps, or values of a metric. No more of them than a
        window needs."""
        self._passed: list[float] = []
        """Of the same steps the shares of responses that the next phase takes for correct."""
        self.began: list[int] = []
        """The first step of each phase that has begun."""
        self.temperature: float | None = None
        """What the phases have set; None: what the config says."""

        self.budgets: dict[str, float] = {}
        """Tokens that responses to a prompt may have in a toggle, by the prompt's key."""
        self.anew = False
        """Whether a checkpoint came from a run with other phases, so that these begin from the first."""

    @property
    def number(self) -> int:
        """Of the phase that the run is in, from 1; 0 before the first."""
        return len(self.began)

    @property
    def waiting(self) -> tuple[Phase, ...]:
        """The phases that have not begun."""
        return self._phases[self.number :]

    @property
    def toggle(self) -> tuple[RewardedPhase, int] | None:
        """The phase whose toggle is on, and its first step."""
        said = [
            (phase, first)
            for phase, first in zip(self._phases, self.began, strict=False)
            if isinstance(phase, RewardedPhase) and phase.lengths != "same"
        ]
        return said[-1] if said and said[-1][0].lengths == "toggle" else None

    @property
    def pool(self) -> tuple[int, Pool]:
        """What prompts are drawn from, and the number of the phase that has said so; 0 and all of them before any has."""
        said = [(n, phase) for n, phase in enumerate(self._phases[: self.number], 1) if phase.prompts != "same"]
        return (said[-1][0], said[-1][1].pool) if said else (0, Pool())

    @property
    def mix(self) -> tuple[int, Order | None]:
        """The orders that prompts come in, and the number of the phase that has said so; 0 and None before any has."""
        said = [(n, phase.mix) for n, phase in enumerate(self._phases[: self.number], 1) if phase.order != "same"]
        return said[-1] if said else (0, None)

    @property
    def verifying(self) -> RewardedPhase | None:
        """The phase by which the policy judges its own responses now."""
        said = [phase for phase in rewarded(self._phases[: self.number]) if phase.verification != "same"]
        return said[-1] if said and said[-1].verification == "on" else None

    @property
    def lr_times(self) -> float:
        """Times what `optim` says is the learning rate now."""
        said = [phase.lr_times for phase in self._phases[: self.number] if phase.learning_rate == "times"]
        return said[-1] if said else 1.0

    def in_budget(self, step: int) -> bool:
        """Whether responses have a budget at `step`, which is not before the newest phase."""
        return self.toggle is not None and budget_phase(step - self.toggle[1], self.toggle[0].every)

    def due(self, step: int) -> Phase | None:
        """The next phase where it begins with `step`; changes nothing."""
        for phase in self.waiting[:1]:
            if isinstance(phase, RewardedPhase) and phase.begins == "pass_rate":
                shares = self._passed[-phase.window :]
                return phase if len(shares) == phase.window and _reaches(shares, phase.pass_rate) else None
            if phase.begins == "step":
                return phase if step >= phase.step else None
            seen = self._means[-phase.window :]
            return phase if len(seen) == phase.window and level(seen) else None
        return None

    def begin(self, step: int, temperature: float | None) -> None:
        """The next phase begins with `step`; `temperature`: what it samples with, None where that stays."""
        if any(phase.lengths != "same" for phase in rewarded(self.waiting[:1])):
            self.budgets = {}
        self.began.append(step)
        self._means, self._passed = [], []
        if temperature is not None:
            self.temperature = temperature

    def note(self, rewards: Sequence[float]) -> None:
        """A step has happened, with these rewards; one without any counts in no window."""
        for phase in rewarded(self.waiting[:1]) if rewards else ():
            correct = sum(reward >= phase.correct - _ROUNDING for reward in rewards)
            self._passed = [*self._passed, correct / len(rewards)][-self._longest :]
        if rewards:
            self.measured({REWARD: math.fsum(rewards) / len(rewards)})

    def measured(self, values: Mapping[str, float]) -> None:
        """A step or an evaluation has measured this, by key. Without the metric that the next phase waits for it counts in no window."""
        for phase in self.waiting[:1]:
            if phase.watched in values:
                self._means = [*self._means, values[phase.watched]][-self._longest :]

    def state_dict(self) -> dict[str, Any]:
        """Empty without phases."""
        if not self._phases:
            return {}
        return {
            "phases": [phase.model_dump(mode="json") for phase in self._phases[: self.number + 1]],
            "began": list(self.began),
            "means": list(self._means),
            "passed": list(self._passed),
            "temperature": self.temperature,
            "budgets": dict(self.budgets),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Nothing for a run that had no phases. A fork whose phases differ from those that had begun begins with its first.

        Raises ValueError where a part of the state is missing, or is not of this version.
        """
        if not state or not self._phases:
            return
        if missing := [name for name in _SAVED if name not in state]:
            raise ValueError(f"the checkpoint says of its phases nothing about {', '.join(missing)}")
        began = len(state["began"])
        theirs = tuple(type(self._phases[0]).model_validate(each) for each in state["phases"])
        if theirs[:began] != self._phases[:began]:
            self.anew = True
            return
        self.began = list(state["began"])
        if theirs[began:] == self._phases[began : began + 1]:  # else what was seen was seen for another phase
            self._means, self._passed = list(state["means"]), list(state["passed"])
        self.temperature = state["temperature"]
        self.budgets = dict(state["budgets"])


def _reaches(shares: Sequence[float], pass_rate: float) -> bool:
    return math.fsum(shares) / len(shares) >= pass_rate - _ROUNDING
