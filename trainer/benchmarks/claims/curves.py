"""Measures of a run that are read off its curves, so that every run of an arm can be measured, whoever launched it.

A measure is named `metric:reading`. Readings of a curve: `first` and `last` are its first and last values; `change` is the last
less the first; `early` and `late` are the means of the first and the last fifth of its points (of one at least); `rise` is the
late mean less the early one.
"""

import statistics
from collections.abc import Iterable, Mapping

READINGS = ("first", "last", "change", "early", "late", "rise")
_SHARE = 5


def metric_of(measure: str) -> str:
    """The key of the metric that a measure reads. Raises ValueError for a measure that names no reading."""
    metric, _, reading = measure.rpartition(":")
    if not metric or reading not in READINGS:
        raise ValueError(f"{measure!r} is no measure; expected a metric, a colon and one of {', '.join(READINGS)}")
    return metric


def read(curve: Mapping[int, float], reading: str) -> float | None:
    """Of values by step. A curve without points has no measure, and one of a single point no `change` and no `rise`."""
    values = [curve[step] for step in sorted(curve)]
    if not values or (len(values) == 1 and reading in ("change", "rise")):
        return None
    part = max(1, len(values) // _SHARE)
    early, late = statistics.fmean(values[:part]), statistics.fmean(values[-part:])
    found = {
        "first": values[0],
        "last": values[-1],
        "change": values[-1] - values[0],
        "early": early,
        "late": late,
        "rise": late - early,
    }
    return found[reading]


def measured(curves: Mapping[str, Mapping[int, float]], measures: Iterable[str]) -> dict[str, float | None]:
    """Each measure of one run; None where the run has no such curve. Raises ValueError for what is no measure."""
    return {each: read(curves.get(metric_of(each), {}), each.rpartition(":")[2]) for each in measures}
