"""The threshold from which an answer counts as yes: chosen on half of the known verdicts and tried on the other half.

A model leans to yes or to no for every question, so a margin of 0 is not the right border. Each item (a prompt with its responses) falls
into one half as a whole, because verdicts on one response are not independent evidence.

Two rules choose the border. `accuracy` takes the best balanced accuracy. If a model's margins say nothing, that border is chance and
may lie at an end, so that nearly all criteria are met or none is. `rate` makes the share of margins above the border equal to the
share of verdicts that are met, which at least removes the lean.

Axes: N verdicts, M verdicts of one half.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trainer.metrics.estimate import wilson

Floats = NDArray[np.float64]
Rule = Literal["accuracy", "rate"]
_DRAWS = 1000


@dataclass(frozen=True)
class MeasuredShare:
    """A share with its 95% interval; `n` verdicts on `items` independent items."""

    value: float
    low: float
    high: float
    n: int
    items: int

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}] n={self.n}"


@dataclass(frozen=True)
class ThresholdCalibration:
    """A threshold on the margin (met if above), and its results on verdicts that did not choose it."""

    model: str
    digest: str
    wording: str
    threshold: float
    calibrated_on: int
    accuracy: MeasuredShare
    balanced_accuracy: MeasuredShare
    majority: float
    """Share of the commoner verdict in the tried half: the accuracy of a judge that always answers the same. Its balanced accuracy is 0.5.
    """
    verdicts: str
    """The origin of the known verdicts."""
    rule: Rule = "accuracy"
    said: MeasuredShare | None = None
    """The share of the tried half that the judge calls met; `met` is the share that is met. None in older files."""
    met: MeasuredShare | None = None

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> "ThresholdCalibration":
        """Raises ValueError for a file that holds no calibration."""
        try:
            raw: dict[str, Any] = json.loads(path.read_text())
            named = ("accuracy", "balanced_accuracy", "said", "met")
            parts = {
                name: MeasuredShare(**raw[name]) for name in named if raw.get(name) is not None or name in named[:2]
            }
            return cls(**{**raw, **parts})
        except (TypeError, KeyError, json.JSONDecodeError) as error:
            raise ValueError(f"{path}: not a calibration ({error})") from error


def calibrate(
    margins_N: ArrayLike,
    met_N: Sequence[bool],
    items_N: Sequence[str],
    *,
    seed: int = 0,
    rule: Rule = "accuracy",
    **named: str,
) -> ThresholdCalibration:
    """Choose a threshold and measure it. `named` has model, digest, wording and verdicts. Raises ValueError if a half has only one of
    the two verdicts.
    """
    margins, met, items = np.asarray(margins_N, dtype=np.float64), np.asarray(met_N, dtype=bool), np.asarray(items_N)
    first = halves(items_N, seed)
    for half, name in ((first, "calibration"), (~first, "other")):
        if len(set(met[half].tolist())) < 2:
            raise ValueError(f"the {name} half of the verdicts has not both met and not met; bring more verdicts")
    threshold = (best_threshold if rule == "accuracy" else rate_threshold)(margins[first], met[first])
    said, truth, of = margins[~first] > threshold, met[~first], items[~first]
    every = np.ones(len(truth))
    return ThresholdCalibration(
        rule=rule,
        said=resampled(said, every, of, seed),
        met=resampled(truth, every, of, seed),
        threshold=threshold,
        calibrated_on=int(first.sum()),
        accuracy=resampled(said == truth, every, of, seed),
        balanced_accuracy=_balanced(said, truth, of, seed),
        majority=float(max(truth.mean(), 1 - truth.mean())),
        **named,
    )


def halves(items_N: Sequence[str], seed: int) -> NDArray[np.bool_]:
    """True for the calibration half. The halves are as equal in items as can be; names and seed decide where an item goes."""
    names = sorted(set(items_N), key=lambda item: hashlib.sha256(f"{seed}:{item}".encode()).digest())
    first = set(names[: (len(names) + 1) // 2])
    return np.array([item in first for item in items_N], dtype=bool)


def best_threshold(margins_M: Floats, met_M: NDArray[np.bool_]) -> float:
    """The border with the highest balanced accuracy; if several are equally good, the middle of the widest gap."""
    order = np.argsort(margins_M, kind="stable")
    sorted_M, truth_M = margins_M[order], met_M[order]
    # border b lies below the b-th smallest margin: all margins from there on are called met
    positives, negatives = truth_M.sum(), (~truth_M).sum()
    found = np.concatenate([[0], np.cumsum(~truth_M)]) / negatives
    kept = 1 - np.concatenate([[0], np.cumsum(truth_M)]) / positives
    edges = np.concatenate([[sorted_M[0] - 1], sorted_M, [sorted_M[-1] + 1]])
    gaps = np.diff(edges)
    score = np.where(gaps > 0, (found + kept) / 2, -1)
    best = np.flatnonzero(score >= score.max() - 1e-12)
    place = best[np.argmax(gaps[best])]
    return float((edges[place] + edges[place + 1]) / 2)


def rate_threshold(margins_M: Floats, met_M: NDArray[np.bool_]) -> float:
    """The border at which the share of margins above it equals the share of verdicts that are met."""
    return float(np.quantile(margins_M, 1 - met_M.mean(), method="midpoint"))


def resampled(values_N: ArrayLike, weights_N: ArrayLike, items_N: ArrayLike, seed: int = 0) -> MeasuredShare:
    """The weighted mean with a bootstrap interval over items (Efron, 1979); values 0..1.

    If every verdict has the same value, the bootstrap shows no spread: the interval is then Wilson's over items.
    """
    values, weights = np.asarray(values_N, dtype=np.float64), np.asarray(weights_N, dtype=np.float64)
    _, of_N = np.unique(np.asarray(items_N), return_inverse=True)
    items = int(of_N.max()) + 1
    top = np.bincount(of_N, values * weights)
    bottom = np.bincount(of_N, weights)
    value = float(top.sum() / bottom.sum())
    if np.ptp(values) == 0:
        low, high = wilson(value, items)
    else:
        counts = np.random.default_rng(seed).multinomial(items, np.full(items, 1 / items), size=_DRAWS)
        low, high = np.quantile((counts @ top) / (counts @ bottom), [0.025, 0.975])
    return MeasuredShare(value, float(low), float(high), len(values), items)


def _balanced(said_M: NDArray[np.bool_], truth_M: NDArray[np.bool_], items_M: ArrayLike, seed: int) -> MeasuredShare:
    """The mean of the shares that are right among met and among not met, as a weighted mean in which both weigh the same."""
    weights = np.where(truth_M, 0.5 / truth_M.mean(), 0.5 / (1 - truth_M.mean()))
    return resampled(said_M == truth_M, weights, items_M, seed)
