"""Criteria as environments write them: a weight that is never negative, and the answer that earns it.

For a criterion that costs points, the other answer earns its points as the weight. With P points to gain and N to lose, the mean by weight
is then (score * P + N) / (P + N): responses to one prompt keep their order and the proportions of their differences.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainer.contracts import Criterion
from webapp.files.records import BadRow, Row

from ..base_exporter import compact

OURS = ("kind", "importance", "tags", "verifier")  # environments do not read these, but an import of the file does


@dataclass(frozen=True)
class AskedCriterion:
    """A criterion in a layout. `id` is None if it has no name. `turned`: meeting it costs points."""

    id: str | None
    text: Any
    weight: Any
    turned: bool


def ours(criterion: Criterion) -> Row:
    """The fields for which the layout has no word; the verifier as JSON text, so that files with many kinds have one shape."""
    said = criterion.model_dump(mode="json", include=set(OURS), exclude_none=True)
    if "verifier" in said:
        said["verifier"] = compact(said["verifier"])
    return said


def read(items: Any, field: str, asked: Callable[[Row, str], AskedCriterion]) -> Row:
    """The rubric of a row. Raises BadRow."""
    if not isinstance(items, list):
        raise BadRow(field, "must be a list of criteria")
    return {"criteria": [_criterion(item, f"{field}.{at}", at, asked) for at, item in enumerate(items)]}


def _criterion(item: Any, field: str, at: int, asked: Callable[[Row, str], AskedCriterion]) -> Row:
    if not isinstance(item, dict):
        raise BadRow(field, "must be a criterion")
    found = asked(item, field)
    if isinstance(found.weight, bool) or not isinstance(found.weight, int | float) or found.weight <= 0:
        raise BadRow(f"{field}.weight", "must be a number above 0: a criterion of weight 0 does not change the score")
    criterion: Row = {"id": found.id or f"c{at + 1}", "text": found.text}
    criterion["points"] = -found.weight if found.turned else found.weight
    criterion |= {name: item[name] for name in OURS if item.get(name) is not None}
    criterion.setdefault("importance", "pitfall" if found.turned else "important")
    if isinstance(verifier := criterion.get("verifier"), str):
        try:
            criterion["verifier"] = json.loads(verifier)
        except (ValueError, RecursionError):
            raise BadRow(f"{field}.verifier", "must be JSON") from None
    return criterion
