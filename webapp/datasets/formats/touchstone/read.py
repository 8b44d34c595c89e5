"""The native format: one `contracts.Example` per line, as the export writes it. It also reads every other layout that an export wrote with
the column `touchstone`, which has what the layout has no place for (see `base_exporter`)."""

import json
from typing import Any

from webapp.files.records import BadRow, Row, Skip

from .. import patches, plain_pairs
from ..base_importer import Alone, Importer
from ..convert import Mapping, with_ids
from ..fields import messages

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

IMPORTERS: dict[
    str, Importer
] = {}  # by name, as `importers` registers them: a row says which of them reads the rest of it


def knows(row: Row) -> float:
    if isinstance(row.get(patches.COLUMN), str):
        return 1.0
    if not {"key", "prompt"} <= row.keys():
        return 0.0
    return 0.95 if row.keys() <= FIELDS else 0.6


def wrote(row: Row, format: str) -> bool:
    """Whether an export of ours wrote the row in the layout that this importer reads. A row that the importer would refuse has the whole
    example in the column, and not the name of an importer."""
    try:
        told = json.loads(row[patches.COLUMN])
    except (KeyError, TypeError, ValueError, RecursionError):
        return False
    return isinstance(told, dict) and patches.AGAIN not in told and bool(told.get("format", format) == format)


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
    """The result of the layout's own importer for the row, with the changes of the column."""
    own = {name: value for name, value in row.items() if name != patches.COLUMN}
    try:
        told = json.loads(row[patches.COLUMN])
        if patches.AGAIN in told:
            raise Skip
        if "format" not in told:
            return dict(told)
        convert = IMPORTERS[told["format"]].converter(Alone(""))
        return patches.applied(plain_pairs.read_back(convert(own, {})), told["changes"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
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
