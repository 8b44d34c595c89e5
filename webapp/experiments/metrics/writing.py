"""The one writer of points. The caller holds the lock of the run.

Finite values whose steps lie behind all that is stored of their metric are packed into stretches, or go to the end of the last one. All
others become rows: before that, a stretch that holds one of their steps becomes rows too, so that what a repeat does to a point is said
once, in the statements over rows.

Each write tells the levels, and the count of an early stop, what came again, in the same transaction.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray
from pydantic_core import to_json

from webapp.core.database import packed_arrays, prepared
from webapp.datasets.encoding import copy_format

from ..bulk import StepMetrics
from . import condensing, patience
from . import series as columns
from .points import LoggedPoint
from .series import Grid, Series

# A value and a histogram of one step may come in two events: what is new replaces, what is absent stays. Lists go in binary form (%b):
# as texts, every histogram would be searched for signs to escape.
STEPS = """
INSERT INTO experiments_metricpoint AS old (run_id, key, step, time, value, histogram)
SELECT %(run)s::bigint, key, step, time, value, histogram
FROM unnest(%(keys)b::text[], %(steps)b::int[], %(times)b::timestamptz[], %(values)b::float8[], %(histograms)b::jsonb[])
    AS new(key, step, time, value, histogram)
ON CONFLICT (run_id, key, step) DO UPDATE SET
    time = EXCLUDED.time,
    value = COALESCE(EXCLUDED.value, old.value),
    histogram = COALESCE(EXCLUDED.histogram, old.histogram)
"""
# A value that comes late, by the clock of its sender, does not replace the value that is there. The rows of one statement come in one
# order, and each place once: the newest, of equals the last.
LOGGED = """
INSERT INTO experiments_metricpoint AS old (run_id, key, step, time, value, not_finite)
SELECT %(run)s, key, step, time, CASE WHEN not_finite = '' THEN value END, not_finite
FROM unnest(%(keys)s::text[], %(steps)s::int[], %(times)s::timestamptz[], %(values)s::float8[], %(others)s::text[])
    AS new(key, step, time, value, not_finite)
ON CONFLICT (run_id, key, step) DO UPDATE SET
    time = EXCLUDED.time, value = EXCLUDED.value, not_finite = EXCLUDED.not_finite
WHERE old.time <= EXCLUDED.time
"""
# How far each key is: its last stretch, and its last row. The limit keeps Postgres from reading all of them.
ENDS = """
SELECT wanted.place - 1, stretch.id, stretch.count, stretch.last_step, row.step
FROM unnest(%(keys)s::text[]) WITH ORDINALITY AS wanted(key, place)
LEFT JOIN LATERAL (
    SELECT id, last_step, cardinality(steps) AS count FROM experiments_metricstretch
    WHERE run_id = %(run)s::bigint AND key = wanted.key ORDER BY first_step DESC LIMIT 1
) AS stretch ON true
LEFT JOIN LATERAL (
    SELECT step FROM experiments_metricpoint WHERE run_id = %(run)s::bigint AND key = wanted.key ORDER BY step DESC LIMIT 1
) AS row ON true
"""
# Keys that were measured at the same steps share these: `grids` has each once. Texts of arrays, because a list of lists has one length.
APPENDED = """
WITH grids AS MATERIALIZED (
    SELECT place - 1 AS grid, steps::int[] AS steps, times::timestamptz[] AS times
    FROM unnest(%(steps)s::text[], %(times)s::text[]) WITH ORDINALITY AS told(steps, times, place)
)
UPDATE experiments_metricstretch AS stretch SET
    last_step = grids.steps[cardinality(grids.steps)], steps = stretch.steps || grids.steps,
    numbers = stretch.numbers || told.numbers::float8[], times = stretch.times || grids.times
