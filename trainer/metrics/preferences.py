"""Measures how well scores order pairs of answers, also by slices and with intervals, beside baselines and the agreement of people.

A margin is the preferred answer's score less the other's. Pairs of one prompt are not independent, so intervals draw whole
prompts if `prompts_P` says to which one each pair belongs. Axes: P pairs.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from .audit import length_slice
from .estimate import Estimate, Floats, bootstrap_mean, bootstrap_sums, proportion, share_over_clusters

Prompts = Sequence[Hashable] | None


def accuracy(margins_P: Sequence[float], prompts_P: Prompts = None) -> Estimate:
    """The share of pairs whose preferred answer scored higher; a margin of exactly 0 is not right."""
    return share_over_clusters([margin > 0 for margin in margins_P], prompts_P, empty="no pair")


def accuracy_by(
    slices_P: Sequence[Hashable | None], margins_P: Sequence[float], prompts_P: Prompts = None
) -> dict[Hashable, Estimate]:
    """The accuracy of each slice, in the order of first appearance; None is in no slice."""
    found: dict[Hashable, list[int]] = defaultdict(list)
    for at, (place, _) in enumerate(zip(slices_P, margins_P, strict=True)):
        if place is not None:
            found[place].append(at)
    return {place: _accuracy_at(kept, margins_P, prompts_P) for place, kept in found.items()}


def _accuracy_at(kept: Sequence[int], margins_P: Sequence[float], prompts_P: Prompts) -> Estimate:
    return accuracy([margins_P[at] for at in kept], None if prompts_P is None else [prompts_P[at] for at in kept])


def longer_is_worse(
    lengths_P: Sequence[tuple[int, int]], margins_P: Sequence[float], prompts_P: Prompts = None
) -> Estimate:
    """The accuracy on pairs whose rejected answer is longer by half or more, so that length misleads. `lengths_P`: (chosen, rejected)."""
    slices = [length_slice(chosen, rejected) for chosen, rejected in lengths_P]
    return _accuracy_at([at for at, place in enumerate(slices) if place == "longer is worse"], margins_P, prompts_P)


def length_correlation(
    lengths_P: Sequence[tuple[int, int]], margins_P: Sequence[float], prompts_P: Prompts = None
) -> Estimate:
    """The correlation of the lead in score with the lead in log length, over pairs of answers to one prompt.

    Which answer comes first is arbitrary, so it is taken over both orders: sum(m l) / sqrt(sum(m^2) sum(l^2)).
    """
    lengths = np.asarray(lengths_P, dtype=np.float64).reshape(-1, 2)
    lead_P = np.log((lengths[:, 0] + 1) / (lengths[:, 1] + 1))
    margin_P = np.asarray(margins_P, dtype=np.float64)
    columns = np.column_stack([margin_P * lead_P, margin_P**2, lead_P**2])

    def correlation(sums_DF: Floats) -> Floats:
        found: Floats = sums_DF[:, 0] / np.sqrt(sums_DF[:, 1] * sums_DF[:, 2])
        return found

    empty = "all lengths or all scores are equal within their pairs"
    return bootstrap_sums(columns, correlation, clusters=prompts_P, empty=empty)


def ceiling(votes_P: Sequence[tuple[int, int]]) -> Estimate:
    """The share of raters that agree with the majority of the others: the accuracy of the majority as a guess of one rater.

    `votes_P`: raters for the one and for the other answer. A rater whose others are split, or absent, does not count.
    """
    right = judged = 0
    for for_one, for_other in votes_P:
        for mine, theirs in ((for_one, for_other), (for_other, for_one)):
            if mine and mine - 1 != theirs:
                judged += mine
                right += mine if mine - 1 > theirs else 0
    return proportion(right, judged, empty="no pair has a rater beside a majority of others")


def baseline(train_P: Sequence[tuple[float, float]], heldout_P: Sequence[tuple[float, float]]) -> Estimate:
    """Accuracy of a feature of each answer, (chosen, rejected), taken as its score in the direction that is more often
    right on the training pairs. Equal features are half right."""
    direction = np.sign(np.sum(_leads(train_P))) or 1.0
    return bootstrap_mean((1 + direction * _leads(heldout_P)) / 2, empty="no pair", share=True)


def _leads(features_P: Sequence[tuple[float, float]]) -> Floats:
    values = np.asarray(features_P, dtype=np.float64).reshape(-1, 2)
    leads: Floats = np.sign(values[:, 0] - values[:, 1])
    return leads
