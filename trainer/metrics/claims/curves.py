"""Measures of a run that are read off its curves, so that any run of an arm can be measured.

A measure is named `metric:reading`. Readings of a curve: `first` and `last` are its first and last values; `change` is the last minus
the first; `mean` is that of all its points; `early` and `late` are the means of the first and the last fifth of its points (at least
one point); `rise` is the late mean minus the early one. `by_N` is its last value while at most N responses had been sampled, so that
runs can be compared at equal rollouts, however many each step samples. `at_N` is its last value up to step N. `since_N` is the last
of all values minus `at_N`. `from_N_to_M` is `at_M` minus `at_N`.
"""

import re
import statistics
from collections.abc import Iterable, Mapping

READINGS = ("first", "last", "change", "mean", "early", "late", "rise")
SAMPLED = "rollout/responses"
"""The curve of the number of responses that each step sampled."""
_SHARE, _AT = 5, re.compile(r"by_([1-9][0-9]*)")
_STEPS = re.compile(r"at_(\d+)|since_(\d+)|from_(\d+)_to_(\d+)")


def metric_of(measure: str) -> str:
    """The key of the metric that a measure reads. Raises ValueError if the measure names no reading."""
    metric, _, reading = measure.rpartition(":")
    if not metric or not (reading in READINGS or _AT.fullmatch(reading) or _STEPS.fullmatch(reading)):
        raise ValueError(
            f"{measure!r} is not a measure; expected a metric, a colon and one of {', '.join(READINGS)}, at_N, since_N or from_N_to_M, "
            "N and M being steps, or by_N, N responses"
        )
    return metric


def curves_of(measures: Iterable[str]) -> list[str]:
    """The keys of all metrics that the measures are read off. Raises ValueError as `metric_of` does."""
    found = []
    for measure in measures:
        found.append(metric_of(measure))
        if _AT.fullmatch(measure.rpartition(":")[2]):
            found.append(SAMPLED)
    return list(dict.fromkeys(found))


def read_by(curve: Mapping[int, float], sampled: Mapping[int, float], most: int) -> float | None:
    """The last value while at most `most` responses had been sampled; None if their number is not known."""
    steps = [step for step in sorted(curve) if sum(count for at, count in sampled.items() if at <= step) <= most]
    return curve[steps[-1]] if steps and sampled else None


def read(curve: Mapping[int, float], reading: str) -> float | None:
    """A reading of values by step; None for a curve without points, and for `change` and `rise` of a curve with a single point."""
    values = [curve[step] for step in sorted(curve)]
    if not values or (len(values) == 1 and reading in ("change", "rise")):
        return None
    part = max(1, len(values) // _SHARE)
    early, late = statistics.fmean(values[:part]), statistics.fmean(values[-part:])
    found = {
        "first": values[0],
        "last": values[-1],
        "change": values[-1] - values[0],
        "mean": statistics.fmean(values),
        "early": early,
        "late": late,
        "rise": late - early,
    }
    return found[reading]


def read_steps(curve: Mapping[int, float], reading: str) -> float | None:
    """A reading at steps of values by step; None if the curve has no value by then."""
    asked = _STEPS.fullmatch(reading)
    if not asked or not curve:
        return None
    at, since, begin, end = (None if group is None else int(group) for group in asked.groups())
    if at is not None:
        return _by_step(curve, at)
    first, second = (since, max(curve)) if since is not None else (begin, end)
    before, after = (_by_step(curve, step or 0) for step in (first, second))
    return None if before is None or after is None else after - before


def _by_step(curve: Mapping[int, float], step: int) -> float | None:
    steps = [each for each in curve if each <= step]
    return curve[max(steps)] if steps else None


def measure_curves(curves: Mapping[str, Mapping[int, float]], measures: Iterable[str]) -> dict[str, float | None]:
    """Each measure of one run; None if the run has no such curve. Raises ValueError for a text that is not a measure."""
    return {each: _measured(curves, metric_of(each), each.rpartition(":")[2]) for each in measures}


def _measured(curves: Mapping[str, Mapping[int, float]], metric: str, reading: str) -> float | None:
    curve, at = curves.get(metric, {}), _AT.fullmatch(reading)
    if at:
        return read_by(curve, curves.get(SAMPLED, {}), int(at[1]))
    return read_steps(curve, reading) if _STEPS.fullmatch(reading) else read(curve, reading)
