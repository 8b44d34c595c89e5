"""The native format: one `contracts.Example` per line, as the export writes it."""

from typing import Any

from .base import Importer, Mapping, Row
from .convert import with_ids
from .shapes import messages

FIELDS = {
    "key",
    "prompt",
    "split",
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
    if not {"key", "prompt"} <= row.keys():
        return 0.0
    return 0.95 if row.keys() <= FIELDS else 0.6


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    data = dict(row)
    if isinstance(data.get("prompt"), str):
        data["prompt"] = messages(data["prompt"], "prompt")
    if data.get("rubric") is not None:
        data["rubric"] = with_ids(data["rubric"])
    return data


IMPORTER = Importer(
    name="touchstone",
    label="Touchstone",
    help="One example per line with key, prompt, rubric, responses and preferences; what the export writes.",
    knows=knows,
    convert=convert,
    splits="file",
)
