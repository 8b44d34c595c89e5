"""Parts of rewards for tasks (`trainer.tasks`). The config of a task puts them together; no form offers them.

`trainer.rewards.kinds` measures them. What a part reads besides the response is in `Item.facts`.
"""

from typing import ClassVar, Literal

from .arm import ArmPart
from .base import AlwaysAsks, MatchedPart, PartBase, part_kind, part_name
from .bounds import RewardBounds
from .writer import WriterPart

JudgementForm = Literal["json", "lines"]


class _OfJudgement(PartBase):
    """The fields of a part that reads a judgement of two answers."""

    form: JudgementForm = "json"


class OutcomePart(_OfJudgement):
    """1 if the verdict on two answers prefers the same answer as people, else 0. A verdict that cannot be read is not right."""

    values: ClassVar[RewardBounds] = RewardBounds(0.0, 1.0)
    kind: Literal["outcome"] = part_kind("outcome")
    name: str = part_name("outcome")


class RationalePart(_OfJudgement, MatchedPart):
    """Average precision of the reasons for a verdict, compared with people's reasons."""

    values: ClassVar[RewardBounds] = RewardBounds(0.0, 1.0)
    kind: Literal["rationale"] = part_kind("rationale")
    name: str = part_name("rationale")
    matched_by: ClassVar[str] = "reason_matcher"
    threshold: float = 0.5


class FlawsPart(_OfJudgement, AlwaysAsks):
    """Share of the reasons for a verdict in which a judge finds a flaw."""

    values: ClassVar[RewardBounds] = RewardBounds(0.0, 1.0)
    kind: Literal["flaws"] = part_kind("flaws")
    name: str = part_name("flaws")
    fewer_is_better: ClassVar[bool] = True
    judge: str

    @property
    def judge_kinds(self) -> tuple[str, ...]:
        return ("flaws",)


class WellFormedPart(_OfJudgement):
    """1 if a judgement of two answers has the form that was asked for and nothing else, else 0."""

    values: ClassVar[RewardBounds] = RewardBounds(0.0, 1.0)
    kind: Literal["well_formed"] = part_kind("well_formed")
    name: str = part_name("form")


TaskPart = OutcomePart | RationalePart | FlawsPart | WellFormedPart | WriterPart | ArmPart
