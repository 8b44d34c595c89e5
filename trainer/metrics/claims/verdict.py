"""The decision rule. Torch-free.

For each part of a claim there is one number per seed (a difference of two arms is paired by seed) and the 95% t-interval of
its mean over seeds. The part *holds* if the whole interval is above 0; it *does not hold here* if the whole interval is
below the smallest amount that would matter; otherwise it is *not decided*. A claim holds if all its parts do, and does not
hold here if one of them does not. The number of parts needs no correction: a claim that needs all of them to hold
does not become more likely by their number. Several claims of one plan do make it more likely that one of them holds by chance:
their p-values are corrected by Holm's method (1979), and a claim that holds only without the correction is *not decided* with it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import scipy

from trainer.metrics.estimate import Estimate, undefined_estimate

from .plan import Claim, ClaimPart

RULE = (
    "The decision rule, which was set before the runs: each seed gives one number (two arms are compared seed by seed), and the mean over "
    "the seeds has a 95% t-interval. Holds: the interval is above 0. Does not hold here: the interval is below the smallest amount that "
    "would matter. Not decided: everything else. A claim holds if all its parts hold, and does not hold here if one part does not. The "
    "p-value of a claim is the largest two-sided p-value of its parts, corrected for the number of claims by Holm's method. If the "
    "corrected p-value is above 0.05, a claim that would hold is not decided."
)
_LEVEL = 0.05
Verdict = Literal["holds", "does not hold here", "not decided"]
Measures = Mapping[str, Mapping[int, Mapping[str, float | None]]]
"""arm -> seed -> measure -> value; None if a measure is undefined."""


@dataclass(frozen=True)
class ClaimPartResult:
    part: ClaimPart
    difference: Estimate
    verdict: Verdict
    p: float = 1.0
    """See `p_value`."""


@dataclass(frozen=True)
class ClaimResult:
    claim: Claim
    parts: tuple[ClaimPartResult, ...]
    verdict: Verdict
    adjusted: float = 1.0
    """The largest p-value of the claim's parts, adjusted for the number of claims (Holm, 1979)."""

    @property
    def p(self) -> float:
        return max((result.p for result in self.parts), default=1.0)

    @property
    def corrected(self) -> Verdict:
        """The verdict corrected for the number of claims."""
        return "not decided" if self.verdict == "holds" and self.adjusted > _LEVEL else self.verdict


def judge_all(claims: Sequence[Claim], measures: Measures) -> list[ClaimResult]:
    """The results for the claims of one plan, corrected for their number."""
    found = [judge(claim, measures) for claim in claims]
    adjusted = holm([each.p for each in found])
    return [replace(each, adjusted=value) for each, value in zip(found, adjusted, strict=True)]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in the order of `p_values`: the k-th smallest of n times n - k + 1, at least as large as those before it."""
    found, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        highest = max(highest, min(1.0, p_values[place] * (len(p_values) - rank)))
        found[place] = highest
    return found


def judge(claim: Claim, measures: Measures) -> ClaimResult:
    parts = tuple(_part(part, measures) for part in claim.parts)
    found = {result.verdict for result in parts}
    verdict: Verdict = "holds" if found == {"holds"} else "not decided"
    if "does not hold here" in found:
        verdict = "does not hold here"
    return ClaimResult(claim, parts, verdict)


def decide(difference: Estimate, margin: float) -> Verdict:
    """The verdict from the interval of a part; not decided if there is no interval."""
    if difference.low is None or difference.high is None:
        return "not decided"
    if difference.low > 0:
        return "holds"
    return "does not hold here" if difference.high < margin else "not decided"


def mean_over_seeds(values: Sequence[float | None]) -> Estimate:
    """The mean with its t-interval (Student, 1908): seeds are few, and a bootstrap of three has too narrow an interval."""
    known = [value for value in values if value is not None]
    missing, n = len(values) - len(known), len(known)
    if not n:
        return undefined_estimate("no seed has a value", missing=missing)
    mean = sum(known) / n
    if n == 1:
        return Estimate(mean, 1, missing=missing, interval="one seed has no spread")
    if not math.isfinite(mean):  # the sum was too large for a float
        mean = sum(value / n for value in known)
    spread = math.sqrt(sum((value - mean) * (value - mean) for value in known) / (n - 1) / n)
    half = _quantile(n - 1) * spread
    if not math.isfinite(half):
        return Estimate(mean, n, missing=missing, interval="the values are too far apart")
    return Estimate(mean, n, mean - half, mean + half, missing)


@cache
def _quantile(freedom: int) -> float:
    """The 97.5% quantile of Student's t. A report asks for it at each point of its curves."""
    return float(scipy.stats.t.ppf(0.975, freedom))


def p_value(values: Sequence[float | None]) -> float:
    """The two-sided p-value of Student's t-test that the mean is 0; 1 if the mean is not above 0 or there are fewer than two values.

    If the mean is above 0 and the values have no spread, the p-value is 0.
    """
    known = [value for value in values if value is not None]
    n = len(known)
    mean = sum(known) / n if n else 0.0
    if n < 2 or mean <= 0:
        return 1.0
    error = math.sqrt(sum((value - mean) ** 2 for value in known) / (n - 1) / n)
    return 2 * float(scipy.stats.t.sf(mean / error, n - 1)) if error else 0.0


def _part(part: ClaimPart, measures: Measures) -> ClaimPartResult:
    better = measures.get(part.better, {})
    worse = measures.get(part.worse, {}) if part.worse else {}
    seeds = sorted(better.keys() | worse.keys())
    values = [_value(part, better.get(seed, {}), worse.get(seed, {})) for seed in seeds]
    difference = mean_over_seeds(values)
    return ClaimPartResult(part, difference, decide(difference, part.margin), p_value(values))


def _value(part: ClaimPart, better: Mapping[str, float | None], worse: Mapping[str, float | None]) -> float | None:
    first, second = better.get(part.measure), worse.get(part.measure) if part.worse else 0.0
    return None if first is None or second is None else part.sign * (first - second)
