"""Responses that a run has learned well: it learns less from them (WPSM)."""

from ..fields import Section, knob


class WellLearned(Section):
    """WPSM: if a prompt is mostly solved, its responses count for less when they have a positive advantage and the policy is sure of them."""

    tau: float = knob(
        0.8,
        "Share of solved responses above which a prompt is well learned: in its group and, if the run has met it before, "
        "also over the run so far",
        unit="of the responses",
        ge=0,
        le=1,
    )
    eta: float = knob(
        0.3, "Mean entropy of a response's tokens below which the policy is sure of it", unit="nats/token", ge=0
    )
    alpha: float = knob(0.5, "The share of its weight that such a response loses; 1: it changes no weights", gt=0, le=1)
