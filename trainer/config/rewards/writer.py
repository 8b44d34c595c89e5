"""Parts of the reward of a rubric writer: what its rubric does, how good it is, whether it has the right form.

`trainer.rewards.kinds.writing` measures them. What a part reads besides the rubric is in `Item.facts`.
"""

from typing import ClassVar, Literal

from trainer.contracts.rubric import RubricForm

from .base import AlwaysAsks, MatchedPart, PartBase, part_kind, part_name
from .bounds import RewardBounds

By = Literal["likert", "criterion", "checklist", "words"]
"""The scorer of an answer under a written rubric: a judge of that kind, or a count of the criteria's words in the answer."""


class RubricPreferencePart(AlwaysAsks):
    """1 if the preferred answer scores above the other under the written rubric, else -1 (MaMs)."""

    values: ClassVar[RewardBounds] = RewardBounds(-1.0, 1.0)
    kind: Literal["rubric_preference"] = part_kind("rubric_preference")
    name: str = part_name("preference")
    form: RubricForm = "mams"
    by: By = "likert"
    judge: str = ""

    @property
    def judge_kinds(self) -> tuple[str, ...]:
        return () if self.by == "words" else (self.by,)


class RubricChoicePart(AlwaysAsks):
    """1 if a judge that compares the two answers by the written rubric chooses the preferred one, else 0 (Rubric-ARM)."""

    values: ClassVar[RewardBounds] = RewardBounds(0.0, 1.0)
    kind: Literal["rubric_choice"] = part_kind("rubric_choice")
    name: str = part_name("choice")
    form: RubricForm = "mams"
    judge: str = ""

    @property
    def judge_kinds(self) -> tuple[str, ...]:
        return ("pairwise_rubric",)


class RubricQualityPart(AlwaysAsks):
    """The points that a judge of rubrics gives to the written rubric, 0 to 4 (MaMs). With `words` no judge is asked: a point for each
    criterion that is one of them, each once."""

    values: ClassVar[RewardBounds] = RewardBounds(0.0, 4.0)
    kind: Literal["rubric_quality"] = part_kind("rubric_quality")
    name: str = part_name("quality")
    form: RubricForm = "mams"
    judge: str = ""
    words: tuple[str, ...] = ()

    @property
    def judge_kinds(self) -> tuple[str, ...]:
        return () if self.words else ("rubric_quality",)


class RubricFormPart(PartBase):
    """0 if the written rubric has the form that was asked for, else -1 (MaMs)."""

    values: ClassVar[RewardBounds] = RewardBounds(-1.0, 0.0)
    kind: Literal["rubric_form"] = part_kind("rubric_form")
    name: str = part_name("format")
    form: RubricForm = "mams"


class RubricRecallPart(MatchedPart):
    """The share of people's criteria that the written rubric has too (RubricBench)."""

    values: ClassVar[RewardBounds] = RewardBounds(0.0, 1.0)
    kind: Literal["rubric_recall"] = part_kind("rubric_recall")
    name: str = part_name("recall")
    form: RubricForm = "mams"
    matched_by: ClassVar[str] = "rubric_matcher"


WriterPart = RubricPreferencePart | RubricChoicePart | RubricQualityPart | RubricFormPart | RubricRecallPart
