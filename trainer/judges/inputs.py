"""The input of a judge: one example with all that the kind of judge needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainer.contracts import Criterion, Example, Message


class InputProblem(ValueError):
    """The input lacks something that this kind of judge needs. Such inputs are counted, and no call is made."""


@dataclass(frozen=True)
class JudgeInput:
    """Each kind of judge reads a part of the input. `example` is the example's key; `responses` are texts by id, in their given order.

    A matcher compares the items of the rubrics `generated` and `reference_items`, or the reasons in `human_reasons` and `model_reasons`.
    `rationale` is free text that is split into reasons; `verdict` is the verdict for which the reasons were given. `subject` goes into
    the stored verdict, but not into its key.
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
    """The input from an example alone. `pair`: the two responses of its first comparison, or its first two.

    The human reasons are those of all raters of that pair, each text once; the rationale has the same reasons as running text.
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
