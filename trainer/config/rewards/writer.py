"""Parts of the reward of a rubric writer: what its rubric does, how good it is, whether it has its form (METHODS 5).

How each is measured is in `trainer.rewards.kinds.writing`; what it reads besides the rubric is in `Item.facts`.
"""

from typing import ClassVar, Literal

from trainer.contracts.rubric import RubricForm

from .base import AlwaysAsks, MatchedPart, PartBase, part_kind, part_name

By = Literal["likert", "criterion", "checklist", "words"]
"""Who scores an answer under a written rubric: a judge of that kind, or how many words of the criteria stand in it."""


class RubricPreferencePart(AlwaysAsks):
    """1 where the preferred answer scores above the other under the written rubric, else -1 (MaMs)."""

    kind: Literal["rubric_preference"] = part_kind("rubric_preference")
    name: str = part_name("preference")
    form: RubricForm = "mams"
    by: By = "likert"
    judge: str = ""

    @property
    def judge_kinds(self) -> tuple[str, ...]:
        return () if self.by == "words" else (self.by,)


class RubricChoicePart(AlwaysAsks):
    """1 where a judge that compares the two answers by the written rubric chooses the preferred one, else 0 (Rubric-ARM)."""

    kind: Literal["rubric_choice"] = part_kind("rubric_choice")
    name: str = part_name("choice")
    form: RubricForm = "mams"
    judge: str = ""

    @property
    def judge_kinds(self) -> tuple[str, ...]:
        return ("pairwise_rubric",)


class RubricQualityPart(AlwaysAsks):
    """What a judge of rubrics gives the written rubric itself, 0 to 4 (MaMs)."""

    kind: Literal["rubric_quality"] = part_kind("rubric_quality")
    name: str = part_name("quality")
    form: RubricForm = "mams"
    judge: str = ""

    @property
    def judge_kinds(self) -> tuple[str, ...]:
        return ("rubric_quality",)


class RubricFormPart(PartBase):
    """0 where the written rubric has the form that was asked for, else -1 (MaMs)."""

    kind: Literal["rubric_form"] = part_kind("rubric_form")
    name: str = part_name("format")
    form: RubricForm = "mams"


class RubricRecallPart(MatchedPart):
    """The share of people's criteria that the written rubric has too (RubricBench)."""

    kind: Literal["rubric_recall"] = part_kind("rubric_recall")
    name: str = part_name("recall")
    form: RubricForm = "mams"
    matched_by: ClassVar[str] = "rubric_matcher"


WriterPart = RubricPreferencePart | RubricChoicePart | RubricQualityPart | RubricFormPart | RubricRecallPart
