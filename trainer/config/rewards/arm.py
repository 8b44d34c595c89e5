"""Parts of the rewards of Rubric-ARM: for a judgement by a written rubric, and for that rubric.

`trainer.rewards.kinds.arm` measures them. What a part reads besides the response is in `Item.facts`.
"""

from typing import ClassVar, Literal

from trainer.contracts.rubric import RubricForm

from .base import PartBase, part_kind, part_name
from .bounds import RewardBounds

ByRubricForm = Literal["touchstone", "rubric_arm"]
"""The forms of a judgement by a rubric; `trainer.rewards.judgement_forms` reads them."""

JUSTIFIED = """The conversation so far:
{{conversation}}

Response A:
{{response_a}}

Response B:
{{response_b}}

Compare the responses by this rubric:
{{criteria}}

Give each criterion an explanation of its own. Between the criteria and the verdict add the key “justification”: one or two \
sentences on why the whole leads to the verdict."""
"""The question to a judge of kind `pairwise_rubric` in the form `touchstone`: the kind's own question with a last paragraph."""


class RubricVerdictPart(PartBase):
    """1 if a judgement by a written rubric chooses the answer that people preferred, else 0. A choice is forced: a tie, and a judgement
    without a decision, are not right (Rubric-ARM)."""

    values: ClassVar[RewardBounds] = RewardBounds(0.0, 1.0)
    kind: Literal["rubric_verdict"] = part_kind("rubric_verdict")
    name: str = part_name("outcome")
    form: ByRubricForm = "touchstone"


class RubricJudgementFormPart(PartBase):
    """1 if a judgement explains every criterion, then justifies the whole, then decides once, else 0 (Rubric-ARM)."""

    values: ClassVar[RewardBounds] = RewardBounds(0.0, 1.0)
    kind: Literal["rubric_judgement_form"] = part_kind("rubric_judgement_form")
    name: str = part_name("form")
    form: ByRubricForm = "touchstone"


class FrozenChoicePart(PartBase):
    """1 if the frozen judge of the run chooses, by the written rubric, the answer that people preferred, else 0
    (Rubric-ARM, eq. 8)."""

    values: ClassVar[RewardBounds] = RewardBounds(0.0, 1.0)
    kind: Literal["frozen_choice"] = part_kind("frozen_choice")
    name: str = part_name("choice")
    form: RubricForm = "rubric_arm"


ArmPart = RubricVerdictPart | RubricJudgementFormPart | FrozenChoicePart
