"""What the metrics of every task do with numbers: missing ones are left out, never zero. Torch-free."""

import statistics
from collections.abc import Iterable

from trainer.metrics.estimate import Estimate


def told(key: str, count: str, found: Estimate) -> dict[str, float]:
    """The estimate as held-out metrics: `eval/KEY` and the ends of its interval where there are any, `eval/COUNT` with its n.
    Without `count` the n is not told."""
    metrics: dict[str, float] = {f"eval/{count}": float(found.n)} if count else {}
    if found.value is not None:
        metrics[f"eval/{key}"] = found.value
    if found.low is not None and found.high is not None:
        metrics |= {f"eval/{key}_low": found.low, f"eval/{key}_high": found.high}
    return metrics


def mean(values: Iterable[float | None]) -> float | None:
    """Of the values that are there; None without any."""
    known = [float(value) for value in values if value is not None]
    return statistics.fmean(known) if known else None
