"""Phases of a run of any recipe: each begins when it is due, and the page hears of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.config.sections.phases import Phase
from trainer.curriculum import PromptOrder, Schedule

from .errors import RunFailed
from .stage import Tell


class PhaseWatch:
    """Moves a schedule on, and narrows and mixes the order of the data by it. A recipe with its own kind of phase derives from it."""

    drawn = "prompts"
    """The plural noun for what the data has."""
    pool_key = "rollout/pool"
    """The metric of how many prompts there are to draw from."""

    def __init__(self, phases: Sequence[Phase], schedule: Schedule, order: PromptOrder, last: int) -> None:
        """`last` is the last step of the run. Raises RunFailed if a phase would have nothing to draw."""
        self.phases, self.schedule, self.order, self._last = phases, schedule, order, last
        for place, phase in enumerate(phases):
            if not order.fitting(phase.pool):
                raise RunFailed(f"phases.{place}: none of the training {self.drawn} {phase.pool.words}")

    def enter(self, step: int, tell: Tell) -> None:
        """Begin the phases that are due at `step`. May raise StopRequested; the caller that gives the step up restores schedule and order."""
        schedule = self.schedule
        if schedule.anew:
            schedule.anew = False
            tell.log("the phases differ from those of the run that this one continues: they begin with the first")
        if self.order.drawn_from != schedule.pool:  # the parent's phases had another pool
            self.order.narrow(*schedule.pool)
        if self.order.mixed_by != schedule.mix:  # or another order
            self.order.blend(*schedule.mix)
        while phase := schedule.due(step):
            now = self._begin(phase, step, tell)
            tell.metrics({"phase/number": float(schedule.number)})
            tell.log(f"phase {schedule.number} begins: {phase.what}{now}")
        if any(phase.prompts != "same" for phase in self.phases):
            tell.metrics({self.pool_key: float(self.order.size)})

    def state_dict(self) -> dict[str, Any]:
        """Schedule and order, to be restored if a step is given up."""
        return {"schedule": self.schedule.state_dict(), "order": self.order.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.schedule.load_state_dict(state["schedule"])
        self.order.load_state_dict(state["order"])

    def over(self, step: int, tell: Tell) -> None:
        """Note that the step has happened. After the last step the log says which phases never began, and why."""
        if step == self._last:
            for number, phase in enumerate(self.schedule.waiting, self.schedule.number + 1):
                tell.log(
                    f"phase {number}, {phase.what}, never began: it waited for {phase.awaited}; "
                    f"phase {self.schedule.number} went on to the end",
                    "warning",
                )

    def _begin(self, phase: Phase, step: int, tell: Tell) -> str:
        """Begin a phase; returns text for the log on what holds now."""
        temperature = self._temperature(phase, step, tell)
        self.schedule.begin(step, temperature)
        now = "" if temperature is None else f"; the temperature is {temperature:g}"
        if phase.prompts != "same":
            self.order.narrow(*self.schedule.pool)
            now += f"; {self.order.size} of {self.order.count} {self.drawn}"
        if phase.order != "same":
            self.order.blend(*self.schedule.mix)
        return now

    def _temperature(self, phase: Phase, step: int, tell: Tell) -> float | None:
        """The temperature of the phase; None if the temperature stays."""
        return phase.sampled_at
