"""The watch for reward hacking in a run: scored responses go to `trainer.hacking`, its alarms to the page."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.config import OnPolicyConfig
from trainer.config.rewards.parts import HttpPart, PythonPart, RewardModelPart, RewardPart
from trainer.contracts import AlarmData, AlarmPlace, PartResult
from trainer.hacking import RewardedResponse, SignalWatch
from trainer.rollouts import Trajectory, one_of_each

from ..prompts.data import Prompt
from ..session.stage import Tell

EXAMPLES = 5
"""The number of responses that an alarm names."""
_OF_THE_TASK = ("rubric", "verifier", "rubric_recall")
"""Kinds of parts that say whether a response is good without a judge; a format or a length does not say it."""


class HackingWatch:
    """Watches each step of a run if a judge, a model or a foreign program decides its reward; other runs are not watched.

    The panel is made of parts that are measured, not trained on, and say whether a response is good. The state goes with the checkpoint.
    With a `role` the watch is that role's in a run of several roles, and needs no judge: each role learns from what the others write.
    `bounds` are arguments of `SignalWatch` that replace its usual ones.
    """

    def __init__(self, config: OnPolicyConfig, role: str = "", **bounds: Any) -> None:
        self.role = role
        parts = config.composition.parts
        panel = [part.name for part in parts if part.shadow and (_judged(part) or part.kind in _OF_THE_TASK)]
        watched = bool(role) or any(_judged(part) and not part.shadow for part in parts)
        trained = [part.name for part in parts if not part.shadow]
        self._against = frozenset(part.name for part in parts if part.fewer_is_better)
        self._watch = SignalWatch(config.steps, panel, trained=trained, **bounds) if watched else None

    def look(self, step: int, trajectories: Sequence[Trajectory], tasks: Mapping[str, Prompt], tell: Tell) -> None:
        """Look at the responses of a step, after the step has happened. A step that is made again is looked at again."""
        if self._watch is None:
            return
        rewarded = [each for each in one_of_each(trajectories) if each.reward.total is not None]
        for alarm in self._watch.look(step, [self._scored(each, tasks[each.plan.example_key]) for each in rewarded]):
            places = tuple(AlarmPlace(group=group, index=index) for group, index in alarm.places[:EXAMPLES])
            tell.alarm(
                AlarmData(
                    signal=alarm.signal,
                    subject=alarm.subject[:200],
                    since=alarm.since,
                    share=alarm.share,
                    before=alarm.before,
                    paid=alarm.paid,
                    part=alarm.part,
                    criterion=alarm.criterion[:1000],
                    places=places,
                    role=self.role,
                )
            )

    def state_dict(self) -> dict[str, Any]:
        return self._watch.state_dict() if self._watch else {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state; checkpoints of earlier releases have none."""
        if self._watch:
            self._watch.load_state_dict(state)

    def _scored(self, trajectory: Trajectory, prompt: Prompt) -> RewardedResponse:
        reward, example = trajectory.reward, prompt.example
        criteria = prompt.rubric.criteria if prompt.rubric else ()
        judged = tuple((each.text, each.verdict.met) for each in reward.criteria if each.verdict.source == "judge")
        return RewardedResponse(
            trajectory.plan.group,
            trajectory.plan.index,
            trajectory.text,
            trajectory.length,
            reward.total or 0.0,
            example.key,
            {part.name: self._speaking_for(part) for part in reward.parts},
            judged,
            "\n".join((prompt.text, *(criterion.text for criterion in criteria), example.reference or "")),
        )

    def _speaking_for(self, part: PartResult) -> float | None:
        """The part's value, negated if fewer is better, so that a panel which follows the reward rises with it."""
        return -part.value if part.value is not None and part.name in self._against else part.value


def _judged(part: RewardPart) -> bool:
    """Whether a judge, a model or a foreign program decides the part's value."""
    return bool(part.asks_judge) or isinstance(part, RewardModelPart | HttpPart | PythonPart)
