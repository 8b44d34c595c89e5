"""The section of a config sets the limits beyond which a run reports that it learns badly."""

from ..fields import Section, knob


class LearningAlarms(Section):
    """The limits for a collapsed entropy, dead gradients, and a disagreement of sampler and trainer. Each sign must last for several steps."""

    entropy_below: float = knob(
        0.1,
        "The entropy has collapsed if it is at most this share of the entropy of the first steps; 0: never. The default is a tenth, because the "
        "entropy of a policy that learns usually falls to a third or a fifth",
        ge=0,
        le=1,
    )
    gradient_below: float = knob(
        0.01,
        "Gradients are dead if their norm is at most this share of the norm of the first steps; 0: never. The default is a hundredth, because a "
        "healthy norm stays within one order of magnitude, and a second one leaves room",
        ge=0,
        le=1,
    )
    tokens_below: float = knob(
        0.01,
        "Gradients are dead if at most this share of the tokens has a gradient; 0: never. One in a hundred is a single response in a step of a "
        "hundred",
        unit="of the tokens",
        ge=0,
        le=1,
    )
    mismatch_above: float = knob(
        0.01,
        "Sampler and trainer disagree if the probabilities of more than this share of the tokens differ by more than a factor of 2; 1: never. "
        "The factor is IcePop's bound. A sampler with int8 or int4 weights has more room",
        unit="of the tokens",
        ge=0,
        le=1,
    )
    in_a_row: int = knob(
        3,
        "Steps in a row that must show the sign, so that one odd step raises no alarm. The default is three: among the 45 measured entropy curves of "
        "the results, three steps find the one that collapses, and no other",
        unit="steps",
        ge=1,
        le=1000,
    )
