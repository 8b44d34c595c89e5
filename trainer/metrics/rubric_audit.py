"""Does each criterion of a rubric make a difference? Verdicts on many responses show what each criterion adds.

After RubricBench (2025). Axes: R responses, K criteria, D bootstrap draws.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from trainer.rubrics.stress import Power, distinguishes

from .estimate import (
    SEED,
    Estimate,
    Floats,
    bootstrap_estimate,
    bootstrap_mean,
    numbers,
    proportion,
    resampled_kinds,
    undefined_estimate,
)

ALIKE = 0.9  # phi from which two criteria say the same; below its negative, the opposite
MOST_PAIRED = 300  # responses whose pairs are compared; of more, as many drawn with a fixed seed
FEWEST = 5  # responses with both verdicts, below which a pair is not judged

Met = Sequence[bool | None]


@dataclass(frozen=True)
class CriterionPower:
    """The share of responses that meet a criterion, and whether it tells responses apart; a missing verdict is neither met nor not."""

    power: Power
    share: Estimate


def criterion_powers(met_RK: Sequence[Met]) -> list[CriterionPower]:
    """One entry per criterion; rows are responses. Raises ValueError for rows of different lengths."""
    return [
        CriterionPower(
            distinguishes(column),
            proportion(
                sum(bool(met) for met in column),
                sum(met is not None for met in column),
                sum(met is None for met in column),
                "no verdict",
            ),
        )
        for column in _columns(met_RK)
    ]


@dataclass(frozen=True)
class Related:
    """Two criteria that move together. `first` and `second` are places in the rubric from 0."""

    first: int
    second: int
    kind: Literal["redundant", "conflicting"]
    phi: Estimate


def related(met_RK: Sequence[Met], points_K: Sequence[float]) -> list[Related]:
    """Pairs of criteria with |phi| of `ALIKE` or more on the responses with both verdicts, the strongest first.

    phi is Pearson's correlation of two yes-no verdicts. Two that move together count one thing twice: redundant. Two
    that move against each other are in conflict when both earn or both cost points: no response can satisfy both. With
    opposite signs they are one thing rewarded and its absence punished: redundant; and moving together, with opposite
    signs, they reward and punish the same thing: conflicting.
    """
    columns = _columns(met_RK)
    if len(points_K) != len(columns) and met_RK:
        raise ValueError(f"{len(points_K)} points for {len(columns)} criteria")
    found = []
    for k, j in combinations(range(len(columns)), 2):
        phi = association(columns[k], columns[j])
        if phi.value is None or phi.n < FEWEST or abs(phi.value) < ALIKE:
            continue
        together, same_sign = phi.value > 0, (points_K[k] > 0) == (points_K[j] > 0)
        found.append(Related(k, j, "redundant" if together == same_sign else "conflicting", phi))
    return sorted(found, key=lambda pair: (-abs(pair.phi.value or 0), pair.first, pair.second))


def association(first_R: Met, second_R: Met) -> Estimate:
    """phi = (n11 n00 - n10 n01) / sqrt(n1. n0. n.1 n.0); undefined if a criterion does not vary (Yule, 1912)."""
    cells = np.zeros((2, 2))
    absent = 0
    for a, b in zip(first_R, second_R, strict=True):
        if a is None or b is None:
            absent += 1
        else:
            cells[int(a), int(b)] += 1
    n = int(cells.sum())
    value = float(_phi(cells.reshape(1, 4))[0]) if n else np.nan
    if not np.isfinite(value):
        reason = "one of the two criteria does not vary" if n else "no response has both verdicts"
        return undefined_estimate(reason, n, absent)
    return bootstrap_estimate(value, n, _phi(resampled_kinds(cells.ravel())), absent)


def _phi(cells_D4: Floats) -> Floats:
    n00_D, n01_D, n10_D, n11_D = cells_D4.T
    below_D = (n11_D + n10_D) * (n01_D + n00_D) * (n11_D + n01_D) * (n10_D + n00_D)
    above_D = n11_D * n00_D - n10_D * n01_D
    return np.where(below_D > 0, above_D / np.sqrt(np.where(below_D > 0, below_D, 1.0)), np.nan)


@dataclass(frozen=True)
class Sensitivity:
    """The effect of leaving out one criterion. `weight`: its points over the sum of positive points.

    `shift`: mean of score without it - score with it. `swing`: mean of the absolute difference. `flips`: share of pairs
    of responses, ordered by the full score, whose order without it is another or tied; n counts those pairs. All undefined for the only
    positive criterion: without it there is no score.
    """

    weight: float
    shift: Estimate
    swing: Estimate
    flips: Estimate


def sensitivity(met_RK: Sequence[Met], points_K: Sequence[float]) -> list[Sensitivity]:
    """Per criterion, over the responses with every verdict; the others are counted in `missing`.

    Scores are `S = sum_i b_i p_i / sum_{p_j > 0} p_j`. Raises ValueError if no points are positive.
    """
    columns = _columns(met_RK)
    points = np.asarray(points_K, dtype=np.float64)
    if not (points > 0).any():
        raise ValueError("no criterion has positive points, so there is no score")
    if met_RK and len(points) != len(columns):
        raise ValueError(f"{len(points)} points for {len(columns)} criteria")
    values_RK = np.array([numbers(row) for row in met_RK]).reshape(len(met_RK), len(points))
    whole_R = ~np.isnan(values_RK).any(1)
    absent = int((~whole_R).sum())
    met = values_RK[whole_R]
    return [_without(met, points, k, absent) for k in range(len(points))]


def _without(met_RK: Floats, points_K: Floats, k: int, absent: int) -> Sensitivity:
    positive = points_K[points_K > 0].sum()
    weight = float(points_K[k] / positive)
    left = np.delete(points_K, k)
    if not (left > 0).any():
        gone = undefined_estimate(
            "the only criterion with positive points: without it there is no score", missing=absent
        )
        return Sensitivity(weight, gone, gone, gone)
    full_R = met_RK @ points_K / positive
    rest_R = np.delete(met_RK, k, axis=1) @ left / left[left > 0].sum()
    reason = "no response has every verdict"
    return Sensitivity(
        weight,
        shift=bootstrap_mean(rest_R - full_R, absent, reason),
        swing=bootstrap_mean(np.abs(rest_R - full_R), absent, reason),
        flips=_flips(full_R, rest_R, absent),
    )


def _flips(full_R: Floats, rest_R: Floats, absent: int) -> Estimate:
    """A pair drawn in a resample weighs as often as both of its responses were drawn."""
    if len(full_R) > MOST_PAIRED:
        drawn = np.sort(np.random.default_rng(SEED).choice(len(full_R), MOST_PAIRED, replace=False))
        full_R, rest_R = full_R[drawn], rest_R[drawn]
    apart_RR = np.sign(np.round(full_R[:, None] - full_R[None, :], 12))
    changed_RR = (np.sign(np.round(rest_R[:, None] - rest_R[None, :], 12)) != apart_RR) & (apart_RR != 0)
    pairs = int((apart_RR != 0).sum()) // 2
    if not pairs:
        return undefined_estimate("no two responses differ in score", missing=absent)
    weights_DR = resampled_kinds(np.ones(len(full_R)))
    with np.errstate(invalid="ignore", divide="ignore"):
        above_D = ((weights_DR @ changed_RR.astype(np.float64)) * weights_DR).sum(1)
        below_D = ((weights_DR @ np.abs(apart_RR)) * weights_DR).sum(1)
        draws_D = above_D / below_D
    return bootstrap_estimate(float(changed_RR.sum() / 2 / pairs), pairs, draws_D, absent)


def _columns(met_RK: Sequence[Met]) -> list[list[bool | None]]:
    widths = {len(row) for row in met_RK}
    if len(widths) > 1:
        raise ValueError(f"responses have verdicts on {sorted(widths)} criteria; a rubric has one number of them")
    return [list(column) for column in zip(*met_RK, strict=True)]


def as_json(
    held_K: Sequence[CriterionPower], related_pairs: Sequence[Related], sensitive_K: Sequence[Sensitivity]
) -> dict[str, Any]:
    """The three tables of a rubric's audit, as results are stored."""
    return {
        "criteria": [
            {
                "power": h.power,
                "share": h.share.json(),
                "weight": s.weight,
                "shift": s.shift.json(),
                "swing": s.swing.json(),
                "flips": s.flips.json(),
            }
            for h, s in zip(held_K, sensitive_K, strict=True)
        ],
        "related": [{**vars(pair), "phi": pair.phi.json()} for pair in related_pairs],
    }
