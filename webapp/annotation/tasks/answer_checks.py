"""Checks whether an answer fits its task. Answers arrive in the shown frame; every problem names a path below `content` and says in a
sentence what to do."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from webapp.core.forms.error_messages import error_text
from webapp.core.problems import Invalid

from .. import kinds

Fields = dict[str, str]
REFUSED = "The answer is not complete."


def answer(
    kind: str, settings: kinds.Settings, content: object, view: Mapping[str, Any], *, gold: bool = False
) -> dict[str, Any]:
    """The answer as its record has it, as JSON, defaults included. `view` is what the person saw (`blinding.view`).

    Raises Invalid at `content.*`. `gold`: a known answer needs no reasons.
    """
    asked = kinds.get_kind(kind)
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
    if error["type"] == "extra_forbidden":
        return path, "is not a part of this answer"
    message = error_text(error)
    if error["type"] == "value_error" and ("steps" in message or "no strength" in message):
        path += ".strength"  # a rule over several fields is reported at the field to change, if there is one
    return path, message
