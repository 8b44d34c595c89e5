"""Pieces that several importers share: prompts, pairs, keys."""

import re
from collections.abc import Hashable, Iterable, Mapping
from hashlib import sha256
from typing import Any

from pydantic_core import to_json

from webapp.files.records import BadRow, Row

from ..bounds import MAX_LABEL

UNSAID = "unsaid"
"""A key of `meta`: the parts of a row that an example cannot hold, each in words; imports of formats that set it count it."""
CHOSEN_STRENGTH = -2  # "A is better", for files that say which side won but not by how much
CHOSEN: list[dict[str, Any]] = [{"a": "a", "b": "b", "strength": CHOSEN_STRENGTH}]


def content_key(*parts: object) -> str:
    """A key for rows without one: the same content has the same key in every file and version. Raises ValueError for content that JSON
    cannot hold, such as half a surrogate pair."""
    return sha256(to_json(parts)).hexdigest()[:20]


SIDES = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(
        ("heldout", "test", "testing", "validation", "valid", "val", "dev", "eval", "evaluation"), "heldout"
    ),
}
FIRST_WORD = re.compile(r"[a-z]+")


def side_of(value: Any) -> str | None:
    """The side that a split's name stands for, such as `train`, `test`, `held-out`, `train_prefs` or `validation[:100]`;
    None for any other name."""
    name = str(value).lower().strip()
    if re.match(r"held[ _-]?out", name):
        return "heldout"
    word = FIRST_WORD.match(name)
    return SIDES.get(word[0]) if word else None


LABELS = ("group", "domain", "source")


def labels(row: Row) -> tuple[dict[str, str], set[str]]:
    """The labels in the columns `split`, `group`, `domain` and `source`, and which of these were read: only a short text is a label, and a
    split that names neither side is not read."""
    found = {name: row[name] for name in LABELS if isinstance(row.get(name), str) and 0 < len(row[name]) <= MAX_LABEL}
    if (side := side_of(row.get("split", ""))) is not None:
        found["split"] = side
    return found, set(found)


def text_of(row: Row, field: str) -> str:
    """The string at `field`. Raises BadRow if it is missing or something else."""
    if field not in row or row[field] is None:
        raise BadRow(field, "is missing")
    value = row[field]
    if not isinstance(value, str):
        raise BadRow(field, f"must be text, found {type(value).__name__}")
    return value


def messages(value: Any, field: str) -> list[dict[str, str]]:
    """A prompt: text becomes one user message; a list of messages may call its keys role/content or from/value."""
    if isinstance(value, str):
        if not value.strip():
            raise BadRow(field, "is empty")
        return [{"role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        raise BadRow(field, "must be text or a list of messages" if value is not None else "is missing")
    return [_message(item, f"{field}.{index}") for index, item in enumerate(value)]


ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant", "model": "assistant", "developer": "system"}


def _message(item: Any, field: str) -> dict[str, str]:
    if not isinstance(item, dict):
        raise BadRow(field, "must be a message with role and content")
    role = item.get("role", item.get("from"))
    content = item.get("content", item.get("value"))
    if not isinstance(role, str):
        raise BadRow(f"{field}.role", "is missing")
    if not isinstance(content, str):
        raise BadRow(f"{field}.content", "must be text")
    return {"role": ROLES.get(role, role), "content": content}


def pair(chosen: str, rejected: str) -> Row:
    """Responses a (chosen) and b (rejected) and the preference between them."""
    if chosen == rejected:
        raise BadRow("rejected", "is the same text as chosen, so it says nothing about which is better")
    return {
        "responses": [{"id": "a", "text": chosen}, {"id": "b", "text": rejected}],
        "preferences": CHOSEN,
    }


def remaining_fields(row: Row, used: set[str]) -> dict[str, Any]:
    """All fields of the row without a place of their own, so that nothing is lost."""
    return {key: value for key, value in row.items() if key not in used and value is not None}


def criteria(texts: Iterable[str], kind: str = "principle") -> list[Row]:
    """Criteria of one point each, c1, c2, ..."""
    return [{"id": f"c{number}", "text": text, "points": 1, "kind": kind} for number, text in enumerate(texts, 1)]


def not_given(what: str, file: str) -> str:
    """A text in place of a missing one: it tells people where the text is, so that nobody takes an id for an answer."""
    return f"[{what}: its text is in {file}, which was not imported together with this file]"


def one_of(row: Row, field: str, values: Mapping[Any, Any]) -> Any:
    """The entry of `values` for the row's value. Raises BadRow, listing the entries, for any other."""
    value = row.get(field)
    if not isinstance(value, Hashable) or value not in values:
        known = ", ".join(map(str, values))
        raise BadRow(field, "is missing" if value is None else f"must be one of {known}; found {value!r}")
    return values[value]


def objects(row: Row, field: str) -> list[Row]:
    """The list of objects at `field`. Raises BadRow if it is missing, empty or something else."""
    value = row.get(field)
    if not isinstance(value, list) or not value or not all(isinstance(item, dict) for item in value):
        raise BadRow(field, "is missing" if value is None else "must be a list of objects with at least one")
    return value
