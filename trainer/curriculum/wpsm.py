"""WPSM, the mask of well-learned positive samples (ERNIE 5.0, 2026): less weight on what the policy is sure of."""

from collections.abc import Sequence


def wpsm_weights(
    accuracy: float,
    entropies: Sequence[float],
    advantages: Sequence[float],
    tau: float,
    eta: float,
    alpha: float,
    kept: float | None = None,
) -> list[float]:
    """The weight of each response of a group, by which its term is multiplied; the divisor stays the group's size.

    A response has weight `1 - alpha` if its group's `accuracy` is above `tau`, its advantage is positive (our reading
    of "positive sample") and its mean token entropy, in nats, is below `eta`; else 1. `kept` is the prompt's success rate
    over the run: if it is given, it must be above `tau` too.
    """
    if accuracy <= tau or (kept is not None and kept <= tau):
        return [1.0] * len(entropies)
    return [
        1.0 - alpha if advantage > 0 and entropy < eta else 1.0
        for entropy, advantage in zip(entropies, advantages, strict=True)
    ]
