"""Grades by a rubric beside comparisons of the same responses: criterion weights that fit the comparisons, how well grades,
comparisons and both together rank responses, and which of the two adds more for a minute of people's time.

Axes: C comparisons, F features of a comparison, N responses to a prompt, P prompts, D bootstrap draws.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from .estimate import (
    SINGLE_GROUP,
    Estimate,
    Floats,
    bootstrap_estimate,
    bootstrap_sums,
    numbers,
    resamples,
    undefined_estimate,
)

FOLDS = 10
WEIGHT_DRAWS = 200  # each fits all weights again
MOST_WEIGHTS = 200
SLACK = 0.1  # penalty of what only keeps an optimum finite: strengths of responses and the weights of the two scores
EQUAL = 1e-9
STEPS, PRECISE = 100, 1e-10


@dataclass(frozen=True)
class Preferred:
    """One person's comparison of two responses to a prompt. `outcome`: 1 the first is better, 0 a tie, -1 the second."""

    prompt: str
    first: str
    second: str
    outcome: int


@dataclass(frozen=True)
class Minutes:
    """People's time with one prompt, in minutes; None if it was not measured."""

    grading: float | None
    comparing: float | None


@dataclass(frozen=True)
class Ranks:
    """`tau`: rank correlation with comparisons that the score has not seen. `minutes`: mean time of people per prompt.
    `per_minute`: the first over the second."""

    tau: Estimate
    minutes: Estimate
    per_minute: Estimate


@dataclass(frozen=True)
class Weight:
    """`weight`: the log odds of being preferred that meeting the criterion adds. `points`: the rubric's, mean over prompts."""

    criterion: str
    points: float
    weight: Estimate


@dataclass(frozen=True)
class Fused:
    """`more_grades` and `more_comparisons`: rank correlation that either adds to the other, per minute of its own time;
    `difference`: the first minus the second. `agrees_C`: for each comparison, in the given order, whether rubric, comparisons
    and both order it as the person did: 1 or -1, 0 if the scores are equal, None if there is no score or the person tied."""

    rubric: Ranks
    comparison: Ranks
    fused: Ranks
    more_grades: Estimate
    more_comparisons: Estimate
    difference: Estimate
    weights: tuple[Weight, ...]
    weights_left_out: int
    agrees_C: tuple[tuple[float | None, float | None, float | None], ...]

    @property
    def collect(self) -> str:
        """The answers to collect next: `grades` or `comparisons`; "" if the interval does not separate them, or if the better of the two
        adds nothing."""
        low, high = self.difference.low, self.difference.high
        if low is None or high is None or low <= 0 <= high:
            return ""
        name, gain = ("grades", self.more_grades) if low > 0 else ("comparisons", self.more_comparisons)
        return name if (gain.value or 0.0) > 0 else ""


Grades = Mapping[tuple[str, str], Mapping[str, float]]
"""For each (prompt, response) the share of people who say that it meets each criterion, by the criterion's words. Only complete grades count."""
Points = Mapping[str, Mapping[str, float]]
"""For each prompt its rubric: the points of each criterion, by the criterion's words."""


