"""Agreement between raters: ratings in, coefficients with n and bootstrap intervals out.

A *unit* is an item that was rated, a *rater* is a person who rated it. Ratings may be incomplete: every coefficient says how it
treats units with fewer ratings. Intervals are percentile bootstraps over units (1,000 draws, fixed seed), or over *groups* of units that
belong together, such as the criteria of one task (the cluster bootstrap; Davison and Hinkley, 1997, section 3.8).

Units with the same counts are interchangeable, and so are groups with the same units. So a resample is drawn over the distinct ones, and
its cost does not grow with their number.

Axes: U units, P distinct rows of counts, V distinct values, G groups, D bootstrap draws.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any, Literal

import krippendorff
import numpy as np
from numpy.typing import ArrayLike, NDArray

from .estimate import SINGLE_GROUP, Estimate, bootstrap_estimate, kinds, resampled_kinds, undefined_estimate, wilson

Level = Literal["nominal", "ordinal", "interval", "ratio"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_VALUES_FOR_INTERVAL = 500  # the bootstrap of alpha holds a V x V table per draw
MAX_NUMBERS = 4_000_000  # in such tables at a time
MAX_PAIRS_APART = 1000  # named in a report; a crowd of 100 who each meet a few others has more
UNIFORM = "the same in every resample, so its certainty is not known"
_ROUNDING = 1e-12


class RatingProblem(ValueError):
    """A rating that cannot be used; the message names the line or the unit and what was expected."""


@dataclass(frozen=True)
class UnitRating:
    unit: str
    rater: str
    value: str | float


@dataclass(frozen=True)
class Ratings:
    """`counts_UV[u, v]`: how many raters gave unit u value v. `values` ascends if the values are numbers. `by_rater`, for
    coefficients that need each rater: {rater: {unit: column of the value}}; `counted` leaves it empty. `groups_U`: the number of each
    unit's group; None if each unit stands alone."""

    counts_UV: Floats
    values: tuple[str | float, ...]
    by_rater: dict[str, dict[int, int]]
    groups_U: Ints | None = None

    @property
    def paired_UV(self) -> Floats:
        """Only the units with two ratings or more: a single rating agrees with nothing."""
        return self.paired.counts_UV

    @property
    def paired(self) -> "Ratings":
        """The ratings without the units that have only one."""
        kept_U = self.counts_UV.sum(1) >= 2
        groups_U = None if self.groups_U is None else self.groups_U[kept_U]
        return replace(self, counts_UV=self.counts_UV[kept_U], groups_U=groups_U)

    def resampled(self) -> "Resampled":
        """The distinct rows of counts, and how many of each are in the data and in each bootstrap sample."""
        counts_PV, n_P = kinds(self.counts_UV)
        if self.groups_U is None or len(np.unique(self.groups_U)) == len(self.groups_U):
            return Resampled(counts_PV, n_P, resampled_kinds(n_P), len(self.counts_UV))
        place = {bytes(row): kind for kind, row in enumerate(counts_PV)}
        kind_U = np.array([place[bytes(row)] for row in np.ascontiguousarray(self.counts_UV)])
        found, group_U = np.unique(self.groups_U, return_inverse=True)
        units_GP = np.zeros((len(found), len(counts_PV)))
        np.add.at(units_GP, (group_U, kind_U), 1)
        units_QP, groups_Q = kinds(units_GP)  # Q distinct groups
        return Resampled(counts_PV, n_P, resampled_kinds(groups_Q) @ units_QP, len(found))


@dataclass(frozen=True)
class Resampled:
    """`counts_PV`: distinct rows of counts. `n_P`: the number of units with each, and `weights_DP` the same in each bootstrap sample of the
    `groups`."""

    counts_PV: Floats
    n_P: Floats
    weights_DP: Floats
    groups: int

    @property
    def n(self) -> int:
        return int(self.n_P.sum())


