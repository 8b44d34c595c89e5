"""Audit of pairwise judges asked in both orders (METHODS 2; JudgeBench, 2024).

Axes: C cases (one pair judged by one judge). Sides: -1 A, 0 tie, 1 B; NaN where the verdict is missing.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.benchmarks.agreement import cohen
from trainer.benchmarks.estimate import Estimate, bootstrap_ratio, proportion, undefined

from .verdicts import side

Floats = NDArray[np.float64]


class CaseProblem(ValueError):
    """A line of an audit file that cannot be used; the message names the field."""


@dataclass(frozen=True)
class Case:
    """`swapped` is the verdict as said with the responses in swapped order, before un-swapping."""

    judge: str
    pair: str
    group: str
    label: int
    given: int | None
    swapped: int | None


def parse_case(row: Any) -> Case:
    """One JSON object as a case. `given` and `swapped` may be null or absent: a verdict that is missing."""
    if not isinstance(row, dict):
        raise CaseProblem("expected an object with judge, pair, group, label, given and swapped")
    for field in ("judge", "pair"):
        if row.get(field) in (None, ""):
            raise CaseProblem(f"field {field!r} is missing")
    sides: dict[str, int | None] = {}
    for field in ("label", "given", "swapped"):
        try:
            sides[field] = side(row.get(field))
        except ValueError as error:
            raise CaseProblem(f"field {field!r}: {error}") from error
    label = sides["label"]
    if label is None:
        raise CaseProblem("field 'label' is missing")
    group = str(row.get("group") or "")
    return Case(str(row["judge"]), str(row["pair"]), group, label, sides["given"], sides["swapped"])


def audit(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """One record per judge and group and, as group "overall", per judge. Raises CaseProblem on a repeated pair."""
    grouped: dict[tuple[str, str], list[Case]] = defaultdict(list)
    seen: set[tuple[str, str]] = set()
    for case in cases:
        if (case.judge, case.pair) in seen:
            raise CaseProblem(f"judge {case.judge!r} judged pair {case.pair!r} twice")
        seen.add((case.judge, case.pair))
        grouped[case.judge, case.group].append(case)
    records = []
    for judge in sorted({judge for judge, _ in grouped}):
        groups = sorted(group for name, group in grouped if name == judge)
        for group in groups:
            records.append({"judge": judge, "group": group, **measures(grouped[judge, group])})
        everything = [case for group in groups for case in grouped[judge, group]]
        records.append({"judge": judge, "group": "overall", **measures(everything)})
    return records


def measures(cases: list[Case]) -> dict[str, Any]:
    """Accuracy, order consistency and position bias of one judge on `cases`, each with n and a 95% interval.

    Accuracies are over all cases: a missing verdict is wrong, and `missing` says how many there are. Consistency, kappa
    and first-position share are over the verdicts that exist.
    """
    label_C = np.array([case.label for case in cases], dtype=np.float64)
    given_C = np.array([np.nan if case.given is None else case.given for case in cases])
    said_C = np.array([np.nan if case.swapped is None else case.swapped for case in cases])
    swapped_C = -said_C
    n = len(cases)
    right_given_C, right_swapped_C = given_C == label_C, swapped_C == label_C
    return {
        "n": n,
        "missing": {
            "given": int(np.isnan(given_C).sum()),
            "swapped": int(np.isnan(said_C).sum()),
            "both": int((np.isnan(given_C) & np.isnan(said_C)).sum()),
        },
        "accuracy_given": proportion(int(right_given_C.sum()), n).json(),
        "accuracy_swapped": proportion(int(right_swapped_C.sum()), n).json(),
        "accuracy_both": proportion(int((right_given_C & right_swapped_C).sum()), n).json(),
        "accuracy_net": proportion(int((net_votes(label_C, given_C, swapped_C) > 0).sum()), n).json(),
        "order_consistency": _consistency(given_C, swapped_C).json(),
        "first_position_share": _first_position(given_C, said_C).json(),
        "kappa_orders": _kappa(given_C, swapped_C).json(),
    }


def net_votes(label_C: Floats, given_C: Floats, swapped_C: Floats) -> Floats:
    """Sum over both orders of +1 for the label, -1 for its opposite, 0 for half-way or missing verdicts."""
    votes_C = np.zeros(len(label_C))
    for verdict_C in (given_C, swapped_C):
        votes_C += np.where(np.isnan(verdict_C), 0, 1 - np.abs(verdict_C - label_C))
    return votes_C


def _consistency(given_C: Floats, swapped_C: Floats) -> Estimate:
    both_C = ~np.isnan(given_C) & ~np.isnan(swapped_C)
    return proportion(int((given_C == swapped_C)[both_C].sum()), int(both_C.sum()))


def _first_position(given_C: Floats, said_C: Floats) -> Estimate:
    """Share of decided verdicts that name the response shown first; resampled by pair, as its two verdicts belong together."""
    first_C = (given_C == -1).astype(float) + (said_C == -1)
    decided_C = (np.abs(given_C) == 1).astype(float) + (np.abs(said_C) == 1)
    return bootstrap_ratio(first_C, decided_C, empty="no verdict names a side")


def _kappa(given_C: Floats, swapped_C: Floats) -> Estimate:
    """Cohen's kappa between the two orders' verdicts, after un-swapping."""
    both_C = ~np.isnan(given_C) & ~np.isnan(swapped_C)
    if not both_C.any():
        return undefined("no pair has verdicts in both orders")
    return cohen([(int(g), int(s)) for g, s in zip(given_C[both_C], swapped_C[both_C], strict=True)])
