"""Phases of a sampled policy: each begins when it is due, and the page hears of it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from trainer.config.sections.phase_kinds import RewardedPhase, rewarded
from trainer.config.sections.phases import Phase
from trainer.curriculum import PromptOrder, highest_good_temperature
from trainer.curriculum.toggle import toggle_budget, toggle_rewards
from trainer.rollouts import Reward, RewardScorer, Trajectory, one_of_each

from ..session.phases import PhaseWatch
from ..session.stage import Tell
from .collecting import Collected, Collector
from .evaluation import evaluate
from .parts import Parts
from .scoring_watch import ScoringWatch


class Phases(PhaseWatch):
    """Changes `parts.schedule`, by which a step samples and trains."""

    def __init__(self, parts: Parts, scorer: RewardScorer, collector: Collector, order: PromptOrder) -> None:
        """Raises RunFailed if a phase would have no prompt."""
        super().__init__(parts.config.phases, parts.schedule, order, parts.config.steps)
        self._parts, self._scorer, self._collector = parts, scorer, collector

    def enter(self, step: int, tell: Tell) -> None:
        super().enter(step, tell)
        schedule = self.schedule
        if step == 1 or schedule.in_budget(step) != schedule.in_budget(step - 1) or schedule.began[-1:] == [step]:
            self._tell_budget(step, tell)
        if self.phases:
            tell.metrics({"rollout/temperature": self._parts.rollout.temperature})

    def rewarded(self, step: int, collected: Collected, tell: Tell) -> Collected:
        """The responses with the rewards that are trained on: in a toggle, 0 above the budget. What is measured does not change."""
        if self._parts.schedule.toggle is None:
            return collected
        groups: dict[int, list[int]] = defaultdict(list)
        for place, trajectory in enumerate(collected.trajectories):
            groups[trajectory.plan.group].append(place)
        trained = list(collected.trajectories)
        limited = cut = 0
        for places in groups.values():
            found, budget = self._toggled(step, [trained[place] for place in places])
            limited += budget is not None
            for place, each in zip(places, found, strict=True):
                cut += each is not trained[place]
                trained[place] = each
        tell.metrics({"toggle/limited": limited / len(groups), "toggle/over": cut / len(trained)} if groups else {})
        return replace(collected, trajectories=trained)

    def _toggled(self, step: int, group: Sequence[Trajectory]) -> tuple[list[Trajectory], float | None]:
        """A group with its rewards in a toggle, and the budget of its prompt; None if the prompt has no budget."""
        schedule, key = self._parts.schedule, group[0].plan.example_key
        assert schedule.toggle is not None  # noqa: S101 - for the types: the caller has looked
        phase, first = schedule.toggle
        lengths, rewards = [each.length for each in group], [each.reward.total for each in group]
        if key not in schedule.budgets:
            budget = toggle_budget(lengths, rewards, phase.quantile, phase.correct)
            if budget is None:
                return list(group), None
            schedule.budgets[key] = budget
        budget = schedule.budgets[key]
        worth = toggle_rewards(rewards, lengths, budget, step - first, phase.every, phase.solved)
        return [
            each if total == each.reward.total else replace(each, reward=_over(each.reward, total, budget))
            for each, total in zip(group, worth, strict=True)
        ], budget

    def _tell_budget(self, step: int, tell: Tell) -> None:
        if any(phase.lengths == "toggle" for phase in rewarded(self._parts.config.phases)):
            tell.metrics({"phase/budget": float(self._parts.schedule.in_budget(step))})

    def passed(self, step: int, trajectories: Sequence[Trajectory], tell: Tell) -> None:
        """Note that the step has happened, with these responses."""
        rewards = [t.reward.total for t in one_of_each(trajectories) if t.reward.total is not None]
        self.schedule.note(rewards)
        self.over(step, tell)

    def _temperature(self, phase: Phase, step: int, tell: Tell) -> float | None:
        if not isinstance(phase, RewardedPhase) or phase.temperature != "search":
            return super()._temperature(phase, step, tell)
        scores = {temperature: self._score(temperature, step, tell) for temperature in phase.grid}
        found = highest_good_temperature(scores, phase.within)
        said = ", ".join(
            f"{temperature:g}: {'no score' if score is None else f'{score:.4g}'}"
            for temperature, score in scores.items()
        )
        tell.log(f"held-out score by temperature: {said}", "info" if found is not None else "warning")
        return found

    def _score(self, temperature: float, step: int, tell: Tell) -> float | None:
        """The score on the held-out prompts at this temperature, with the newest weights; None if nothing was scored."""
        if not self._parts.prompts.heldout:
            return None
        config = self._parts.config
        evaluation = config.evaluation.model_copy(update={"temperature": temperature})
        parts = replace(self._parts, config=config.model_copy(update={"evaluation": evaluation}))
        watch = ScoringWatch(tell, len(parts.prompts.heldout) * evaluation.samples)
        where, progress = f"phase/{step}/{temperature:g}", tell.watch(f"trying temperature {temperature:g}", "rollout")
        with self._collector.newest_weights():
            values = evaluate(parts, self._scorer, where, progress, watch).values
        return values.get("eval/rubric_score", values.get("eval/reward"))


def _over(reward: Reward, total: float | None, budget: float) -> Reward:
    """The reward `total` of a response that is longer than `budget`; the record names the budget."""
    return replace(reward, total=total, components={**reward.components, "over_budget_of": budget})