def tabulate(ratings: Iterable[UnitRating], group: Callable[[str], Hashable] | None = None) -> Ratings:
    """Counts per unit and value. `group` gives what a unit belongs to. Raises RatingProblem if a rater rated one unit twice."""
    units: dict[str, int] = {}
    by_rater: dict[str, dict[int, str | float]] = defaultdict(dict)
    for rating in ratings:
        unit = units.setdefault(rating.unit, len(units))
        if unit in by_rater[rating.rater]:
            raise RatingProblem(f"rater {rating.rater!r} rated unit {rating.unit!r} twice")
        by_rater[rating.rater][unit] = rating.value
    distinct = {value for given in by_rater.values() for value in given.values()}
    values = tuple(sorted(distinct, key=lambda value: (isinstance(value, str), value)))
    column = {value: i for i, value in enumerate(values)}
    counts = np.zeros((len(units), len(values)))
    columns: dict[str, dict[int, int]] = {}
    for rater, given in by_rater.items():
        columns[rater] = {unit: column[value] for unit, value in given.items()}
        for unit, v in columns[rater].items():
            counts[unit, v] += 1
    groups: dict[Hashable, int] = {}
    placed = [groups.setdefault(group(unit), len(groups)) for unit in units] if group else None
    return Ratings(counts, values, columns, None if placed is None else np.array(placed, dtype=np.int64))


def counted(
    units_R: ArrayLike, values_R: ArrayLike, values: Sequence[str | float], groups_R: ArrayLike | None = None
) -> Ratings:
    """`tabulate` for millions of ratings. Each has a unit and its group, any whole numbers, and the place of its value in `values`.

    The caller makes sure that nobody has rated one unit twice, and that all ratings of a unit have one group.
    """
    units, first_U, unit_R = np.unique(units_R, return_index=True, return_inverse=True)
    groups_U = None if groups_R is None else np.asarray(groups_R, dtype=np.int64)[first_U]
    used, value_R = np.unique(values_R, return_inverse=True)
    cells = np.bincount(unit_R * len(used) + value_R, minlength=len(units) * len(used))
    counts = cells.reshape(len(units), len(used)).astype(np.float64)
    return Ratings(counts, tuple(values[place] for place in used.tolist()), {}, groups_U)


def report(ratings: Ratings, level: Level) -> dict[str, Any]:
    """Every coefficient of one table of ratings, in its JSON form.

    Pairs of raters who share no unit come last and are undefined; in a crowd they are only counted, in `raters_apart`.
    """
    pairs = list(cohen_pairs(ratings))
    apart = comb(len(ratings.by_rater), 2) - len(pairs)
    if apart <= MAX_PAIRS_APART:
        pairs += _pairs_apart(ratings)
    return {
        "level": level,
        "units": len(ratings.counts_UV),
        "raters": len(ratings.by_rater),
        "ratings": int(ratings.counts_UV.sum()),
        "percent": percent(ratings).json(),
        "cohen": pairs,
        "raters_apart": apart,
        "fleiss": fleiss(ratings).json(),
        "ac1": ac1(ratings).json(),
        "alpha": alpha(ratings, level).json(),
    }


def _agreement_P(counts_PV: Floats) -> Floats:
    """The share of agreeing pairs of ratings within each unit: sum_v c_v (c_v - 1) / (m (m - 1))."""
    m_P = counts_PV.sum(1)
    agreeing: Floats = (counts_PV * (counts_PV - 1)).sum(1) / (m_P * (m_P - 1))
    return agreeing


def percent(ratings: Ratings) -> Estimate:
    """Observed agreement: the mean share of agreeing pairs, over units with two ratings or more."""
    paired = ratings.paired
    if not len(paired.counts_UV):
        return undefined_estimate("no unit has two ratings")
    drawn = paired.resampled()
    agreement_P = _agreement_P(drawn.counts_PV)
    value = float(drawn.n_P @ agreement_P) / drawn.n
    found = _varied(value, drawn, drawn.weights_DP @ agreement_P / drawn.weights_DP.sum(1))
    if found.interval != UNIFORM or found.value is None:
        return found
    return Estimate(found.value, drawn.n, *wilson(found.value, drawn.groups))


