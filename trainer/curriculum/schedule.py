"""Tracks the phase of a run. The metrics of the run decide when the next phase begins; a checkpoint saves everything."""

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
    """The phases of a run, in order. Before the first begins, the config holds as it is written."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        self._phases = tuple(phases)
        self._longest = max((phase.window for phase in phases), default=0)
        self._means: list[float] = []
        """The values that the next phase watches, since the newest phase began: mean rewards of the steps, or values of a metric. At
        most as many as the longest window needs.
        """
        self._passed: list[float] = []
        """The share of responses of each of these steps that the next phase takes for correct."""
        self.began: list[int] = []
        """The first step of each phase that has begun."""
        self.temperature: float | None = None
        """The temperature that the phases have set; None if that of the config holds."""

        self.budgets: dict[str, float] = {}
        """The number of tokens that the responses to a prompt may have in a toggle, by the prompt's key."""
        self.anew = False
        """Whether the checkpoint came from a run with other phases, so that the phases begin with the first."""

    @property
    def number(self) -> int:
        """The number of the phase that the run is in, from 1; 0 before the first."""
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
        """The pool from which prompts are drawn, and the number of the phase that has named it. Before any phase has: 0 and the pool of all
        prompts.
        """
        said = [(n, phase) for n, phase in enumerate(self._phases[: self.number], 1) if phase.prompts != "same"]
        return (said[-1][0], said[-1][1].pool) if said else (0, Pool())

    @property
    def mix(self) -> tuple[int, Order | None]:
        """The mixture of orders, and the number of the phase that has named it; 0 and None before any has."""
        said = [(n, phase.mix) for n, phase in enumerate(self._phases[: self.number], 1) if phase.order != "same"]
        return said[-1] if said else (0, None)

    @property
    def verifying(self) -> RewardedPhase | None:
        """The phase that now lets the policy judge its own responses; None if no phase does."""
        said = [phase for phase in rewarded(self._phases[: self.number]) if phase.verification != "same"]
        return said[-1] if said and said[-1].verification == "on" else None

    @property
    def lr_times(self) -> float:
        """The factor by which the learning rate of `optim` is multiplied now."""
        said = [phase.lr_times for phase in self._phases[: self.number] if phase.learning_rate == "times"]
        return said[-1] if said else 1.0

    def in_budget(self, step: int) -> bool:
        """Whether responses have a budget at `step`, which is not before the first step of the newest phase."""
        return self.toggle is not None and budget_phase(step - self.toggle[1], self.toggle[0].every)

    def due(self, step: int) -> Phase | None:
        """The next phase if it begins with `step`, else None; changes nothing."""
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
        """Begin the next phase with `step`. `temperature` is that with which it samples; None if the temperature stays."""
        if any(phase.lengths != "same" for phase in rewarded(self.waiting[:1])):
            self.budgets = {}
        self.began.append(step)
        self._means, self._passed = [], []
        if temperature is not None:
            self.temperature = temperature

    def note(self, rewards: Sequence[float]) -> None:
        """Note the rewards of a step. A step without any reward counts in no window."""
        for phase in rewarded(self.waiting[:1]) if rewards else ():
            correct = sum(reward >= phase.correct - _ROUNDING for reward in rewards)
            self._passed = [*self._passed, correct / len(rewards)][-self._longest :]
        if rewards:
            self.measured({REWARD: math.fsum(rewards) / len(rewards)})

    def measured(self, values: Mapping[str, float]) -> None:
        """Note what a step or an evaluation has measured, by key. If the metric that the next phase waits for is missing, it counts in no
        window.
        """
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
        """Does nothing if the run that saved `state` had no phases. A fork whose begun phases differ from those of its parent starts before
        its first phase.

        Raises ValueError if a part of the state is missing or belongs to another version.
        """
        if not state or not self._phases:
            return
        if missing := [name for name in _SAVED if name not in state]:
            raise ValueError(f"the checkpoint lacks parts of its phases: {', '.join(missing)}")
        began = len(state["began"])
        theirs = tuple(type(self._phases[0]).model_validate(each) for each in state["phases"])
        if theirs[:began] != self._phases[:began]:
            self.anew = True
            return
        self.began = list(state["began"])
        if theirs[began:] == self._phases[began : began + 1]:  # what was seen counts only for the same phase
            self._means, self._passed = list(state["means"]), list(state["passed"])
        self.temperature = state["temperature"]
        self.budgets = dict(state["budgets"])


def _reaches(shares: Sequence[float], pass_rate: float) -> bool:
    return math.fsum(shares) / len(shares) >= pass_rate - _ROUNDING
