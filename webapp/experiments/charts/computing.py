"""Curves of expressions: computed from every stored point and thinned afterwards, so that each value belongs to its step."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from webapp.core.problems import Invalid

from ..metrics import levels, points
from ..models import Run
from .formulas import ChartFormula, computed

MOST = 500_000
"""Points of one metric that are read for an expression."""


def curves(run: Run, formulas: Sequence[ChartFormula], max_points: int) -> dict[str, Any]:
    """`{"lines": [{"expression", "keys", "program", "totals", "last_step", "missing", "steps", "values", "times"}], "last_seq"}`; a value of None is a gap.

    `missing` are keys without a value in the run. Raises Invalid at `expression` if a metric has more than `MOST` points.
    """
    last_seq = Run.objects.values_list("last_seq", flat=True).get(pk=run.pk)
    keys = list(dict.fromkeys(key for formula in formulas for key in formula.keys))
    found = _read(run.pk, keys)
    return {"lines": [_line(formula, found, max_points) for formula in formulas], "last_seq": last_seq}


def _read(run_id: int, keys: Sequence[str]) -> dict[str, levels.Points]:
    pieces: dict[str, list[levels.Points]] = {key: [] for key in keys}
    for place, piece in points.read_points(run_id, keys, [-1] * len(keys), MOST + 1):
        pieces[keys[place]].append(piece)
    found = {key: np.concatenate(each) if each else np.empty(0, levels.POINT) for key, each in pieces.items()}
    for key, each in found.items():
        if len(each) > MOST:
            told = f"{key} has more than {MOST:,} points, and an expression reads every point"
            raise Invalid("This expression cannot be computed.", {"expression": told})
    return found


def _line(formula: ChartFormula, found: dict[str, levels.Points], max_points: int) -> dict[str, Any]:
    keys = formula.keys
    totals: dict[int, float] = {}
    made = _together(formula, [found[key] for key in keys], totals)
    shown, gaps = _thinned(made, max_points)
    times = np.round(shown["at"] / 1e6 + levels.EPOCH_S, 3)
    return {
        "expression": formula.text,
        "keys": keys,
        "program": [list(step) for step in formula.steps],
        "totals": {str(place): total for place, total in totals.items()},
        "last_step": int(made["step"][-1]) if len(made) else None,
        "missing": [key for key in keys if not len(found[key])],
        "steps": shown["step"].tolist(),
        "values": [None if gap else value for value, gap in zip(shown["value"].tolist(), gaps, strict=True)],
        "times": times.tolist(),
    }


def _together(formula: ChartFormula, held: Sequence[levels.Points], totals: dict[int, float]) -> levels.Points:
    """A point for each step at which all metrics have a value; its value may not be finite."""
    steps = reduce(np.intersect1d, [each["step"] for each in held])
    at = [each[np.searchsorted(each["step"], steps)] for each in held]
    made = np.empty(len(steps), levels.POINT)
    made["step"] = steps
    made["value"] = computed(formula, {key: each["value"] for key, each in zip(formula.keys, at, strict=True)}, totals)
    made["at"] = reduce(np.maximum, [each["at"] for each in at])
    return made


def _thinned(made: levels.Points, max_points: int) -> tuple[levels.Points, list[bool]]:
    """About `max_points` points at most, with the first point of every gap; and whether each of them is a gap."""
    finite = np.isfinite(made["value"])
    kept = made[finite]
    if len(kept) > max_points:
        kept = levels.thinned(kept, max(max_points // 2, 1))
    begins = ~finite & np.concatenate([[True], finite[:-1]])
    whole = np.concatenate([kept, made[begins][:max_points]])
    order = np.argsort(whole["step"], kind="stable")
    return whole[order], (~np.isfinite(whole["value"]))[order].tolist()