def _varied(value: float, drawn: Resampled, draws_D: Floats) -> Estimate:
    """The bootstrap estimate, without an interval if the draws are all the same: they say nothing about certainty, least of all for a
    handful of units."""
    if drawn.groups == 1 < drawn.n:
        return Estimate(float(value), drawn.n, interval=SINGLE_GROUP)
    found = bootstrap_estimate(value, drawn.n, draws_D)
    if found.low is None or found.high is None or found.high - found.low > _ROUNDING:
        return found
    return Estimate(found.value, drawn.n, interval=UNIFORM)


def fleiss(ratings: Ratings) -> Estimate:
    """Fleiss' kappa (1971), `(p_a - p_e) / (1 - p_e)` with `p_e = sum_v pi_v^2`.

    `pi_v` is the mean over units of the share of value v, `p_a` the mean agreement over units with two ratings or more,
    which for complete ratings is Fleiss' own definition and otherwise its extension by Gwet (2014).
    """
    return _chance_corrected(ratings, lambda pi_DV: (pi_DV**2).sum(-1))


def ac1(ratings: Ratings) -> Estimate:
    """Gwet's AC1 (2008): as Fleiss' kappa, with chance agreement `sum_v pi_v (1 - pi_v) / (V - 1)`."""
    values = len(ratings.values)
    if values == 1:
        return undefined_estimate(
            "only one value was ever given, so chance agreement is not defined", len(ratings.paired_UV)
        )
    return _chance_corrected(ratings, lambda pi_DV: (pi_DV * (1 - pi_DV)).sum(-1) / (values - 1))


def _chance_corrected(ratings: Ratings, chance: Any) -> Estimate:
    if not len(ratings.paired_UV):
        return undefined_estimate("no unit has two ratings")
    drawn = ratings.resampled()
    m_P = drawn.counts_PV.sum(1)
    paired_P = m_P >= 2
    n = int(drawn.n_P[paired_P].sum())
    agreement_P = np.zeros(len(m_P))
    agreement_P[paired_P] = _agreement_P(drawn.counts_PV[paired_P])
    weights_DP = np.vstack([drawn.n_P, drawn.weights_DP])  # row 0: the data itself
    with np.errstate(invalid="ignore", divide="ignore"):
        pi_DV = weights_DP @ (drawn.counts_PV / m_P[:, None]) / weights_DP.sum(1, keepdims=True)
        observed_D = weights_DP @ agreement_P / (weights_DP @ paired_P)
        chance_D = chance(pi_DV)
        kappa_D = np.where(1 - chance_D > _ROUNDING, (observed_D - chance_D) / (1 - chance_D), np.nan)
    if not np.isfinite(kappa_D[0]):
        return undefined_estimate("only one value was ever given, so chance agreement is already 1", n)
    return _varied(kappa_D[0], replace(drawn, n_P=drawn.n_P[paired_P]), kappa_D[1:])


def cohen_pairs(ratings: Ratings) -> Iterator[dict[str, Any]]:
    """Cohen's kappa (1960) of every two raters who share a unit, most shared units first."""
    sharing: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    by_unit: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for rater in sorted(ratings.by_rater):
        for unit, v in ratings.by_rater[rater].items():
            by_unit[unit].append((rater, v))
    for given in by_unit.values():
        for (first, v), (second, w) in combinations(given, 2):
            sharing[first, second].append((v, w))
    for (first, second), pairs in sorted(sharing.items(), key=lambda item: (-len(item[1]), item[0])):
        yield {"raters": [first, second], **cohen(pairs).json()}


def _pairs_apart(ratings: Ratings) -> Iterator[dict[str, Any]]:
    """Every two raters who share no unit, in order of names, with the reason why they have no kappa."""
    for first, second in combinations(sorted(ratings.by_rater), 2):
        if ratings.by_rater[first].keys().isdisjoint(ratings.by_rater[second]):
            yield {"raters": [first, second], **cohen([]).json()}