FROM unnest(%(ids)s::bigint[], %(grids)s::int[], %(numbers)s::text[]) AS told(id, grid, numbers) JOIN grids USING (grid)
WHERE stretch.id = told.id
"""
# Stretches that hold one of the steps become rows again, to which all that is said of repeats applies. A row that is there already can
# only be of a server of before that continued writing during an upgrade: it is newer.
UNPACKED = """
WITH gone AS (
    DELETE FROM experiments_metricstretch AS stretch
    WHERE run_id = %(run)s AND key = ANY(%(keys)s) AND EXISTS (
        SELECT FROM unnest(%(keys)s::text[], %(steps)s::int[]) AS told(key, step)
        WHERE told.key = stretch.key AND told.step BETWEEN stretch.first_step AND stretch.last_step
    )
    RETURNING key, steps, numbers, times
)
INSERT INTO experiments_metricpoint (run_id, key, step, time, value)
SELECT %(run)s, key, point.step, point.time, point.value
FROM gone CROSS JOIN LATERAL unnest(steps, numbers, times) AS point(step, value, time)
ON CONFLICT (run_id, key, step) DO NOTHING
"""
MOST = 90  # values of a stretch: its row stays below the 2 kB from which on Postgres would compress it at every write


@dataclass(frozen=True)
class Ends:
    """The end of a metric: its last stretch with the number of its values, and the step of its last row."""

    stretch: int | None
    count: int | None
    last_step: int | None
    row: int | None

    @property
    def step(self) -> int:
        return max(-1 if self.last_step is None else self.last_step, -1 if self.row is None else self.row)


def steps(run_id: int, told: Iterable[StepMetrics]) -> dict[str, Series]:
    """Stores the points of a training process, and returns its values. No two entries may have the same step: Postgres refuses to update a
    row twice in one statement."""
    told = sorted(told, key=lambda each: each.step)
    values = columns.of_steps(told)
    if not told:
        return values
    pictured: dict[str, int] = {}
    for each in told:
        for key in each.histograms:
            pictured[key] = min(each.step, pictured.get(key, each.step))
    first = pictured | {key: min(one.first_step, pictured.get(key, one.first_step)) for key, one in values.items()}
    ends = _ends(run_id, list(first))
    packed = {key for key, one in values.items() if key not in pictured and one.first_step > ends[key].step}
    _pack(run_id, {key: values[key] for key in packed}, ends)
    as_rows = first.keys() - packed
    if as_rows:
        _unpack(run_id, [(key, each.step) for each in told for key in {*each.values, *each.histograms} & as_rows], ends)
        _upsert(run_id, told, as_rows)
    _tell(run_id, _again(first, ends), len(told))
    return values


def _upsert(run_id: int, told: Iterable[StepMetrics], keys: set[str]) -> None:
    # in one order, so that no two writers ever wait for one another
    places = ((key, each.step, each) for each in told for key in {*each.values, *each.histograms} & keys)
    rows = sorted(places, key=lambda place: place[:2])
    given: dict[str, Any] = {
        "run": run_id,
        "keys": packed_arrays.texts(key for key, _, _ in rows),
        "steps": packed_arrays.integers([step for _, step, _ in rows]),
        "times": packed_arrays.times(each.time for _, _, each in rows),
        "values": packed_arrays.doubles([each.values.get(key) for key, _, each in rows]),
        "histograms": packed_arrays.documents(
            to_json(each.histograms[key]) if key in each.histograms else None for key, _, each in rows
        ),
    }
    prepared.run(STEPS, given)


def logged(run_id: int, told: Sequence[LoggedPoint]) -> None:
    """Stores the points of a program elsewhere: by its clock, the newest of each step stays."""
    newest: dict[tuple[str, int], LoggedPoint] = {}
    for point in told:
        place = (point.key, point.step)
        if place not in newest or newest[place].time <= point.time:
            newest[place] = point
    rows = [newest[place] for place in sorted(newest)]
    values = columns.of_points(rows)
    first = {key: one.first_step for key, one in values.items()}
    ends = _ends(run_id, list(values))
    packed = {key for key, one in values.items() if one.is_finite and one.first_step > ends[key].step}
    _pack(run_id, {key: values[key] for key in packed}, ends)
    left = [each for each in rows if each.key not in packed]
    if left:
        _unpack(run_id, [(each.key, each.step) for each in left], ends)
        _insert_logged(run_id, left)
    _tell(run_id, _again(first, ends), len({each.step for each in rows}))


def _insert_logged(run_id: int, rows: Sequence[LoggedPoint]) -> None:
    finite = [math.isfinite(each.value) for each in rows]
    given: dict[str, Any] = {
        "run": run_id,
        "keys": [each.key for each in rows],
        "steps": [each.step for each in rows],
        "times": [each.time for each in rows],
        "values": [each.value if whole else None for each, whole in zip(rows, finite, strict=True)],
        "others": ["" if whole else _word(each.value) for each, whole in zip(rows, finite, strict=True)],
    }
    with connection.cursor() as cursor:
        cursor.execute(LOGGED, given)


def _ends(run_id: int, keys: list[str]) -> dict[str, Ends]:
    found = prepared.rows(ENDS, {"run": run_id, "keys": keys})
    return {keys[place]: Ends(*rest) for place, *rest in found}


def _again(first: Mapping[str, int], ends: Mapping[str, Ends]) -> dict[str, int]:
    """The metrics that write earlier steps again, each with the first step that was sent. Levels never reach behind what is stored."""
    return {key: step for key, step in first.items() if step <= ends[key].step}


def _tell(run_id: int, again: Mapping[str, int], steps: int) -> None:
    """Tells those who have read the points."""
    condensing.written(run_id, again, steps)
    patience.written(run_id, again)


def _pack(run_id: int, values: Mapping[str, Series], ends: Mapping[str, Ends]) -> None:
    """Stores values of which all steps lie behind all that is stored."""
    appended: list[tuple[int, Series]] = []
    begun: list[bytes] = []
    grids = CopiedGrids()
    for key in sorted(values):
        one, end = values[key], ends[key]
        if end.stretch is not None and (end.count or 0) + len(one.numbers) <= MOST:
            appended.append((end.stretch, one))
        else:
            begun += grids.rows(run_id, key, one)
    if appended:
        _append(appended)
    if begun:
        with connection.cursor() as cursor, connection.wrap_database_errors:
            copy_format.copy(cursor, "experiments_metricstretch", CopiedGrids.COLUMNS, begun)


def _append(told: Sequence[tuple[int, Series]]) -> None:
    grids: dict[int, tuple[int, Grid]] = {}
    of = [grids.setdefault(id(one.grid), (len(grids), one.grid))[0] for _, one in told]
    given: dict[str, Any] = {
        "ids": [stretch for stretch, _ in told],
        "grids": of,
        "numbers": [_array(map(repr, one.numbers.tolist())) for _, one in told],
        "steps": [_array(map(str, grid.steps.tolist())) for _, grid in grids.values()],
        "times": [
            _array(copy_format.time_of(at).isoformat() for at in grid.times.tolist()) for _, grid in grids.values()
        ],
    }
    prepared.run(APPENDED, given)


def _array(texts: Iterable[str]) -> str:
    return f"{{{','.join(texts)}}}"


class CopiedGrids:
    """Stretches as rows of COPY's binary form. The cells of steps and times are written once for all metrics that were measured together."""

    COLUMNS = ("run_id", "key", "first_step", "last_step", "steps", "times", "numbers")
    _START = Struct(">hiqi")  # how many columns; the run; how long the key is
    _ENDS = Struct(">iiii")
    _ARRAY = Struct(">iiiiii")  # bytes; dimensions, whether it holds NULL, type of the elements, size, lower bound
    _INT, _DOUBLE, _TIME = 23, 701, 1184

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], bytes] = {}

    def rows(self, run_id: int, key: str, one: Series) -> list[bytes]:
        name = key.encode()
        start = self._START.pack(len(self.COLUMNS), 8, run_id, len(name)) + name
        return [
            start + self._places(one.grid, at) + self._cell(one.numbers[at : at + MOST], ">f8", self._DOUBLE)
            for at in range(0, len(one.numbers), MOST)
        ]

    def _places(self, grid: Grid, at: int) -> bytes:
        found = self._known.get((id(grid), at))
        if found is None:
            steps, times = grid.steps[at : at + MOST], grid.times[at : at + MOST]
            found = self._known[id(grid), at] = (
                self._ENDS.pack(4, steps[0], 4, steps[-1])
                + self._cell(steps, ">i4", self._INT)
                + self._cell(times, ">i8", self._TIME)
            )
        return found

    def _cell(self, values: NDArray[Any], kind: str, oid: int) -> bytes:
        elements = np.empty(len(values), [("size", ">i4"), ("value", kind)])
        elements["size"], elements["value"] = elements.dtype["value"].itemsize, values
        data = elements.tobytes()
        return self._ARRAY.pack(20 + len(data), 1, 0, oid, len(values), 1) + data


def _unpack(run_id: int, places: Iterable[tuple[str, int]], ends: Mapping[str, Ends]) -> None:
    """Turns stretches that hold one of the places into rows. Places behind the last stretch of their metric cost no statement."""
    held = [(key, step) for key, step in places if step <= (-1 if (last := ends[key].last_step) is None else last)]
    if held:
        keys, wanted = zip(*held, strict=True)
        with connection.cursor() as cursor:
            cursor.execute(UNPACKED, {"run": run_id, "keys": list(keys), "steps": list(wanted)})


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
