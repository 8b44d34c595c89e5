"""The native format: one `contracts.Example` per line, as the export writes it; and every other layout that an export
wrote with the column `touchstone`, which says what the layout itself has no place for (see `exporters.base`)."""

import json
from typing import Any

from .. import patches
from . import plain
from .base import Alone, BadRow, Importer, Mapping, Row, Skip
from .convert import with_ids
from .shapes import messages

FIELDS = {
    "key",
    "prompt",
    "split",
    "group",
    "domain",
    "source",
    "tags",
    "rubric",
    "responses",
    "preferences",
    "reference",
    "meta",
}


def knows(row: Row) -> float:
    if isinstance(row.get(patches.COLUMN), str):
        return 1.0
    if not {"key", "prompt"} <= row.keys():
        return 0.0
    return 0.95 if row.keys() <= FIELDS else 0.6


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    if isinstance(row.get(patches.COLUMN), str):
        return _restored(row)
    data = dict(row)
    if isinstance(data.get("prompt"), str):
        data["prompt"] = messages(data["prompt"], "prompt")
    if data.get("rubric") is not None:
        data["rubric"] = with_ids(data["rubric"])
    return data


def _restored(row: Row) -> dict[str, Any]:
    """What the layout's own importer makes of the row, with the changes that the column names."""
    from . import REGISTRY  # which names this module

    own = {name: value for name, value in row.items() if name != patches.COLUMN}
    try:
        told = json.loads(row[patches.COLUMN])
        if patches.AGAIN in told:
            raise Skip
        if "format" not in told:
            return dict(told)
        convert = REGISTRY[told["format"]].converter(Alone(""))
        return patches.applied(plain.read_back(convert(own, {})), told["changes"])
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, BadRow):
            raise
        raise BadRow(patches.COLUMN, f"cannot be read: {error}; take the column out to import the rest") from error


IMPORTER = Importer(
    name="touchstone",
    label="Touchstone",
    help="One example per line with key, prompt, rubric, responses and preferences; what the export writes.",
    knows=knows,
    convert=convert,
)