def cohen(pairs: Sequence[tuple[int, int]]) -> Estimate:
    """Cohen's kappa of two raters from their values on the same units: `(p_o - p_e) / (1 - p_e)`."""
    return cohen_of(Counter(pairs))


def cohen_of(times: Mapping[tuple[int, int], int]) -> Estimate:
    """Cohen's kappa from how often the two raters gave each pair of values."""
    if not times:
        return undefined_estimate("the two raters share no unit")
    return _cohen(tuple(sorted(times.items())))


@lru_cache(maxsize=10_000)
def _cohen(table: tuple[tuple[tuple[int, int], int], ...]) -> Estimate:
    """Cohen's kappa from how often each pair of values occurs: in a crowd, thousands of rater pairs share a small table."""
    cells, times = zip(*table, strict=True)
    array = np.repeat(np.asarray(cells), times, axis=0)
    values, indices = np.unique(array, return_inverse=True)
    cells_PS, n_P = kinds(indices.reshape(array.shape).astype(np.float64))  # the cells of the confusion matrix
    first_P, second_P = cells_PS.astype(int).T
    n = len(array)
    drawn = Resampled(cells_PS, n_P, resampled_kinds(n_P), n)
    weights_DP = np.vstack([n_P, drawn.weights_DP])
    onehot = np.eye(len(values))
    with np.errstate(invalid="ignore", divide="ignore"):
        observed_D = weights_DP @ (first_P == second_P) / n
        chance_D = ((weights_DP @ onehot[first_P]) * (weights_DP @ onehot[second_P])).sum(1) / n**2
        kappa_D = np.where(1 - chance_D > _ROUNDING, (observed_D - chance_D) / (1 - chance_D), np.nan)
    if not np.isfinite(kappa_D[0]):
        return undefined_estimate("both raters gave one and the same value throughout, so kappa is 0/0", n)
    return _varied(kappa_D[0], drawn, kappa_D[1:])


def alpha(ratings: Ratings, level: Level) -> Estimate:
    """Krippendorff's alpha (2011), `1 - D_o / D_e`, over the units with two ratings or more."""
    paired = ratings.paired
    counts_UV = paired.counts_UV
    if not len(counts_UV):
        return undefined_estimate("no unit has two ratings")
    used = counts_UV.sum(0) > 0
    counts_UV = counts_UV[:, used]
    if counts_UV.shape[1] == 1:
        return undefined_estimate("only one value was ever given, so expected disagreement is 0", len(counts_UV))
    values = [value for value, kept in zip(ratings.values, used, strict=True) if kept]
    domain = None if level == "nominal" else _scaled(np.asarray(values, dtype=np.float64))
    value = krippendorff.alpha(
        value_counts=counts_UV,
        value_domain=range(len(values)) if domain is None else domain,
        level_of_measurement=level,
    )
    if counts_UV.shape[1] > MAX_VALUES_FOR_INTERVAL:
        reason = f"not drawn for more than {MAX_VALUES_FOR_INTERVAL} distinct values"
        return Estimate(float(value), len(counts_UV), interval=reason)
    drawn = replace(paired, counts_UV=counts_UV).resampled()
    return _varied(value, drawn, _alpha_draws(drawn.counts_PV, drawn.weights_DP, domain, level))


def _scaled(values_V: Floats) -> Floats:
    """The values, scaled to at most 1 in size. No level depends on the scale, but squares of huge or tiny values do not fit into float64."""
    scaled: Floats = values_V / np.abs(values_V).max()
    return scaled


