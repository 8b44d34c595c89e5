"""Reports how well the surface of an answer predicts its label: length, format and tone of the judged pairs."""

from dataclasses import dataclass

import numpy as np

from ..columns import packed
from ..columns.filters import SLICES
from ..models import DatasetVersion


@dataclass(frozen=True)
class Slice:
    """`count` of the judged pairs, and their `share`, None if there are none. `tilt` is the other side's count."""

    name: str
    label: str
    count: int
    share: float | None


@dataclass(frozen=True)
class Surface:
    """`judged` pairs have a better side; `longer_wins` is the share of those of unequal length whose longer side won."""

    judged: int
    longer_wins: float | None
    unequal: int
    slices: list[Slice]


def report(version: DatasetVersion) -> Surface:
    held = packed.columns(version)
    ratio, strength = held["length_ratio"], held["strength"]
    judged = int(np.count_nonzero(strength[~np.isnan(strength)]))
    known = ratio[~np.isnan(ratio)]
    unequal = int(np.count_nonzero(known != 1))
    longer = int(np.count_nonzero(known < 1))
    codes = np.bincount(held["marks"], minlength=len(held.values("marks")))
    counts = {
        name: int(sum(n for n, marks in zip(codes, held.values("marks"), strict=True) if name in marks))
        for name in SLICES
    }
    slices = [
        Slice(name, label, counts[name], counts[name] / judged if judged else None) for name, label in SLICES.items()
    ]
    return Surface(judged, longer / unequal if unequal else None, unequal, slices)
