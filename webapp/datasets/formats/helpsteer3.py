"""HelpSteer3-Preference (Wang et al., 2025): pairs with up to three individual preferences, each with its reasoning."""

from typing import Any

from webapp.files.records import BadRow, Row

from .base_importer import Importer
from .convert import Mapping
from .fields import content_key, messages, remaining_fields, text_of

NEEDED = {"context", "response1", "response2", "overall_preference"}
USED = NEEDED | {"domain", "language", "individual_preference"}


def knows(row: Row) -> float:
    return 0.98 if row.keys() >= NEEDED else 0.0


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    prompt = messages(row.get("context"), "context")
    answers = [text_of(row, "response1"), text_of(row, "response2")]
    return {
        "key": content_key(prompt, answers),
        "prompt": prompt,
        "source": "HelpSteer3",
        "domain": str(row.get("domain") or ""),
        "tags": [f"language:{row['language']}"] if row.get("language") else [],
        "responses": [{"id": id, "text": text} for id, text in zip("ab", answers, strict=True)],
        "preferences": _preferences(row),
        "meta": remaining_fields(row, USED)
        | {"overall_preference": _strength(row.get("overall_preference"), "overall_preference")},
    }


def _preferences(row: Row) -> list[Row]:
    """A preference for each annotator, in the file's order; if the file gives none, the overall one."""
    given = row.get("individual_preference") or []
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise BadRow("individual_preference", "must be a list of preferences with score and reasoning")
    if not given:
        strength = _strength(row.get("overall_preference"), "overall_preference")
        return [{"a": "a", "b": "b", "strength": strength, "rater": "overall"}]
    return [_individual(each, index) for index, each in enumerate(given)]


def _individual(each: Row, index: int) -> Row:
    """A preference of one annotator. Reasoning compares the responses; feedback on one response is a reason about that response."""
    texts = (("reasoning", None), ("feedback1", "a"), ("feedback2", "b"))
    reasons = [
        {"text": each[name].strip()} | ({"response": side} if side else {})
        for name, side in texts
        if isinstance(each.get(name), str) and each[name].strip()
    ]
    strength = _strength(each.get("score"), f"individual_preference.{index}.score")
    return {"a": "a", "b": "b", "strength": strength, "rater": f"annotator {index + 1}", "reasons": reasons}


def _strength(value: Any, field: str) -> int:
    if not isinstance(value, int | float) or isinstance(value, bool) or value != int(value) or not -3 <= value <= 3:
        raise BadRow(field, f"must be a whole number from -3 to 3, found {value!r}")
    return int(value)


IMPORTER = Importer(
    name="helpsteer3",
    label="HelpSteer3 preferences",
    help="Context, response1, response2, overall_preference -3 to 3 and individual_preference with reasoning.",
    knows=knows,
    convert=convert,
)
