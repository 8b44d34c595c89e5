"""Helpers for the metrics of every task: missing values are left out, never zero. Torch-free."""

import statistics
from collections.abc import Iterable

from trainer.metrics.estimate import Estimate


def estimate_metrics(key: str, count: str, found: Estimate) -> dict[str, float]:
    """The estimate as held-out metrics: `eval/KEY` and both ends of its interval if it has one, `eval/COUNT` with its n.
    Without `count` the n is left out.
    """
    metrics: dict[str, float] = {f"eval/{count}": float(found.n)} if count else {}
    if found.value is not None:
        metrics[f"eval/{key}"] = found.value
    if found.low is not None and found.high is not None:
        metrics |= {f"eval/{key}_low": found.low, f"eval/{key}_high": found.high}
    return metrics


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are there; None without any."""
    known = [float(value) for value in values if value is not None]
    return statistics.fmean(known) if known else None
