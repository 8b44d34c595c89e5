"""The watch for reward hacking of one role of recipe `alternating`: its responses in every turn and, after each turn, its reward
in training against that on a held-out panel.
"""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.config.alarms import HELD_OUT
from trainer.config.recipes.alternating import ROLES, AlternatingConfig, Role
from trainer.contracts import AlarmData, AlarmPlace
from trainer.hacking import Gap, HeldOut
from trainer.hacking.watch import FALSE_ALARMS
from trainer.rewards.written_rubrics import FACTS
from trainer.rollouts import Trajectory, one_of_each
from trainer.seeding import derive_seed

from ..policy.hacking import EXAMPLES, HackingWatch
from ..prompts.data import Prompt
from ..session.stage import Tell
from .rubric_trials import Trials

RIGHT: Mapping[Role, str] = {"judge": "outcome", "writer": "choice"}
"""The part of each role's reward that people's choice decides."""
_BUDGETS = len(ROLES) + 1
"""The number of shares of the false alarms: one for the signals of each role, one for the panels."""


class TurnWatch(HackingWatch):
    """Goes on from turn to turn of its role. Its share of the false alarms is that of any other run's watch."""

    def __init__(self, config: AlternatingConfig, role: Role) -> None:
        super().__init__(config.turn(role), role, false_alarms=FALSE_ALARMS / _BUDGETS)
        self._right = RIGHT[role]
        self._held_out = HeldOut(FALSE_ALARMS / _BUDGETS / len(ROLES), config.rounds - 1)
        self._earned: dict[str, list[float]] = defaultdict(list)
        """The values of the turn's responses, by example."""
        self._best: list[tuple[float, int, int]] = []
        """(-value, group, index) of the responses of the last step."""

    def look(self, step: int, trajectories: Sequence[Trajectory], tasks: Mapping[str, Prompt], tell: Tell) -> None:
        super().look(step, trajectories, tasks, tell)
        self._best = []
        for each in one_of_each(trajectories):
            value = next((part.value for part in each.reward.parts if part.name == self._right), None)
            if value is not None:
                self._earned[tasks[each.plan.example_key].facts[FACTS]["example"]].append(value)
                self._best.append((-value, each.plan.group, each.plan.index))

    def turn_over(self, step: int, since: int, panel: Mapping[str, Sequence[float]], tell: Tell) -> None:
        """Compare after the last step of a turn: `panel` has the values of held-out responses, by example."""
        trained, held_out = _means(self._earned), _means(panel)
        self._earned.clear()
        if not trained or not held_out:
            return
        told = {"trained": sum(trained) / len(trained), "held_out": sum(held_out) / len(held_out)}
        values = {f"panel/{self.role}_{name}": value for name, value in told.items()}
        tell.metrics(values | {f"panel/{self.role}_pairs": float(len(held_out))})
        gap = Gap.of(trained, held_out)
        before = self._held_out.look(gap)
        if before is not None:
            places = [AlarmPlace(group=group, index=index) for _, group, index in sorted(self._best)[:EXAMPLES]]
            tell.alarm(
                AlarmData(
                    signal=HELD_OUT,
                    since=since,
                    share=gap.value,
                    before=max(0.0, before),
                    part=self._right,
                    places=tuple(places),
                    role=self.role,
                )
            )

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"earned": dict(self._earned), "held_out": self._held_out.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        if "held_out" in state:
            self._earned = defaultdict(list, {key: list(values) for key, values in state["earned"].items()})
            self._held_out.load_state_dict(state["held_out"])


def panel_of(prompts: Sequence[Prompt], config: AlternatingConfig) -> list[Prompt]:
    """The held-out questions of the panel, the same after every turn."""
    count = min(config.panel.pairs, len(prompts))
    return random.Random(derive_seed(config.seed, "panel")).sample(list(prompts), count)  # noqa: S311 - not secrecy


def tried(trials: Trials, role: Role, prompts: Sequence[Prompt], tell: Tell) -> dict[str, list[float]]:
    """The value of one response of `role` to each held-out pair, sampled and measured as in training, by example.

    A judge gives one judgement by a rubric that can be read; without a decision it is not right. A writer gives one rubric, tried by
    the greedy judge: a rubric that cannot be read is not right, and if the judge decides nothing there is no value.
    A stop does not interrupt this, because the step has already happened.
    """
    if not prompts:
        return {}
    rubrics = trials.rubrics(prompts, 1, tell.progress("writing rubrics for held-out pairs", "evaluation"))
    asked = [(prompt, trials.asked(own[0]) if own else None) for prompt, own in zip(prompts, rubrics, strict=True)]
    questions = [one for _, one in asked if one is not None]
    progress = tell.progress("judging held-out pairs", "evaluation")
    said = trials.judgements(questions, 1, progress, greedy=role == "writer")
    right = iter([trials.right(one, result) for one, (result,) in zip(questions, said, strict=True)])
    found: dict[str, list[float]] = defaultdict(list)
    for (prompt, question), own in zip(asked, rubrics, strict=True):
        decided = next(right) if question is not None else None
        if role == "judge" and question is not None:
            decided = bool(decided)
        if role == "writer" and not own:
            decided = False
        if decided is not None:
            found[prompt.facts[FACTS]["example"]].append(float(decided))
    return found


def _means(values: Mapping[str, Sequence[float]]) -> list[float]:
    return [sum(each) / len(each) for each in values.values()]
