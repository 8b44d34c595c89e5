"""The RubricBench protocol (RubricBench, 2025): does a rubric help a judge, and is it the right rubric?

Sides: -1 A is better, 0 tie, 1 B is better; None if the verdict is missing or cannot be read.
Axes: C cases, K generated items, M reference items, D bootstrap draws.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

import numpy as np

from .compare import keyed_difference
from .estimate import (
    BOOTSTRAP_DRAWS,
    SEED,
    Estimate,
    bootstrap_estimate,
    bootstrap_mean,
    bootstrap_ratio,
    numbers,
    proportion,
    undefined_estimate,
)
from .rationale import correlation

Item = TypeVar("Item")


@dataclass(frozen=True)
class JudgedPair:
    """One pair under one condition. `label` is -1 or 1."""

    key: str
    domain: str
    label: int
    verdict: int | None

    @property
    def right(self) -> bool:
        return self.verdict == self.label


@dataclass(frozen=True)
class Accuracy:
    """Ties and invalid verdicts are wrong; `ties` and `invalid` say how many there are.

    `overall`: mean over samples, the headline. `mean_of_domains`: beside it, every domain weighing the same.
    """

    overall: Estimate
    domains: dict[str, Estimate]
    mean_of_domains: Estimate
    ties: int
    invalid: int

    def json(self) -> dict[str, Any]:
        return {
            "overall": self.overall.json(),
            "domains": {domain: found.json() for domain, found in self.domains.items()},
            "mean_of_domains": self.mean_of_domains.json(),
            "ties": self.ties,
            "invalid": self.invalid,
        }


def accuracy(cases: Iterable[JudgedPair]) -> Accuracy:
    """Accuracy of one condition, per domain and overall. Raises ValueError if a key is judged twice."""
    by_domain: dict[str, list[JudgedPair]] = defaultdict(list)
    seen: set[str] = set()
    for case in cases:
        if case.key in seen:
            raise ValueError(f"pair {case.key!r} is judged twice")
        seen.add(case.key)
        by_domain[case.domain].append(case)
    listed = [case for cases in by_domain.values() for case in cases]
    return Accuracy(
        overall=_share(listed),
        domains={domain: _share(by_domain[domain]) for domain in sorted(by_domain)},
        mean_of_domains=_mean_of_domains(list(by_domain.values())),
        ties=sum(case.verdict == 0 for case in listed),
        invalid=sum(case.verdict is None for case in listed),
    )


def _share(cases: Sequence[JudgedPair]) -> Estimate:
    return proportion(sum(case.right for case in cases), len(cases), sum(case.verdict is None for case in cases))


def _mean_of_domains(domains: Sequence[Sequence[JudgedPair]]) -> Estimate:
    """Every domain is resampled within itself, so that each resample holds them all."""
    n_D, right_D = (np.array([f(cases) for cases in domains]) for f in (len, lambda cases: sum(c.right for c in cases)))
    if not len(domains):
        return undefined_estimate("no cases")
    drawn = np.random.default_rng(SEED).binomial(n_D, right_D / n_D, size=(BOOTSTRAP_DRAWS, len(domains)))
    invalid = sum(case.verdict is None for cases in domains for case in cases)
    return bootstrap_estimate(float((right_D / n_D).mean()), int(n_D.sum()), (drawn / n_D).mean(1), invalid)


def rubric_gap(human: Iterable[JudgedPair], own: Iterable[JudgedPair]) -> Estimate:
    """accuracy(human rubrics) - accuracy(the judge's own), paired by key; pairs in one condition only are missing."""
    return keyed_difference({case.key: case.right for case in own}, {case.key: case.right for case in human})


@dataclass(frozen=True)
class Alignment:
    """One generated rubric against its reference; None if a share is undefined."""

    generated: int
    reference: int
    recall: float | None
    precision: float | None
    hallucination: float | None
    f1: float | None


def alignment(matches: Iterable[tuple[int, int]], generated: int, reference: int) -> Alignment:
    """Recall, hallucination, precision and structural F1 from a many-to-many matching of (generated k, reference j).

    recall = matched references / M; hallucination = generated items that match nothing / K; precision = 1 -
    hallucination; F1 = 2PR / (P + R), 0 when both are. K = 0: precision and hallucination are undefined, F1 is 0.
    M = 0: everything is undefined. Raises ValueError for a match of an item that is not there.
    """
    pairs = set(matches)
    if any(not (0 <= k < generated and 0 <= j < reference) for k, j in pairs):
        raise ValueError(f"a match lies outside {generated} generated and {reference} reference items")
    if not reference:
        return Alignment(generated, 0, None, None, None, None)
    recall = len({j for _, j in pairs}) / reference
    if not generated:
        return Alignment(0, reference, recall, None, None, 0.0)
    precision = len({k for k, _ in pairs}) / generated
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return Alignment(generated, reference, recall, precision, 1 - precision, f1)


def alignments(cases: Sequence[Alignment | None]) -> dict[str, Estimate]:
    """Means over rubrics. Rubrics with an undefined share, or without a matching (None), are counted in `missing`."""
    reasons = {"recall": "no rubric has reference items", "f1": "no rubric has reference items"}
    found = {}
    for name in ("recall", "precision", "hallucination", "f1"):
        values = [getattr(case, name) for case in cases if case is not None and getattr(case, name) is not None]
        reason = reasons.get(name, "no rubric has both generated and reference items")
        found[name] = bootstrap_mean(values, len(cases) - len(values), reason, share=True)
    return found


@dataclass(frozen=True)
class Diagnosis:
    """Necessity N and rigidity R of items, each rated 1..5. `burdensome`: R >= 4 and N <= 2."""

    necessity: Estimate
    rigidity: Estimate
    unnecessary: Estimate
    rigid: Estimate
    burdensome: Estimate
    correlation: Estimate

    def json(self) -> dict[str, Any]:
        return {name: found.json() for name, found in vars(self).items()}


def diagnose(
    necessity_K: Sequence[int | None], rigidity_K: Sequence[int | None], rubrics_K: Sequence[object] | None = None
) -> Diagnosis:
    """Means, share with N = 1, share with R = 5, share with R >= 4 and N <= 2, Pearson(R, N).

    Items without either rating are counted in `missing`. `rubrics_K`: the rubric of each item; items of one rubric are
    then resampled together. Raises ValueError for ratings outside 1..5 or sequences of different lengths.
    """
    if len(necessity_K) != len(rigidity_K):
        raise ValueError(f"{len(necessity_K)} ratings of necessity but {len(rigidity_K)} of rigidity")
    outside = [rating for rating in [*necessity_K, *rigidity_K] if rating is not None and not 1 <= rating <= 5]
    if outside:
        raise ValueError(f"rating {outside[0]} is not between 1 and 5")
    n_K, r_K = numbers(necessity_K), numbers(rigidity_K)
    both_K = ~np.isnan(n_K) & ~np.isnan(r_K)
    absent = int((~both_K).sum())
    n_K, r_K = n_K[both_K], r_K[both_K]
    kept = None if rubrics_K is None else [r for r, both in zip(rubrics_K, both_K, strict=True) if both]

    def mean(values_K: Any, share: bool = True) -> Estimate:
        return bootstrap_ratio(
            values_K,
            np.ones(len(values_K)),
            clusters=kept,
            missing=absent,
            empty="no item has both ratings",
            share=share,
        )

    return Diagnosis(
        necessity=mean(n_K, share=False),
        rigidity=mean(r_K, share=False),
        unnecessary=mean(n_K == 1),
        rigid=mean(r_K == 5),
        burdensome=mean((r_K >= 4) & (n_K <= 2)),
        correlation=correlation(r_K, n_K, absent, kept),
    )


def subsample(items: Sequence[Item], size: int, seed: int, key: str) -> list[Item] | None:
    """`size` items of a rubric drawn by seed and key, in their own order; None if the rubric has fewer.

    Smaller draws are contained in larger ones, so that a curve over sizes compares like with like.
    """
    if size > len(items):
        return None
    digest = hashlib.sha256(f"{seed}:{key}".encode()).digest()
    order = list(range(len(items)))
    Random(int.from_bytes(digest[:8], "big")).shuffle(order)  # noqa: S311 - a draw, not a secret
    return [items[at] for at in sorted(order[:size])]


def scaling(cases: Mapping[int, Sequence[JudgedPair]]) -> dict[int, Estimate]:
    """Accuracy at each size (items, sampled rubrics or refinement rounds), over the pairs that were judged at all sizes.

    How many others there are, judged at this size or at another, is in `missing`, besides the invalid verdicts.
    """
    anywhere = {case.key for listed in cases.values() for case in listed}
    everywhere = [{case.key for case in listed} for listed in cases.values()]
    common = set.intersection(*everywhere) if everywhere else set()
    curve = {}
    for size in sorted(cases):
        kept = [case for case in cases[size] if case.key in common]
        left_out = len(anywhere) - len(kept)
        invalid = sum(case.verdict is None for case in kept)
        curve[size] = proportion(
            sum(case.right for case in kept), len(kept), invalid + left_out, "no pair was judged at every size"
        )
    return curve
