"""Steps in a row in which no reward teaches anything: all responses to each prompt have the same reward, or were cut and are left out."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.config import OnPolicyConfig
from trainer.config.alarms import ALWAYS_OR_NEVER, CUT, FLAT, NOT_SOLVED, SOLVED, alarm_text
from trainer.contracts import AlarmData
from trainer.rollouts import Trajectory, flat_groups, group_rewards, one_of_each, taught_rewards

from ..session.stage import Tell
from .reports import solved

IN_A_ROW = 5
FIRST_STEPS = 5


class FlatSteps:
    """Reports a row of IN_A_ROW such steps in the log and as an alarm. A row is reported once, however long it lasts.

    Distillation and the estimator `remax` learn from equal rewards, so their steps are not watched. The state goes with the
    checkpoint.
    """

    def __init__(self, config: OnPolicyConfig, role: str = "") -> None:
        self._role, self._threshold = role, config.pass_rates.threshold
        equal_teaches = config.objective.name == "distill" or getattr(config.objective, "advantage", "") == "remax"
        self._looks = not equal_teaches
        self._truncated = config.rollout.truncated
        self._row: list[tuple[int, int]] = []
        """For each step of the row, until it is reported: responses that solved their prompt, and responses of which this is known."""
        self._cut: list[tuple[int, int]] = []
        """The same steps: cut responses and all, if the step would have taught something with them; else (0, 0)."""
        self._told = False
        self._first: list[tuple[int, int]] = []
        """The pairs of `_row` for the run's first steps."""

    def look(self, step: int, trajectories: Sequence[Trajectory], tell: Tell) -> None:
        """Take the rewards that the step has trained on; called after the step. A step without any reward counts in no row."""
        groups = group_rewards(trajectories)
        if not self._looks or not groups:
            return
        known = [solves for each in one_of_each(trajectories) if (solves := solved(each, self._threshold)) is not None]
        outcome = (sum(known), len(known))
        if len(self._first) < FIRST_STEPS:
            self._first.append(outcome)
        if flat_groups(taught_rewards(trajectories, self._truncated)) < len(groups):
            self._row, self._cut, self._told = [], [], False
        elif not self._told:
            self._row.append(outcome)
            cut = [t.stop == "length" for t in trajectories]
            self._cut.append((sum(cut), len(cut)) if flat_groups(groups) < len(groups) else (0, 0))
            if len(self._row) == IN_A_ROW:
                self._tell(step, tell)

    def _tell(self, step: int, tell: Tell) -> None:
        share, before = _share(self._row), _share(self._first)
        subject = SOLVED if share == 1 else NOT_SOLVED if share == 0 else ALWAYS_OR_NEVER
        if any(responses for _, responses in self._cut):
            subject, share, before = CUT, _share(self._cut), 0.0
        found = AlarmData(
            signal=FLAT,
            subject=subject,
            since=step - IN_A_ROW + 1,
            share=share,
            before=before,
            places=(),
            role=self._role,
        )
        tell.log(alarm_text(found, step), "warning")
        tell.alarm(found)
        self._row, self._cut, self._told = [], [], True

    def state_dict(self) -> dict[str, Any]:
        return {
            "row": [*map(list, self._row)],
            "cut": [*map(list, self._cut)],
            "told": self._told,
            "first": [*map(list, self._first)],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state; checkpoints of earlier releases have none."""
        self._row = [(solves, known) for solves, known in state.get("row", [])]
        self._cut = [(cut, responses) for cut, responses in state.get("cut", [[0, 0]] * len(self._row))]
        self._first = [(solves, known) for solves, known in state.get("first", [])]
        self._told = bool(state.get("told", False))


def _share(outcomes: Sequence[tuple[int, int]]) -> float:
    return sum(solves for solves, _ in outcomes) / sum(known for _, known in outcomes)
