"""JSON objects and numbered steps."""

import json
from typing import Annotated, Any

import regex
from pydantic import Field

from .base import Args, Bounds, Finding, Verifier, VerifierExample
from .segments import step_number

_FENCE = regex.compile(r"```(?:json)?[^\S\n]*\n(.*)\n[^\S\n]*```", regex.S | regex.I)


class JsonKeys(Args):
    required: list[Annotated[str, Field(max_length=200)]] = Field(
        [], max_length=100, description="Keys that the object must have"
    )
    only_required: bool = Field(False, description="No other keys are allowed")
    allow_fence: bool = Field(True, description="The object may stand in a ```json code block, with nothing around it")


class Steps(Bounds):
    consecutive: bool = Field(True, description="Numbers must run 1, 2, 3, … without gap or repeat")


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _json(text: str, args: JsonKeys) -> Finding:
    body = text.strip()
    fenced = _FENCE.fullmatch(body) if args.allow_fence else None
    try:
        value = json.loads(fenced[1] if fenced else body, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return Finding(False, f"not JSON: {str(error)[:120]}")
    if not isinstance(value, dict):
        return Finding(False, f"a JSON {type(value).__name__}, not an object")
    lacking = [key for key in args.required if key not in value]
    extra = [key for key in value if key not in args.required] if args.only_required else []
    if lacking or extra:
        return Finding(False, "; ".join(f"{w}: {', '.join(k)[:120]}" for w, k in _named(lacking, extra) if k))
    return Finding(True, f"an object with {len(value)} keys")


def _named(lacking: list[str], extra: list[str]) -> tuple[tuple[str, list[str]], ...]:
    return ("lacks", lacking), ("not allowed", extra)


def _steps(text: str, args: Steps) -> Finding:
    numbers = [number for line in text.splitlines() if (number := step_number(line)) is not None]
    finding = args.judge(len(numbers), "step")
    if args.consecutive and numbers != list(range(1, len(numbers) + 1)):
        return Finding(False, f"numbered {', '.join(map(str, numbers[:12]))}; asked: 1, 2, 3, …")
    return finding


VERIFIERS = (
    Verifier(
        "valid_json",
        "Valid JSON object",
        "The whole text is one JSON object with the required keys.",
        JsonKeys,
        _json,
        (
            VerifierExample('{"name": "Ada", "age": 36}', {"required": ["name", "age"]}, True),
            VerifierExample('{"name": "Ada"}', {"required": ["name", "age"]}, False),
            VerifierExample('Here you are: {"name": "Ada"}', {"required": ["name"]}, False),
        ),
    ),
    Verifier(
        "numbered_steps",
        "Numbered steps",
        "Counts lines that begin with 1. or 1) or Step 1:, and by default wants the numbers to run from 1 without gap.",
        Steps,
        _steps,
        (
            VerifierExample("1. Wash\n2. Cut\n3. Cook", {"exactly": 3}, True),
            VerifierExample("1. Wash\n3. Cook", {"min": 2}, False),
            VerifierExample("1. Wash\n3. Cook", {"min": 2, "consecutive": False}, True),
        ),
    ),
)
