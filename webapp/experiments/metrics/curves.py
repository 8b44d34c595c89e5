"""Curves and histograms of a run. Every response is bounded, for any length of the run."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from webapp.core.tasks import enqueue

from ..models import Run
from . import condensing, levels, stored_levels
from . import points as stored_points

MAX_CURVES = 200  # keys answered at once
MAX_POINTS_PER_PAGE = 5000
MAX_HISTOGRAMS = 60


def metric_keys(run_id: int) -> tuple[list[str], list[str]]:
    """All keys of the run, and those of them that have histograms; both sorted."""
    found = stored_points.newest([run_id])[run_id]
    return [each.key for each in found], [each.key for each in found if each.has_histogram]


def curve_keys(run_id: int) -> list[str]:
    """The keys that have values, sorted; not those that have only histograms."""
    found = stored_points.newest([run_id])[run_id]
    return [each.key for each in found if each.is_number]


def curves(run: Run, keys: list[str] | None = None, max_points: int = 600) -> str:
    """JSON: `{"curves": {key: {"steps", "values", "times"}}, "more", "keys", "histograms", "last_seq"}`.

    At most `max_points` + 2 per curve; `times` in seconds since 1970, for the time axis. `more`: keys behind the first `MAX_CURVES`.

    Without `keys`, those of all curves. `last_seq` is read first: events that arrive meanwhile come again by websocket. The result is text,
    because objects for so many numbers take ten times the memory, for each viewer at that moment.
    """
    last_seq = Run.objects.values_list("last_seq", flat=True).get(id=run.id)
    known, with_histograms = metric_keys(run.id)
    asked = known if keys is None else [key for key in keys if key in known]
    drawn = _drawn(run.id, asked[:MAX_CURVES], max_points)
    written = ", ".join(f"{json.dumps(key)}: {curve}" for key, curve in drawn)
    beside = {"more": asked[MAX_CURVES:], "keys": known, "histograms": with_histograms, "last_seq": last_seq}
    return f'{{"curves": {{{written}}}, {json.dumps(beside)[1:]}'


def _drawn(run_id: int, keys: list[str], max_points: int) -> Iterator[tuple[str, str]]:
    """(key, curve as JSON) for those of the keys that have values."""
    for key, found in thinned_curves(run_id, keys, max_points):
        times = np.round(found["at"] / 1e6 + levels.EPOCH_S, 3)
        curve = {"steps": found["step"].tolist(), "values": found["value"].tolist(), "times": times.tolist()}
        yield key, json.dumps(curve)


def thinned_curves(run_id: int, keys: Sequence[str], max_points: int) -> Iterator[tuple[str, levels.Points]]:
    """For each key with values: all points if they fit, else the lowest and the highest of every bucket of steps, so that no spike is
    smoothed away, and always the first and the last point. Two queries, a third if the run has levels."""
    buckets = max(max_points // 2, 1)
    held: dict[int, list[bytes]] = {}
    for place, _, row in stored_levels.rows(run_id, keys, _levels(stored_levels.covered(run_id, keys), buckets)):
        held.setdefault(place, []).append(row)
    parts = {place: [levels.opened(b"".join(each))] for place, each in held.items()}
    after = [int(parts[place][0]["step"][-1]) if place in parts else -1 for place in range(len(keys))]
    tails = Tails()
    for place, found in stored_points.read_points(run_id, keys, after):
        tails.add(place, found)
    if tails.are_long:
        enqueue(condensing.TASK, run_id)
    for place, key in enumerate(keys):
        if pieces := parts.get(place, []) + tails.of(place):
            whole = np.concatenate(pieces)
            yield key, whole if len(whole) <= max_points else levels.thinned(whole, buckets)


def _levels(reach: Sequence[stored_levels.Covered], buckets: int) -> Iterator[tuple[int, int, int]]:
    """(place, level, step) to read: the highest level that has a unit for each bucket, and after its end the lower levels."""
    for place, covered in enumerate(reach):
        enough = [level for level, rows in covered.rows.items() if rows * levels.UNITS >= buckets]
        for level in range(max(enough, default=-1) + 1):
            yield place, level, -1 if level == max(enough) else covered.beyond(level)


class Tails:
    """Points behind the levels. If nobody has condensed a long run yet, they are thinned as they come, so that memory stays small."""

    def __init__(self) -> None:
        self.are_long = False
        self._thinned: dict[int, list[levels.Points]] = {}
        self._whole: dict[int, list[levels.Points]] = {}

    def add(self, place: int, points: levels.Points) -> None:
        self._whole.setdefault(place, []).append(points)
        if sum(map(len, self._whole[place])) >= stored_points.BLOCK:
            self.are_long = True
            found = np.concatenate(self._whole[place])
            rest = len(found) // levels.ROW * levels.ROW
            self._thinned.setdefault(place, []).append(levels.opened(b"".join(levels.rows(found))))
            self._whole[place] = [found[rest:]]

    def of(self, place: int) -> list[levels.Points]:
        return self._thinned.get(place, []) + self._whole.get(place, [])


def points(run: Run, key: str, after_step: int | None = None, limit: int = MAX_POINTS_PER_PAGE) -> dict[str, Any]:
    """`{"key", "points", "next"}`: every point of one metric in order of steps; `next` is the `after_step` to continue."""
    rows = stored_points.page(run.id, key, after_step, limit + 1)
    more, rows = len(rows) > limit, rows[:limit]
    return {"key": key, "points": rows, "next": rows[-1]["step"] if more else None}


def histograms(run: Run, key: str, most: int = MAX_HISTOGRAMS) -> dict[str, Any]:
    """`{"key", "steps": [{"step", "edges", "counts"}]}`: at most `most`, evenly spread, the newest always among them."""
    rows = stored_points.histograms(run.id, key, most)
    return {"key": key, "steps": [{"step": step, **histogram} for step, histogram in rows]}
