"""Raw text becomes a parsed answer: it is read as strict JSON, then tolerantly; if both fail, there is a problem. No text raises."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import json_repair
from pydantic import BaseModel, ConfigDict, ValidationError

from .templates import scrub

_THOUGHT = re.compile(r"^.*</think>", re.DOTALL)
_BRACE = re.compile(r"[{}]")
_REPAIRABLE = 100_000  # characters; for longer texts a repair takes longer than another call
_OBJECTS = 200  # objects that are tried in one text
_UNUSABLE = (ValueError, RecursionError, AttributeError, TypeError, IndexError, KeyError)  # of the repair library too


class AnswerSchema(BaseModel):
    """Base of every output schema. Keys beyond the schema are ignored; numbers are finite."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Reading:
    """If `parsed` is None, nothing can be used, and `problem` says why. With both, a part can be used, and to ask again is worthwhile."""

    parsed: dict[str, Any] | None
    problem: str = ""


def schema(answer: type[AnswerSchema]) -> dict[str, Any]:
    """The JSON schema for endpoints that enforce one: every key is required, and no other is allowed."""
    made = _strict(answer.model_json_schema())
    assert isinstance(made, dict)  # noqa: S101  # what pydantic makes of a model is an object
    return made


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    strict = {key: _strict(value) for key, value in node.items() if key != "title" or not isinstance(value, str)}
    if "properties" in strict:
        strict |= {"additionalProperties": False, "required": list(strict["properties"])}
    return strict


def extract(raw: str, answer: type[AnswerSchema], *, complete: bool = True) -> tuple[AnswerSchema | None, str]:
    """(answer, "") or (None, what is wrong).

    An answer that was cut (`complete` False) counts only if its JSON is whole: a repaired half would say something that the judge did
    not say. If a text holds several objects, the last that fits counts: a judge that quotes its material, or thinks aloud, answers last.
    """
    problem = "the answer is empty" if not raw.strip() else "the answer holds no JSON object"
    for found in _candidates(raw, complete):
        if not isinstance(found, dict):
            continue
        try:
            return answer.model_validate(_scrubbed(found)), ""
        except ValidationError as error:
            problem = _problem(error)
        except RecursionError:
            problem = "the answer is nested too deeply"
    return None, problem if complete else f"the answer was cut before its end; {problem}"


def without_thinking(raw: str) -> str:
    """The text after the last thought, without the white space around it."""
    return (_THOUGHT.sub("", raw) if "</think>" in raw else raw).strip()


def _candidates(raw: str, complete: bool) -> Iterator[Any]:
    text = without_thinking(raw)
    try:
        yield json.loads(text)
    except _UNUSABLE:
        pass
    else:
        return
    for region in reversed(list(_regions(text))):
        try:
            yield json.loads(region)
        except _UNUSABLE:
            if complete and len(region) <= _REPAIRABLE:
                yield _repaired(region)


def _repaired(text: str) -> Any:
    try:
        return json_repair.loads(text)
    except _UNUSABLE:
        return None


def _regions(text: str) -> Iterator[str]:
    """The outermost {...} of a text; the last may lack its end.

    An object inside a broken object is never offered alone: it may be material that the judge quotes.
    """
    decoder, at = json.JSONDecoder(), text.find("{")
    for _ in range(_OBJECTS):
        if at < 0:
            return
        try:
            _, end = decoder.raw_decode(text, at)
        except _UNUSABLE:
            end = _closing(text, at)
        yield text[at:end]
        at = text.find("{", end)


def _closing(text: str, start: int) -> int:
    """The place after the brace that closes the one at `start`, with every brace counted; without one, the end of the text."""
    depth = 0
    for found in _BRACE.finditer(text, start):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return found.end()
    return len(text)


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [_scrubbed(each) for each in value]
    if isinstance(value, dict):
        return {scrub(str(key)): _scrubbed(each) for key, each in value.items()}
    return value


def _problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg']}" if where else first["msg"]
