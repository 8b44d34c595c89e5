"""The decision rule. Torch-free.

For each part of a claim there is one number per seed (a difference of two arms is paired by seed) and the 95% t-interval of
its mean over seeds. The part *holds* when the whole interval is above 0; it *does not hold here* when the whole interval is
below the smallest amount that would matter; otherwise it is *not decided*. A claim holds when all its parts do, and does not
hold here when one of them does not. No part is corrected for there being several: a claim that needs all of them to hold
does not become likelier by their number.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.stats import t as student

from trainer.benchmarks.estimate import Estimate, undefined

from .recipes import Claim, Part

Verdict = Literal["holds", "does not hold here", "not decided"]
Measures = Mapping[str, Mapping[int, Mapping[str, float | None]]]
"""arm -> seed -> measure -> value; None where a measure is undefined."""


@dataclass(frozen=True)
class PartResult:
    part: Part
    difference: Estimate
    verdict: Verdict


@dataclass(frozen=True)
class ClaimResult:
    claim: Claim
    parts: tuple[PartResult, ...]
    verdict: Verdict


def judge(claim: Claim, measures: Measures) -> ClaimResult:
    parts = tuple(_part(part, measures) for part in claim.parts)
    found = {result.verdict for result in parts}
    verdict: Verdict = "holds" if found == {"holds"} else "not decided"
    if "does not hold here" in found:
        verdict = "does not hold here"
    return ClaimResult(claim, parts, verdict)


def decide(difference: Estimate, margin: float) -> Verdict:
    """From the interval of a part; without one nothing is decided."""
    if difference.low is None or difference.high is None:
        return "not decided"
    if difference.low > 0:
        return "holds"
    return "does not hold here" if difference.high < margin else "not decided"


def mean_over_seeds(values: Sequence[float | None]) -> Estimate:
    """Mean with its t-interval (Student, 1908): seeds are few, and a bootstrap of three has too narrow an interval."""
    known = [value for value in values if value is not None]
    missing, n = len(values) - len(known), len(known)
    if not n:
        return undefined("no seed has a value", missing=missing)
    mean = sum(known) / n
    if n == 1:
        return Estimate(mean, 1, missing=missing, interval="one seed has no spread")
    spread = math.sqrt(sum((value - mean) ** 2 for value in known) / (n - 1) / n)
    half = float(student.ppf(0.975, n - 1)) * spread
    return Estimate(mean, n, mean - half, mean + half, missing)


def _part(part: Part, measures: Measures) -> PartResult:
    better = measures.get(part.better, {})
    worse = measures.get(part.worse, {}) if part.worse else {}
    seeds = sorted(better.keys() | worse.keys())
    values = [_value(part, better.get(seed, {}), worse.get(seed, {})) for seed in seeds]
    difference = mean_over_seeds(values)
    return PartResult(part, difference, decide(difference, part.margin))


def _value(part: Part, better: Mapping[str, float | None], worse: Mapping[str, float | None]) -> float | None:
    first, second = better.get(part.measure), worse.get(part.measure) if part.worse else 0.0
    return None if first is None or second is None else part.sign * (first - second)