def ridge_logistic(x_CF: Floats, y_C: Floats, penalty_F: Floats, weight_C: Floats | None = None) -> Floats:
    """(F,) the maximum of sum_c v_c [y log s(xw) + (1 - y) log s(-xw)] - sum_f penalty_f w_f^2 / 2, s the logistic function,
    by Newton's steps, halved where one goes too far (le Cessie and van Houwelingen, 1992).

    With differences of two sides as x it is a Bradley-Terry model whose strengths are linear in features (Bradley and Terry,
    1952; Springall, 1973), so it has no intercept. `y_C` lies in 0..1; `weight_C` counts a case more than once. Raises
    ValueError for a y outside or a penalty that is not above 0, without which separated data have no maximum.
    """
    if len(penalty_F) and not (penalty_F > 0).all():
        raise ValueError("every penalty must be above 0")
    if len(y_C) and not ((y_C >= 0) & (y_C <= 1)).all():
        raise ValueError("outcomes must lie between 0 and 1")
    v_C = np.ones(len(y_C)) if weight_C is None else weight_C

    def loss(w_F: Floats) -> float:
        z_C = x_CF @ w_F
        return float(v_C @ (np.logaddexp(0.0, z_C) - y_C * z_C) + penalty_F @ w_F**2 / 2)

    w_F = np.zeros(x_CF.shape[1])
    now = loss(w_F)
    for _ in range(STEPS):
        p_C = scipy.special.expit(x_CF @ w_F)
        slope_F = x_CF.T @ (v_C * (p_C - y_C)) + penalty_F * w_F
        bend_FF = (x_CF * (v_C * p_C * (1 - p_C))[:, None]).T @ x_CF + np.diag(penalty_F)
        step_F = np.linalg.solve(bend_FF, slope_F)
        while (after := loss(w_F - step_F)) > now + EQUAL and np.abs(step_F).max() > PRECISE:
            step_F = step_F / 2
        w_F, now = w_F - step_F, after
        if not len(step_F) or np.abs(step_F).max() < PRECISE:
            break
    return w_F


