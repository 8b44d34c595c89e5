"""The words that tell people what is wrong with a value, from an error of pydantic."""

from collections.abc import Mapping
from typing import Any

from trainer.config.errors import WORDS as WORDS_OF_FORMS

# the words of forms, with those for values that only the bodies of programs have
WORDS = WORDS_OF_FORMS | {
    "string_too_long": "has more than {max_length} characters",
    "string_too_short": "must not be empty",
    "tuple_type": "must be a list",
    "extra_forbidden": "unknown key",
    "string_pattern_mismatch": "must have the form {pattern}",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be an object"),
    **dict.fromkeys(("date_type", "date_parsing", "date_from_datetime_parsing"), "must be a date, such as 2026-12-01"),
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "timezone_aware"),
        "must be a time with its zone, such as 2026-12-01T22:00:00Z",
    ),
}


def error_text(error: Mapping[str, Any]) -> str:
    """`error` is one of `ValidationError.errors()`, with its context."""
    if error["type"] in ("too_short", "too_long"):
        return _of_length(**error["ctx"])
    if words := WORDS.get(error["type"]):
        return words.format(**{name: _shown(name, value) for name, value in error.get("ctx", {}).items()})
    return str(error["msg"]).removeprefix("Value error, ")


def _shown(name: str, value: Any) -> str:
    """A bound with all its digits: `2.14748e+09` would be wrong."""
    if name not in ("ge", "gt", "le", "lt", "max_length"):
        return str(value)
    return f"{int(value):,}" if isinstance(value, int | float) and value == int(value) else str(value)


def _of_length(min_length: int | None = None, max_length: int | None = None, **rest: Any) -> str:
    if max_length is not None:
        return f"has more than {max_length:,} entries"
    return "must not be empty" if min_length == 1 else f"needs at least {min_length:,} entries"
