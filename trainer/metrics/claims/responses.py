"""Measures of a run whose policy answered the held-out prompts again after its last step (`evaluation.closing`). Torch-free.

The run reports them as metrics of its last step. The key of a metric has no sign that has a meaning in a query of runs, so
`closing/pass_at_4` is the measure `pass@4`, `closing/best_of_4` is `best@4`, `closing/novel_above_10` is `novel>10`.
"""

import statistics
from collections.abc import Mapping, Sequence

PREFIX = "closing/"
SCORE, ENTROPY = "eval/rubric_score", "policy/entropy"
"""The curves whose shape is measured too."""
_SPELLED = (("pass@", "pass_at_"), ("best@", "best_of_"), ("novel>", "novel_above_"))
_SMOOTH = 5
Curve = Mapping[int, float]


def key_of(measure: str) -> str:
    """The metric that holds a measure of the responses."""
    for sign, word in _SPELLED:
        measure = measure.replace(sign, word)
    return f"{PREFIX}{measure}"


def measure_of(key: str) -> str:
    measure = key.removeprefix(PREFIX)
    for sign, word in _SPELLED:
        measure = measure.replace(word, sign)
    return measure


def reads(key: str) -> bool:
    """Whether a measure reads the metric."""
    return key.startswith(PREFIX) or key in (SCORE, ENTROPY)


def measured_responses(curves: Mapping[str, Curve]) -> dict[str, float | None]:
    """The measures of the responses, if the run has any, and the shape of its curves.

    `drawdown` is the most that the held-out score lay below its best so far. `entropy_rise` and `entropy_fall` say how far the
    highest mean of five steps lies above the first such mean and above the last one. Each is None if there is no such curve.
    """
    told = {measure_of(key): curve[max(curve)] for key, curve in curves.items() if key.startswith(PREFIX) and curve}
    smooth = [statistics.fmean(part) for part in _windows(_values(curves.get(ENTROPY, {})))]
    return {
        **told,
        "drawdown": _drawdown(_values(curves.get(SCORE, {}))),
        "entropy_rise": max(smooth) - smooth[0] if smooth else None,
        "entropy_fall": max(smooth) - smooth[-1] if smooth else None,
    }


def _values(curve: Curve) -> list[float]:
    return [curve[step] for step in sorted(curve)]


def _windows(values: Sequence[float]) -> list[Sequence[float]]:
    return [values[i : i + _SMOOTH] for i in range(len(values) - _SMOOTH + 1)]


def _drawdown(values: Sequence[float]) -> float | None:
    best, worst = float("-inf"), 0.0
    for value in values:
        best = max(best, value)
        worst = max(worst, best - value)
    return worst if values else None