def fused(
    comparisons: Sequence[Preferred],
    grades: Grades,
    points: Points,
    minutes: Mapping[str, Minutes],
    ridge: float = 1.0,
) -> Fused:
    """Criterion weights fitted to comparisons, and three scores of each response held against comparisons they have not seen.

    - rubric: sum of points times the share who say it is met, over the positive points.
    - comparison: Bradley-Terry strength from the prompt's other comparisons, with a ridge of `SLACK`.
    - both: the log odds beta * rubric + gamma * comparison + sum_k d_k met_k, of a ridge logistic regression on differences
      that was fitted to the comparisons of other prompts (10 folds), beta not below 0. `ridge` draws d_k to 0, which is the rubric's own points;
      criteria of a single prompt stay there, because no other prompt has them.

    Rank correlation is Kendall's tau over the comparisons with a winner: (concordant - discordant) / all; two responses with the
    same score count as neither (Kendall, 1938). Intervals resample prompts. Raises ValueError for a ridge not above 0.
    """
    data = _Data.of(comparisons, grades, points)
    model_C = data.predicted(ridge)
    outcome_C = np.array([c.outcome for c in comparisons], dtype=np.float64)
    given_C3 = np.column_stack([data.rubric_C, data.strength_C, model_C])
    agrees_C3 = np.where(outcome_C[:, None] == 0, np.nan, _sign(given_C3) * outcome_C[:, None])
    time_P2 = _time(data, minutes)
    rubric, comparison, both = (_ranks(data, agrees_C3[:, at], cost) for at, cost in enumerate(_costs(time_P2)))
    grades_gain, comparisons_gain, difference = _gains(data, agrees_C3, time_P2)
    weights, left_out = _weights(data, points, ridge)
    return Fused(
        rubric,
        comparison,
        both,
        grades_gain,
        comparisons_gain,
        difference,
        weights,
        left_out,
        tuple((_known(one), _known(two), _known(three)) for one, two, three in agrees_C3.tolist()),
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value


@dataclass(frozen=True)
class _Data:
    """The differences of each comparison, first minus second: `rubric_C` is NaN if one is not graded, `strength_C` is NaN if no other
    comparisons lead from one to the other, `met_CF` has the criteria that several prompts share."""

    comparisons: Sequence[Preferred]
    prompts: list[str]
    prompt_C: Any
    y_C: Floats
    rubric_C: Floats
    strength_C: Floats
    criteria: list[str]
    left_out: int
    met_CF: Floats

    @classmethod
    def of(cls, comparisons: Sequence[Preferred], grades: Grades, points: Points) -> "_Data":
        prompts = sorted({c.prompt for c in comparisons})
        place = {prompt: at for at, prompt in enumerate(prompts)}
        prompt_C = np.array([place[c.prompt] for c in comparisons], dtype=np.intp)
        scores = {key: _score(points.get(key[0], {}), met) for key, met in grades.items()}
        sides = [(scores.get((c.prompt, c.first)), scores.get((c.prompt, c.second))) for c in comparisons]
        rubric_C = numbers([None if a is None or b is None else a - b for a, b in sides])
        y_C = np.array([(c.outcome + 1) / 2 for c in comparisons], dtype=np.float64)
        graded = [c for c, known in zip(comparisons, ~np.isnan(rubric_C), strict=True) if known]
        listed = _shared(graded, points)
        criteria = listed[:MOST_WEIGHTS]
        met_CF = np.zeros((len(comparisons), len(criteria)))
        for row, c, known in zip(met_CF, comparisons, ~np.isnan(rubric_C), strict=True):
            if known:
                first, second = grades[c.prompt, c.first], grades[c.prompt, c.second]
                row[:] = [first.get(text, 0.0) - second.get(text, 0.0) for text in criteria]
        strength_C = _left_one_out(comparisons, prompt_C)
        return cls(
            comparisons,
            prompts,
            prompt_C,
            y_C,
            rubric_C,
            strength_C,
            criteria,
            len(listed) - len(criteria),
            met_CF,
        )

    @property
    def known_C(self) -> Any:
        return ~np.isnan(self.rubric_C)

    @property
    def x_CF(self) -> Floats:
        """The features of all comparisons. If nothing else was compared, the strengths are equal, as a ridge without data gives them."""
        return np.column_stack([np.nan_to_num(self.rubric_C), np.nan_to_num(self.strength_C), self.met_CF])

    def penalty(self, ridge: float) -> Floats:
        if not ridge > 0:
            raise ValueError("the ridge must be above 0")
        return np.array([SLACK, SLACK, *[ridge] * len(self.criteria)])

    def predicted(self, ridge: float) -> Floats:
        """(C,) log odds that the first is better, by weights of other prompts; NaN if one side is not graded or there is no
        other prompt."""
        penalty_F, found_C = self.penalty(ridge), np.full(len(self.y_C), np.nan)
        graded = np.unique(self.prompt_C[self.known_C])
        fold_of = {prompt: at % FOLDS for at, prompt in enumerate(graded.tolist())}
        fold_C = np.array([fold_of.get(prompt, -1) for prompt in self.prompt_C.tolist()], dtype=np.intp)
        for fold in range(min(FOLDS, len(graded)) if len(graded) > 1 else 0):
            seen_C, held_C = self.known_C & (fold_C != fold), self.known_C & (fold_C == fold)
            w_F = _fit(self.x_CF[seen_C], self.y_C[seen_C], penalty_F)
            found_C[held_C] = self.x_CF[held_C] @ w_F
        return found_C


def _fit(x_CF: Floats, y_C: Floats, penalty_F: Floats, weight_C: Floats | None = None) -> Floats:
    """The fit with a first weight, that of the rubric's score, of at least 0: criteria are drawn to its points, never away from them."""
    w_F = ridge_logistic(x_CF, y_C, penalty_F, weight_C)
    if w_F[0] >= 0:
        return w_F
    return np.concatenate([[0.0], ridge_logistic(x_CF[:, 1:], y_C, penalty_F[1:], weight_C)])


def _score(rubric: Mapping[str, float], met: Mapping[str, float]) -> float | None:
    """The score by the rubric; None if a criterion has no grade, or none earns points."""
    whole = sum(value for value in rubric.values() if value > 0)
    if whole <= 0 or any(text not in met for text in rubric):
        return None
    return sum(value * met[text] for text, value in rubric.items()) / whole


def _shared(graded: Sequence[Preferred], points: Points) -> list[str]:
    """The criteria of two prompts or more, those of most comparisons first."""
    prompts: dict[str, set[str]] = defaultdict(set)
    times: dict[str, int] = defaultdict(int)
    for c in graded:
        for text in points.get(c.prompt, {}):
            prompts[text].add(c.prompt)
            times[text] += 1
    return sorted((text for text in prompts if len(prompts[text]) > 1), key=lambda text: (-times[text], text))


def _left_one_out(comparisons: Sequence[Preferred], prompt_C: Any) -> Floats:
    """(C,) the difference of strengths of each comparison, by the other comparisons on its prompt."""
    found_C = np.full(len(comparisons), np.nan)
    for prompt in np.unique(prompt_C):
        of = np.flatnonzero(prompt_C == prompt).tolist()
        names = sorted({name for at in of for name in (comparisons[at].first, comparisons[at].second)})
        x_CN = np.array([[(n == comparisons[at].first) - (n == comparisons[at].second) for n in names] for at in of])
        y_C = np.array([(comparisons[at].outcome + 1) / 2 for at in of], dtype=np.float64)
        known: dict[bytes, float] = {}  # equal comparisons leave equal others
        for at, place in enumerate(of):
            kind = np.append(x_CN[at], y_C[at]).astype(np.float64).tobytes()
            if kind not in known:
                known[kind] = _strength(np.delete(x_CN, at, 0).astype(np.float64), np.delete(y_C, at), x_CN[at])
            found_C[place] = known[kind]
    return found_C


def _strength(x_CN: Floats, y_C: Floats, held_N: Floats) -> float:
    """The difference of strengths; NaN if no chain of comparisons leads from one side of the held-out one to the other."""
    met_NN = np.abs(x_CN).T @ np.abs(x_CN) > 0
    _, label_N = scipy.sparse.csgraph.connected_components(met_NN, directed=False)
    if len(np.unique(label_N[held_N != 0])) > 1:
        return float("nan")
    return float(held_N @ ridge_logistic(x_CN, y_C, np.full(x_CN.shape[1], SLACK)))


def _sign(values: Floats) -> Floats:
    return np.where(np.abs(values) < EQUAL, 0.0, np.sign(values))


def _time(data: _Data, minutes: Mapping[str, Minutes]) -> Floats:
    """(P, 2) minutes of grading, and of the comparisons that speak for a held-out one: all but itself."""
    count_P = np.bincount(data.prompt_C, minlength=len(data.prompts))
    found = [minutes.get(prompt, Minutes(None, None)) for prompt in data.prompts]
    grading, comparing = numbers([each.grading for each in found]), numbers([each.comparing for each in found])
    return np.column_stack([grading, comparing * (count_P - 1) / np.maximum(count_P, 1)])


def _costs(time_P2: Floats) -> tuple[Floats, Floats, Floats]:
    return time_P2[:, 0], time_P2[:, 1], time_P2.sum(1)


def _by_prompt(data: _Data, values_C: Floats, used_C: Any) -> Floats:
    sums_P: Floats = np.bincount(data.prompt_C[used_C], weights=values_C[used_C], minlength=len(data.prompts)).astype(
        float
    )
    return sums_P


def _ranks(data: _Data, agrees_C: Floats, cost_P: Floats) -> Ranks:
    used_C = ~np.isnan(agrees_C)
    sums_P2 = np.column_stack([_by_prompt(data, agrees_C, used_C), _by_prompt(data, np.ones(len(agrees_C)), used_C)])
    there_P = sums_P2[:, 1] > 0
    n, missing = int(used_C.sum()), int((~used_C).sum())
    tau = bootstrap_sums(
        sums_P2[there_P],
        lambda sums: sums[:, 0] / sums[:, 1],
        n=n,
        missing=missing,
        empty="no comparison with a winner has both scores",
    )
    timed_P = there_P & (cost_P > 0)  # NaN is not
    rows = np.column_stack([sums_P2, cost_P, np.ones(len(cost_P))])[timed_P]
    n_timed = int(sums_P2[timed_P, 1].sum())
    untimed = "nobody's time was measured" if n else tau.undefined
    given = {"missing": missing + n - n_timed, "empty": untimed}
    spent = bootstrap_sums(rows, lambda s: s[:, 2] / s[:, 3], missing=int((there_P & ~timed_P).sum()), empty=untimed)
    per = bootstrap_sums(rows, lambda s: s[:, 0] / s[:, 1] / (s[:, 2] / s[:, 3]), n=n_timed, **given)  # type: ignore[arg-type]
    return Ranks(_by_prompts(tau, there_P), _by_prompts(spent, timed_P), _by_prompts(per, timed_P))


def _by_prompts(found: Estimate, there_P: Any) -> Estimate:
    """A single prompt is one group, not one case."""
    alone = found.value is not None and int(there_P.sum()) == 1
    return Estimate(found.value, found.n, missing=found.missing, interval=SINGLE_GROUP) if alone else found


def _gains(data: _Data, agrees_C3: Floats, time_P2: Floats) -> tuple[Estimate, Estimate, Estimate]:
    """The gains, on the comparisons that all three scores have."""
    used_C = ~np.isnan(agrees_C3).any(1)
    sums = [_by_prompt(data, values, used_C) for values in (*agrees_C3.T, np.ones(len(agrees_C3)))]
    rows_P = np.column_stack([*sums, time_P2, np.ones(len(data.prompts))])
    there_P = (rows_P[:, 3] > 0) & (time_P2 > 0).all(1)
    rows_P, n = rows_P[there_P], int(rows_P[there_P, 3].sum())

    def gain(base: int, cost: int) -> Any:
        return lambda s: (s[:, 2] - s[:, base]) / s[:, 3] / (s[:, cost] / s[:, 6])

    grades, comparisons = gain(1, 4), gain(0, 5)
    empty = "no comparison has all three scores and its people's time"
    given: dict[str, Any] = {"n": n, "missing": len(agrees_C3) - n, "empty": empty}
    found = [
        bootstrap_sums(rows_P, statistic, **given)
        for statistic in (grades, comparisons, lambda s: grades(s) - comparisons(s))
    ]
    one, two, three = (_by_prompts(each, there_P) for each in found)
    return one, two, three


def _weights(data: _Data, points: Points, ridge: float) -> tuple[tuple[Weight, ...], int]:
    """The weights of the criteria that several prompts share, with intervals of fits to resampled prompts."""
    known_C = data.known_C
    if not known_C.any() or not data.criteria:
        return (), data.left_out
    without = [
        0,
        *range(2, 2 + len(data.criteria)),
    ]  # strengths say the same as the outcomes that weights shall explain
    penalty_F = data.penalty(ridge)[without]
    x_CF, y_C, prompt_C = data.x_CF[known_C][:, without], data.y_C[known_C], data.prompt_C[known_C]
    prompts, prompt_C = np.unique(prompt_C, return_inverse=True)
    worth = [[points[data.prompts[p]].get(text) for p in prompts] for text in data.criteria]
    whole_P = [sum(v for v in points[data.prompts[p]].values() if v > 0) for p in prompts]
    part_F = np.array(
        [np.mean([v / whole for v, whole in zip(row, whole_P, strict=True) if v is not None]) for row in worth]
    )

    def fit(weight_C: Floats | None = None) -> Floats:
        w_F = _fit(x_CF, y_C, penalty_F, weight_C)
        return np.asarray(w_F[0] * part_F + w_F[1:])

    value_F = fit()
    draws_DF = np.array([fit(w[prompt_C]) for rows in resamples(len(prompts), WEIGHT_DRAWS) for w in rows])
    found = []
    for at, text in enumerate(data.criteria):
        n = int((np.abs(data.met_CF[known_C, at]) > EQUAL).sum())
        mean_points = float(np.mean([value for value in worth[at] if value is not None]))
        nothing = undefined_estimate("no two compared responses differ in it")
        weight = bootstrap_estimate(float(value_F[at]), n, draws_DF[:, at]) if n else nothing
        found.append(Weight(text, mean_points, weight))
    return tuple(sorted(found, key=lambda each: (-(each.weight.value or 0.0), each.criterion))), data.left_out