def _alpha_draws(counts_PV: Floats, weights_DP: Floats, domain_V: Floats | None, level: Level) -> Floats:
    """Alpha of each bootstrap sample. The coincidence table is a sum over units, so a resample only reweights it."""
    block = max(1, MAX_NUMBERS // max(1, counts_PV.shape[1] ** 2))  # draws whose tables fit into memory together
    parts = [
        _alpha_of(_coincidences(counts_PV, weights_DP[start : start + block]), domain_V, level)
        for start in range(0, len(weights_DP), block)
    ]
    return np.concatenate(parts)


def _coincidences(counts_PV: Floats, weights_DP: Floats) -> Floats:
    """(D, V, V): how often values v and w meet within a unit, each unit with m ratings weighing 1 / (m - 1)."""
    values = counts_PV.shape[1]
    per_unit_PV = counts_PV / (counts_PV.sum(1, keepdims=True) - 1)
    found_DVV = np.zeros((len(weights_DP), values, values))
    step = max(1, MAX_NUMBERS // values**2)  # kinds whose products fit into memory together
    for start in range(0, len(counts_PV), step):
        part = slice(start, start + step)
        products_PW = (per_unit_PV[part, :, None] * counts_PV[part, None, :]).reshape(-1, values * values)
        found_DVV += (weights_DP[:, part] @ products_PW).reshape(found_DVV.shape)
    diagonal = np.arange(values)
    found_DVV[:, diagonal, diagonal] -= weights_DP @ per_unit_PV
    return found_DVV


def _alpha_of(coincidence_DVV: Floats, domain_V: Floats | None, level: Level) -> Floats:
    """(D,): NaN if a sample has only one value."""
    n_DV = coincidence_DVV.sum(2)
    delta_DVV = _distance(n_DV, domain_V, level)
    expected_D = np.einsum("dv,dvw,dw->d", n_DV, np.broadcast_to(delta_DVV, coincidence_DVV.shape), n_DV)
    expected_D /= n_DV.sum(1) - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected_D > 0, 1 - (coincidence_DVV * delta_DVV).sum((1, 2)) / expected_D, np.nan)


def _distance(n_DV: Floats, domain_V: Floats | None, level: Level) -> Floats:
    """(D or 1, V, V): squared distance between values, by the level (Krippendorff, 2011, section 4)."""
    if level == "nominal" or domain_V is None:
        return (1 - np.eye(n_DV.shape[1]))[None]
    if level == "ordinal":
        rank_DV = np.cumsum(n_DV, 1) - n_DV / 2  # |difference of mid-ranks| = ranks between, with half of both ends
        return np.asarray((rank_DV[:, :, None] - rank_DV[:, None, :]) ** 2)
    difference = (domain_V[:, None] - domain_V[None, :]) ** 2
    if level == "interval":
        return np.asarray(difference)[None]
    total = (domain_V[:, None] + domain_V[None, :]) ** 2
    return np.divide(difference, total, out=np.zeros_like(total), where=total > 0)[None]


def parse_rating(row: Any, level: Level) -> UnitRating | None:
    """One JSON object as a rating; None if the value is missing. Raises RatingProblem with the name of the field."""
    if not isinstance(row, dict):
        raise RatingProblem("expected an object with unit, rater and value")
    for field in ("unit", "rater", "value"):
        if field not in row:
            raise RatingProblem(f"field {field!r} is missing")
    if row["value"] is None:
        return None
    return UnitRating(_label(row, "unit"), _label(row, "rater"), _value(row["value"], level))


def _label(row: dict[str, Any], field: str) -> str:
    if not isinstance(row[field], str | int) or isinstance(row[field], bool) or row[field] == "":
        raise RatingProblem(f"field {field!r}: expected a name or a whole number, found {row[field]!r}")
    return str(row[field])


def _value(value: Any, level: Level) -> str | float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    # A whole number of any size names a category exactly; on a scale it has to fit.
    if is_number and not (level == "nominal" and isinstance(value, int)) and not abs(value) <= sys.float_info.max:
        raise RatingProblem(f"field 'value': expected a finite number, found {value!r:.60}")
    if level == "nominal":
        if isinstance(value, dict | list):
            raise RatingProblem("field 'value': expected a text, a number or true/false")
        return value if is_number else str(value)
    if not is_number:
        raise RatingProblem(f"field 'value': level {level!r} needs numbers, found {value!r}")
    if level == "ratio" and value < 0:
        raise RatingProblem(f"field 'value': a ratio scale has no negative values, found {value!r}")
    return float(value)
