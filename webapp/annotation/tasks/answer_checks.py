"""Checks whether an answer fits its task. Answers arrive in the shown frame; every problem names a path below `content` and says in a
sentence what to do."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from webapp.core.problems import Invalid

from .. import kinds

Fields = dict[str, str]
REFUSED = "The answer is not complete."
WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not a part of this answer",
    "string_too_long": "has more than {max_length:,} characters",
    "string_too_short": "must not be empty",
    "too_long": "holds more than {max_length:,} entries",
    "too_short": "must not be empty",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "tuple_type": "must be a list",
}


def answer(
    kind: str, settings: kinds.Settings, content: object, view: Mapping[str, Any], *, gold: bool = False
) -> dict[str, Any]:
    """The answer as its record has it, as JSON, defaults included. `view` is what the person saw (`blinding.view`).

    Raises Invalid at `content.*`. `gold`: a known answer needs no reasons.
    """
    asked = kinds.of(kind)
    try:
        record = asked.answer.model_validate(content)
    except ValidationError as error:
        raise Invalid(REFUSED, complaints(error)) from error
    fields = {f"content.{path}": message for path, message in asked.check(record, settings, view, gold=gold).items()}
    if fields:
        raise Invalid(REFUSED, fields)
    return asked.completed(record.model_dump(mode="json"), view)


def complaints(error: ValidationError) -> Fields:
    """{path: sentence} for all errors of pydantic."""
    return dict(_complaint(one) for one in error.errors())


def _complaint(error: Any) -> tuple[str, str]:
    path = ".".join(["content", *(str(part) for part in error["loc"])])
    words = WORDS.get(error["type"])
    if error["type"] == "value_error":
        # a rule over several fields: reported at the field to change, if there is one
        message = str(error["ctx"]["error"])
        return (f"{path}.strength" if "steps" in message or "no strength" in message else path), message
    return path, words.format(**error.get("ctx", {})) if words else error["msg"]
