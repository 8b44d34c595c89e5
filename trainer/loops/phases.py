"""Phases of a run as its steps go by: each begins when it is due, and is told to the page."""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from trainer.config.phases import Phase
from trainer.rollouts import RewardScorer, Trajectory, one_of_each
from trainer.sampling import warmest

from .collecting import Collector
from .evaluation import evaluate
from .parts import Parts
from .scoring import ScoringWatch
from .stage import Tell


class Phases:
    """Changes `parts.schedule`, by which the step samples and trains."""

    def __init__(self, parts: Parts, scorer: RewardScorer, collector: Collector) -> None:
        self._parts, self._scorer, self._collector = parts, scorer, collector

    def enter(self, step: int, tell: Tell) -> None:
        """Begins what is due at `step`. Raises StopRequested in a search; whoever gives the step up puts the schedule back."""
        schedule = self._parts.schedule
        while phase := schedule.due(step):
            temperature = self._temperature(phase, step, tell)
            schedule.begin(step, temperature)
            tell.metrics({"phase/number": float(schedule.number)})
            now = f"; the temperature is {self._parts.rollout.temperature:g}" if temperature is not None else ""
            tell.log(f"phase {schedule.number} begins: {phase.what}{now}")
        if self._parts.config.phases:
            tell.metrics({"rollout/temperature": self._parts.rollout.temperature})

    def passed(self, step: int, trajectories: Sequence[Trajectory], tell: Tell) -> None:
        """The step has happened, with these responses. At the end it is said which phases never came."""
        rewards = [t.reward.total for t in one_of_each(trajectories) if t.reward.total is not None]
        schedule = self._parts.schedule
        schedule.note(statistics.fmean(rewards) if rewards else None)
        if step == self._parts.config.steps:
            for number, phase in enumerate(schedule.waiting, schedule.number + 1):
                tell.log(f"phase {number}, {phase.what}, never began: it waited for {_awaited(phase)}", "warning")

    def _temperature(self, phase: Phase, step: int, tell: Tell) -> float | None:
        """What the phase samples with; None where that stays."""
        if phase.temperature == "set":
            return phase.set_to
        if phase.temperature != "search":
            return None
        scores = {temperature: self._score(temperature, step, tell) for temperature in phase.grid}
        found = warmest(scores, phase.within)
        said = ", ".join(
            f"{temperature:g}: {'no score' if score is None else f'{score:.4g}'}"
            for temperature, score in scores.items()
        )
        tell.log(f"held-out score by temperature: {said}", "info" if found is not None else "warning")
        return found

    def _score(self, temperature: float, step: int, tell: Tell) -> float | None:
        """On the held-out prompts, with the newest weights; None where nothing was scored."""
        if not self._parts.prompts.heldout:
            return None
        config = self._parts.config
        evaluation = config.evaluation.model_copy(update={"temperature": temperature})
        parts = replace(self._parts, config=config.model_copy(update={"evaluation": evaluation}))
        watch = ScoringWatch(tell, len(parts.prompts.heldout) * evaluation.samples)
        where, progress = f"phase/{step}/{temperature:g}", tell.watch(f"trying temperature {temperature:g}")
        with self._collector.newest_weights():
            values = evaluate(parts, self._scorer, where, progress, watch).values
        return values.get("eval/rubric_score", values.get("eval/reward"))


def _awaited(phase: Phase) -> str:
    if phase.begins == "step":
        return f"step {phase.step}"
    return f"the mean reward to level off over {phase.window} steps"
