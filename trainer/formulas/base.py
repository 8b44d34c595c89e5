"""A formula is a function whose parameters declare its inputs; this module also has the answers that a formula may give."""

import inspect
import json
import math
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model

_TOO_LARGE = "the inputs are so large that the value is not a finite number"
MOST_NAMED = 5  # problems in one line


class InputInvalid(ValueError):
    """An input that cannot be used; `problem` is one line that begins with the field."""

    def __init__(self, field: str, message: str) -> None:
        self.problem = f"{field}: {message}"
        super().__init__(self.problem)


class Undefined(Exception):
    """The formula has no value for these inputs; the message says why."""


@dataclass(frozen=True)
class Partly:
    """A value with undefined (null) parts, and the reason."""

    value: Any
    why: str


def _flag(value: Any) -> Any:
    return bool(value) if type(value) is int and value in (0, 1) else value


Flag = Annotated[bool, BeforeValidator(_flag)]
"""true or false; 1 and 0 are read as such."""
Count = Annotated[int, Field(ge=0, le=10**9)]
Positive = Annotated[int, Field(ge=1, le=10**9)]
Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]

Compute = Callable[..., Any]


@dataclass(frozen=True)
class Formula:
    """`compute` is called with the inputs by name. `summary` is the first line of its docstring."""

    name: str
    summary: str
    inputs: type[BaseModel]
    compute: Compute

    def evaluate(self, record: Any) -> dict[str, Any]:
        """`{"value": ...}`, with "why" if all or a part of it is undefined. Raises InputInvalid."""
        if not isinstance(record, dict):
            raise InputInvalid("FILE", "expected one JSON object with the inputs by name")
        try:
            inputs = self.inputs.model_validate(record)
        except ValidationError as error:
            raise self._refused(error) from error
        try:
            value = self.compute(**{name: getattr(inputs, name) for name in self.inputs.model_fields})
            if isinstance(value, Partly):
                return {"value": _plain(value.value), "why": value.why}
            return {"value": _plain(value)}
        except Undefined as undefined:
            return {"value": None, "why": str(undefined)}
        except OverflowError:
            return {"value": None, "why": _TOO_LARGE}
        except InputInvalid:
            raise
        except ValueError as error:  # messages of the product's functions begin with the argument
            field, _, message = str(error).partition(": ")
            raise InputInvalid(field, message) from error

    def usage(self) -> str:
        """`name {a, b, [c]}`: the inputs; those in brackets may be left out."""
        fields = self.inputs.model_fields.items()
        return f"{self.name} {{{', '.join(n if field.is_required() else f'[{n}]' for n, field in fields)}}}"

    def _refused(self, error: ValidationError) -> InputInvalid:
        problems = [self._problem(item) for item in error.errors(include_url=False)]
        named = [f"{field}: {message}" for field, message in problems[1:MOST_NAMED]]
        left = len(problems) - MOST_NAMED
        more = [*named, *([f"and {left} more"] if left > 0 else [])]
        field, message = problems[0]
        return InputInvalid(field, "; ".join([message, *more]))

    def _problem(self, item: Any) -> tuple[str, str]:
        first, *rest = item["loc"]
        field = f"{first}" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)
        if item["type"] == "extra_forbidden":
            return field, f"unknown input; known: {', '.join(self.inputs.model_fields)}"
        if item["type"] == "missing":
            return field, f"missing; expected {self.usage()}"
        message = str(item["msg"]).removeprefix("Value error, ")
        if item["type"] == "too_short":
            found, least = item["ctx"]["actual_length"], item["ctx"]["min_length"]
            return (
                field,
                f"is empty; expected at least {least}" if not found else f"has {found}; expected at least {least}",
            )
        if isinstance(item["input"], str | int | float | None):
            shown = json.dumps(item["input"], ensure_ascii=False)  # as the file has it
            message += f", found {shown if len(shown) <= 40 else shown[:37] + '...'}"
        return field, message[:1].lower() + message[1:]


def formula(compute: Compute) -> Formula:
    """A formula from its function: annotations are the schema, defaults make inputs optional."""
    hints = get_type_hints(compute, include_extras=True)
    fields: dict[str, Any] = {
        name: (hints[name], ... if parameter.default is inspect.Parameter.empty else parameter.default)
        for name, parameter in inspect.signature(compute).parameters.items()
    }
    config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, protected_namespaces=())
    summary = (inspect.getdoc(compute) or "").partition("\n")[0]
    return Formula(compute.__name__, summary, create_model(compute.__name__, __config__=config, **fields), compute)


def same_length(**lists: Sized) -> None:
    """Raises InputInvalid at the first list whose length differs from that of the first list."""
    (first, expected), *others = lists.items()
    for name, values in others:
        if len(values) != len(expected):
            raise InputInvalid(name, f"has {len(values)} entries, {first} has {len(expected)}")


def same_width(name: str, rows: Sequence[Sequence[Any]]) -> None:
    """Raises InputInvalid at the first row whose length differs from that of row 0."""
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise InputInvalid(f"{name}[{i}]", f"has {len(row)} entries, {name}[0] has {len(rows[0])}")


def _plain(value: Any) -> Any:
    """The value as JSON allows it: without -0.0 and infinity."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Undefined(_TOO_LARGE)
        return value + 0.0
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
