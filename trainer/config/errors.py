"""Problems of a config, each at its field."""

from dataclasses import dataclass
from typing import Any

WORDS = {
    "missing": "is missing",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "finite_number": "must be a finite number",
    "literal_error": "must be {expected}",
    "string_type": "must be a text",
    "list_type": "must be a list",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} entries",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be a group of fields"),
}
"""{type of an error of pydantic: what is said, with its context filled in}"""
_LEAST = {
    "string_too_short": ("must not be empty", "characters"),
    "too_short": ("must have at least one entry", "entries"),
}
"""{type: what is said if one is the least, and what is counted}"""


def item_text(item: Any) -> str:
    """An error of pydantic (an item of `ValidationError.errors()`) in the words of our forms; pydantic's own where none are known."""
    found = {name: _shown(value) for name, value in item.get("ctx", {}).items()}
    if item["type"] == "extra_forbidden":
        return "unknown key"
    if item["type"] in _LEAST:
        one, counted = _LEAST[item["type"]]
        return one if found["min_length"] == "1" else f"must have at least {found['min_length']} {counted}"
    if item["type"] in WORDS:
        return WORDS[item["type"]].format(**found)
    return str(item["msg"]).removeprefix("Value error, ")


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


@dataclass(frozen=True)
class FieldProblem:
    """`path` is dotted, as in `optim.minibatch_size`. If it is empty, the problem is one of the whole config."""

    path: str
    message: str


class ConfigInvalid(ValueError):
    """A config is refused before anything is queued. `problems` holds every field that is wrong, not only the first."""

    def __init__(self, problems: list[FieldProblem]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{p.path or 'config'}: {p.message}" for p in problems))
