"""Rationale consistency of judged samples: is a judge right for the right reasons? (MetaJudge, 2025)

The matching of one sample and its numbers are in `trainer.rewards.rationale`, because training uses them; here are the
means that people compare. Sides: below 0 A, 0 tie, above 0 B, of any strength; None if missing.

Axes: H human reasons, M model reasons, S samples.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from trainer.rewards.rationale import HIT_THRESHOLD, average_precision, outcome, rationale_consistency

from .estimate import Estimate, Floats, bootstrap_mean, bootstrap_sums, numbers, proportion

NO_REASONS = "no sample has human reasons"


@dataclass(frozen=True)
class RationaleSample:
    """`scores_HM`: human x model matching scores in [0, 1], one row per human reason, M = 0 without model reasons."""

    id: str
    scores_HM: NDArray[np.float64]
    human_reasons: int
    label: int | None
    verdict: int | None


@dataclass(frozen=True)
class Consistency:
    """`rc`, `ap` are over the samples with human reasons, `hybrid` over those that also have a label.

    `accuracy` is over all labelled samples; a missing verdict is wrong there, and counted.
    """

    n: int
    excluded_no_human_reasons: int
    no_model_reasons: int
    missing_labels: int
    missing_verdicts: int
    rc: Estimate
    ap: Estimate
    hybrid: Estimate
    accuracy: Estimate

    def json(self) -> dict[str, Any]:
        names = {"rc": "RC", "ap": "AP"}
        return {
            names.get(name, name): found.json() if isinstance(found, Estimate) else found
            for name, found in vars(self).items()
        }


def consistency(samples: Iterable[RationaleSample], threshold: float = HIT_THRESHOLD) -> Consistency:
    """RC = mean of S_total / |R_h| over each model's first five reasons; AP, hybrid = AP x outcome; accuracy."""
    listed = list(samples)
    reasoned = [sample for sample in listed if sample.human_reasons]
    labelled = [sample for sample in listed if sample.label is not None]
    excluded = len(listed) - len(reasoned)
    ap_S = [average_precision(s.scores_HM, s.human_reasons, threshold) or 0.0 for s in reasoned]
    hybrid = [ap * right for s, ap in zip(reasoned, ap_S, strict=True) if (right := _right(s)) is not None]
    unjudged = sum(sample.verdict is None for sample in labelled)
    return Consistency(
        n=len(listed),
        excluded_no_human_reasons=excluded,
        no_model_reasons=sum(sample.scores_HM.shape[1] == 0 for sample in reasoned),
        missing_labels=len(listed) - len(labelled),
        missing_verdicts=unjudged,
        rc=bootstrap_mean(
            [rationale_consistency(s.scores_HM, s.human_reasons) or 0.0 for s in reasoned],
            excluded,
            NO_REASONS,
            share=True,
        ),
        ap=bootstrap_mean(ap_S, excluded, NO_REASONS, share=True),
        hybrid=bootstrap_mean(hybrid, len(listed) - len(hybrid), "no sample has human reasons and a label", share=True),
        accuracy=proportion(
            round(sum(_right(sample) or 0.0 for sample in labelled)), len(labelled), unjudged, "no sample has a label"
        ),
    )


def _right(sample: RationaleSample) -> float | None:
    return None if sample.label is None else outcome(sample.label, sample.verdict)


def shares(tags: Iterable[Sequence[str] | str | None], names: Sequence[str]) -> dict[str, Estimate]:
    """Share of reasons (or samples) that carry each tag: reason classes, flaws F1-F7. None: not tagged, counted.

    Raises ValueError for a tag that is not in `names`, which would otherwise vanish from the table.
    """
    listed = [None if tag is None else {tag} if isinstance(tag, str) else set(tag) for tag in tags]
    tagged = [each for each in listed if each is not None]
    found = Counter(name for each in tagged for name in each)
    if strangers := sorted(found.keys() - set(names)):
        raise ValueError(f"tags {strangers} are not among {list(names)}")
    missing = len(listed) - len(tagged)
    return {name: proportion(found[name], len(tagged), missing, "nothing is tagged") for name in names}


@dataclass(frozen=True)
class Reliability:
    """The agreement of two matchers: `r_squared` = 1 - SS_res / SS_tot of the second from the first, and RMSE.

    `ranking`: Spearman's correlation of the judges' order by RC.
    """

    r_squared: Estimate
    rmse: Estimate
    ranking: Estimate


def reliability(first: Mapping[str, float | None], second: Mapping[str, float | None]) -> Reliability:
    """RC of each judge (or sample) by two matchers, compared on those that both have; the others are counted."""
    keys = sorted(first.keys() | second.keys())
    a_S, b_S = numbers(first.get(key) for key in keys), numbers(second.get(key) for key in keys)
    both_S = ~np.isnan(a_S) & ~np.isnan(b_S)
    a_S, b_S = a_S[both_S], b_S[both_S]
    absent = int((~both_S).sum())
    columns_SF = np.column_stack([np.ones(len(a_S)), b_S, b_S**2, (a_S - b_S) ** 2])
    return Reliability(
        r_squared=bootstrap_sums(columns_SF, _r_squared, missing=absent, empty="all values of the second are equal"),
        rmse=bootstrap_sums(columns_SF, lambda s: np.sqrt(s[:, 3] / s[:, 0]), missing=absent),
        ranking=correlation(scipy.stats.rankdata(a_S), scipy.stats.rankdata(b_S), absent),
    )


def _r_squared(sums_DF: Floats) -> Floats:
    total_D = sums_DF[:, 2] - sums_DF[:, 1] ** 2 / sums_DF[:, 0]
    return np.where(total_D > 1e-12, 1 - sums_DF[:, 3] / total_D, np.nan)


def correlation(x_C: Floats, y_C: Floats, missing: int = 0, clusters_C: Sequence[object] | None = None) -> Estimate:
    """Pearson's correlation (of ranks: Spearman's), resampled by case, or by cluster if `clusters_C` says to which one each case belongs. It is
    undefined if one side does not vary.
    """
    if len(x_C):
        x_C, y_C = x_C - x_C.mean(), y_C - y_C.mean()  # before sums of squares, which would otherwise lose digits
    columns_CF = np.column_stack([np.ones(len(x_C)), x_C, y_C, x_C * x_C, y_C * y_C, x_C * y_C])
    empty = "one side has the same value throughout"
    return bootstrap_sums(columns_CF, _pearson, clusters=clusters_C, missing=missing, empty=empty)


def _pearson(sums_DF: Floats) -> Floats:
    n_D, x_D, y_D, xx_D, yy_D, xy_D = sums_DF.T
    above_D = n_D * xy_D - x_D * y_D
    below_D = (n_D * xx_D - x_D**2) * (n_D * yy_D - y_D**2)
    varies_D = (n_D * xx_D - x_D**2 > 1e-12 * n_D**2) & (n_D * yy_D - y_D**2 > 1e-12 * n_D**2)
    return np.where(varies_D, np.clip(above_D / np.sqrt(np.where(varies_D, below_D, 1.0)), -1, 1), np.nan)
