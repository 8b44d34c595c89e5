"""What a judge is shown: one example with whatever its kind needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainer.contracts import Criterion, Message


class InputProblem(ValueError):
    """The input lacks what this kind of judge needs. It is counted as such and nothing is called."""


@dataclass(frozen=True)
class JudgeInput:
    """Each kind reads a part of it. `example` is the example's key; `responses` are texts by id, in their given order.

    `generated` and `reference_items` are two rubrics whose items a matcher compares, `human_reasons` and `model_reasons`
    two lists of reasons, `rationale` is free text to take apart, `verdict` what a judge said the reasons were for.
    `subject` is carried along into the stored verdict and takes no part in its key.
    """

    example: str
    conversation: tuple[Message, ...] = ()
    responses: Mapping[str, str] = field(default_factory=dict)
    criteria: tuple[Criterion, ...] = ()
    reference: str = ""
    generated: tuple[str, ...] = ()
    reference_items: tuple[str, ...] = ()
    human_reasons: tuple[str, ...] = ()
    model_reasons: tuple[str, ...] = ()
    rationale: str = ""
    verdict: str = ""
    subject: Mapping[str, str | int] = field(default_factory=dict)
