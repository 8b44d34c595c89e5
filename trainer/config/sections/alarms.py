"""The section of a config sets the limits beyond which a run reports that it learns badly."""

from ..fields import Section, knob


class LearningAlarms(Section):
    """From when on the entropy has collapsed, gradients are dead, or sampler and trainer disagree. Each must last for several steps."""

    entropy_below: float = knob(
        0.1,
        "Entropy as a part of that of the first steps, from which it has collapsed; 0: never. A tenth, because an entropy that falls to a third or a "
        "fifth is usual while a policy learns",
        ge=0,
        le=1,
    )
    gradient_below: float = knob(
        0.01,
        "Norm of the gradient as a part of that of the first steps, from which gradients are dead; 0: never. A hundredth, because a healthy norm stays "
        "within one order of magnitude, and the second is room",
        ge=0,
        le=1,
    )
    tokens_below: float = knob(
        0.01,
        "Share of the tokens that have a gradient, from which gradients are dead; 0: never. One in a hundred is a single response in a step of a "
        "hundred",
        unit="of the tokens",
        ge=0,
        le=1,
    )
    mismatch_above: float = knob(
        0.01,
        "Share of the tokens whose probabilities differ by more than a factor of 2 between sampler and trainer, above which they disagree; 1: never. "
        "The factor is IcePop's bound. A sampler in whole numbers has more room",
        unit="of the tokens",
        ge=0,
        le=1,
    )
    in_a_row: int = knob(
        3,
        "Steps in a row that must show it, so that one odd step raises no alarm. Three, because among the 45 measured entropy curves of the results "
        "they find the one that collapses, and no other",
        unit="steps",
        ge=1,
        le=1000,
    )
