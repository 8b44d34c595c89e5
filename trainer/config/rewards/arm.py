"""Parts of the rewards of Rubric-ARM: what a judgement by a written rubric is worth, and the rubric by which it was given.

How each is measured is in `trainer.rewards.kinds.arm`; what it reads besides the response is in `Item.facts`.
"""

from typing import Literal

from trainer.contracts.rubric import RubricForm

from .base import PartBase, part_kind, part_name

ByRubricForm = Literal["touchstone", "rubric_arm"]
"""How a judgement by a rubric is written down; `trainer.rewards.judgement_forms` reads it."""

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
"""What a judge of kind `pairwise_rubric` is asked in form `touchstone`: the kind's own question, with the paragraph at the end."""


class RubricVerdictPart(PartBase):
    """1 where a judgement by a written rubric chooses the answer that people preferred, else 0: a choice is forced, so a tie
    and a judgement without a decision are not right (Rubric-ARM)."""

    kind: Literal["rubric_verdict"] = part_kind("rubric_verdict")
    name: str = part_name("outcome")
    form: ByRubricForm = "touchstone"


class RubricJudgementFormPart(PartBase):
    """1 where a judgement explains every criterion, then justifies the whole, then decides once, else 0 (Rubric-ARM)."""

    kind: Literal["rubric_judgement_form"] = part_kind("rubric_judgement_form")
    name: str = part_name("form")
    form: ByRubricForm = "touchstone"


class FrozenChoicePart(PartBase):
    """1 where the frozen judge of the run chooses, by the written rubric, the answer that people preferred, else 0
    (Rubric-ARM, eq. 8)."""

    kind: Literal["frozen_choice"] = part_kind("frozen_choice")
    name: str = part_name("choice")
    form: RubricForm = "rubric_arm"


ArmPart = RubricVerdictPart | RubricJudgementFormPart | FrozenChoicePart
