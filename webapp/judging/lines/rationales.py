"""Reads lines of a file for rationale consistency; `trainer.metrics.rationale` measures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.contracts.plurals import with_noun
from trainer.metrics.rationale import RationaleSample

from .fields import LineProblem, fields, name, verdict


def parse_sample(row: Any) -> RationaleSample:
    """Reads a JSON object as a sample. `matrix` may be [] or rows of [] if the model gave no reasons.

    Label and verdict may also be numbers, of which the sign counts; if one is null or absent, it is missing.
    """
    row = fields(row, "id, matrix, human, label and verdict")
    matrix = _matrix(row.get("matrix"))
    human = len(matrix) if row.get("human") is None else row["human"]
    if isinstance(human, bool) or not isinstance(human, int) or human < 0:
        raise LineProblem("human", f"expected the number of human reasons, found {human!r:.60}")
    if len(matrix) not in (0, human):
        raise LineProblem("matrix", f"{with_noun(len(matrix), 'rows')} for {with_noun(human, 'human reasons')}")
    label, said = (verdict(row, field, numbers=True) for field in ("label", "verdict"))
    return RationaleSample(name(row, "id", default=""), matrix, human, label, said)


def _matrix(raw: Any) -> NDArray[np.float64]:
    if not isinstance(raw, list) or not all(isinstance(line, list) for line in raw):
        raise LineProblem("matrix", "expected a list of rows, one per human reason")
    if len({len(line) for line in raw}) > 1:
        raise LineProblem("matrix", "rows differ in length")
    for h, line in enumerate(raw):
        for m, score in enumerate(line):
            if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
                raise LineProblem("matrix", f"[{h}][{m}]: expected a score in [0, 1], found {score!r:.60}")
    return np.asarray(raw, dtype=np.float64).reshape(len(raw), len(raw[0]) if raw else 0)
