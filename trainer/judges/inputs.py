"""What a judge is shown: one example with whatever its kind needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainer.contracts import Criterion, Example, Message


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


def of_example(example: Example, *, pair: bool) -> JudgeInput:
    """What an example by itself gives a judge. `pair`: the two responses of its first comparison, or its first two.

    Human reasons are those of all raters of that pair, each text once; the rationale is the same as running text.
    """
    responses = {response.id: response.text for response in example.responses}
    compared = example.preferences[0] if example.preferences else None
    if pair:
        sides = (compared.a, compared.b) if compared else list(responses)[:2]
        responses = {side: responses[side] for side in sides}
    reasons: dict[str, None] = {}
    for preference in example.preferences:
        if compared and {preference.a, preference.b} == {compared.a, compared.b}:
            reasons |= dict.fromkeys(reason.text for reason in preference.reasons)
    criteria = example.rubric.criteria if example.rubric else ()
    return JudgeInput(
        example=example.key,
        conversation=example.prompt,
        responses=responses,
        criteria=criteria,
        reference=example.reference or "",
        reference_items=tuple(criterion.text for criterion in criteria),
        human_reasons=tuple(reasons),
        rationale="\n".join(reasons),
    )
