"""Graders of OpenAI's evals and fine-tuning as criteria of a rubric, and the parts that no criterion can hold.

No part of a file is ever run: a grader with a program is named and left out, and templates are filled by looking values up.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainer.contracts import VerifierSpec
from trainer.verifiers import VerifierError, check_spec
from webapp.files.records import Row

KINDS = frozenset({"string_check", "text_similarity", "score_model", "label_model", "python", "multi", "endpoint"})
MOST, DEEPEST = 200, 3  # graders of an eval; of multis within multis
PLACE = re.compile(r"\{\{\s*([\w.\[\]-]{1,200})\s*\}\}")
PART = re.compile(r"[^.\[\]]+")
RESPONSE = frozenset({"sample.output_text", "sample.output_json", "sample.choices[0].message.content"})
SHOWN = "[the response]"
PLAIN = re.compile(r"[^A-Za-z0-9 ]")


class Unfilled(Exception):
    """A template names a value that the item does not have."""


@dataclass
class GradedItem:
    """The result of graders for one item: criteria, the text that they compare with, and what was left out."""

    criteria: list[Row] = field(default_factory=list)
    reference: str | None = None
    unsaid: list[str] = field(default_factory=list)

    def add(self, grader: Row, text: str, verifier: Row | None = None, points: float = 1.0) -> None:
        kind = str(grader.get("type"))
        row: Row = {"id": f"c{len(self.criteria) + 1}", "text": text, "points": points, "tags": [kind]}
        if verifier is not None:
            row |= {"kind": "hard", "verifier": verifier}
        self.criteria.append(row)


def found(row: Row) -> list[Row]:
    """The graders that an object defines: an eval, a list of them, a fine-tuning job, or one grader."""
    for path in (("testing_criteria",), ("graders",), ("grader",), ("method", "reinforcement", "grader")):
        value: Any = row
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, dict):
            value = list(value.values()) if path == ("graders",) and "type" not in value else [value]
        if isinstance(value, list) and value and all(isinstance(each, dict) and "type" in each for each in value):
            return value[:MOST]
    return [row] if row.get("type") in KINDS and "name" in row else []


def graded(graders: list[Row], item: Row) -> GradedItem:
    """The result of the graders for one item. It never raises: unusable parts are in `unsaid`."""
    result = GradedItem()
    for grader in graders:
        _take(grader, item, result, 1.0, 0)
    if result.criteria and not any(each["points"] > 0 for each in result.criteria):
        result.unsaid.append("graders that only take points away: a rubric needs one that gives some")
        result.criteria = []
    return result


def _take(grader: Row, item: Row, result: GradedItem, points: float, depth: int) -> None:
    taker = _TAKERS.get(str(grader.get("type")))
    if taker is None or depth > DEEPEST:
        result.unsaid.append(f"{_name(grader)}: a grader of a kind that is not known here")
        return
    try:
        taker(grader, item, result, points, depth)
    except Unfilled as missing:
        result.unsaid.append(f"{_name(grader)}: the item has no {missing}")


def _name(grader: Row) -> str:
    return f"{grader.get('type')} '{str(grader.get('name') or '')[:80]}'"


def _string_check(grader: Row, item: Row, result: GradedItem, points: float, depth: int) -> None:
    given, wanted, operation = grader.get("input"), grader.get("reference"), grader.get("operation")
    if _is_response(wanted) and operation in ("eq", "ne"):  # the order of the two texts does not matter
        given, wanted = wanted, given
    if not _is_response(given):
        result.unsaid.append(f"{_name(grader)}: it does not compare the whole response")
        return
    text = filled(wanted, item)
    made = _check(str(operation), text)
    if made is None:
        result.unsaid.append(f"{_name(grader)}: its operation {operation!r} or its text has no verifier")
        return
    says, verifier = made
    if operation == "eq" and result.reference is None:
        result.reference = text
    result.add(grader, says, verifier, points)


def _check(operation: str, text: str) -> tuple[str, Row] | None:
    """The criterion in words, and the verifier that decides it; None if there is none. White space around the texts of an
    equality counts for nothing, as in all verifiers of patterns."""
    if operation in ("eq", "ne"):
        escaped = PLAIN.sub(lambda found: _escaped(found[0]), text.strip())
        says = "Is exactly" if operation == "eq" else "Is anything but"
        expect = "match" if operation == "eq" else "no_match"
        spec: Row = {"name": "regex", "args": {"pattern": escaped, "where": "whole", "expect": expect}}
    elif operation in ("like", "ilike"):
        says = "Contains"
        spec = {"name": "must_contain", "args": {"texts": [text], "ignore_case": operation == "ilike"}}
    else:
        return None
    try:
        check_spec(VerifierSpec.model_validate(spec))
    except VerifierError:
        return None
    case = ", in capitals or small letters" if operation == "ilike" else ""
    return f"{says}: {text}{case}", spec


def _escaped(character: str) -> str:
    if character in "{}":  # as a number, because verifiers read braces as repeats, which they limit
        return f"\\x{ord(character):02x}"
    return f"\\{character}" if character.isascii() and character.isprintable() else character


def _text_similarity(grader: Row, item: Row, result: GradedItem, points: float, depth: int) -> None:
    if result.reference is None and _is_response(grader.get("input")):
        result.reference = filled(grader.get("reference"), item)
    result.unsaid.append(
        f"{_name(grader)}: no verifier measures {grader.get('evaluation_metric')}; its text is the reference"
    )


def _score_model(grader: Row, item: Row, result: GradedItem, points: float, depth: int) -> None:
    result.add(grader, _asked(grader, item), None, points)
    low, high = _range(grader.get("range"))
    passing = grader.get("pass_threshold")
    passes = f", passing at {passing}" if passing is not None else ""
    result.unsaid.append(
        f"{_name(grader)}: its score from {low} to {high}{passes} is met or not met here, and its model is not kept"
    )


def _range(value: Any) -> tuple[Any, Any]:
    return (value[0], value[1]) if isinstance(value, list) and len(value) == 2 else (0, 1)


def _label_model(grader: Row, item: Row, result: GradedItem, points: float, depth: int) -> None:
    passing = ", ".join(map(str, grader.get("passing_labels") or []))
    labels = ", ".join(map(str, grader.get("labels") or []))
    if not passing:
        result.unsaid.append(f"{_name(grader)}: no label passes")
        return
    text = f"{_asked(grader, item)}\n\nMet where the label, one of {labels}, is {passing}."
    result.add(grader, text, None, points)
    result.unsaid.append(f"{_name(grader)}: its model is not kept")


def _asked(grader: Row, item: Row) -> str:
    """The messages of a model grader as one text."""
    messages = grader.get("input")
    if not isinstance(messages, list):
        messages = [{"content": messages}]
    said = [filled(content_text(each.get("content")), item) for each in messages if isinstance(each, dict)]
    text = "\n\n".join(part.strip() for part in said if part.strip())
    if not text:
        raise Unfilled("text that its model would be asked")
    return text


def _python(grader: Row, item: Row, result: GradedItem, points: float, depth: int) -> None:
    result.unsaid.append(f"{_name(grader)}: a program, which is never run here")


def _multi(grader: Row, item: Row, result: GradedItem, points: float, depth: int) -> None:
    parts = grader.get("graders")
    if not isinstance(parts, dict) or not parts or not all(isinstance(each, dict) for each in parts.values()):
        result.unsaid.append(f"{_name(grader)}: it holds no graders")
        return
    weights = weighted(str(grader.get("calculate_output") or ""), frozenset(map(str, parts)))
    if weights is None:
        result.unsaid.append(
            f"{_name(grader)}: its formula is not a weighted sum, so each of its parts counts the same"
        )
    for name, part in list(parts.items())[:MOST]:
        weight = 1.0 if weights is None else weights.get(str(name), 0.0)
        if weight:
            _take({"name": name} | part, item, result, points * weight, depth + 1)


_TAKERS = {
    "string_check": _string_check,
    "text_similarity": _text_similarity,
    "score_model": _score_model,
    "label_model": _label_model,
    "python": _python,
    "multi": _multi,
}


def weighted(formula: str, names: frozenset[str]) -> dict[str, float] | None:
    """`0.5 * a + 0.5 * b` as {"a": 0.5, "b": 0.5}: read, never run. None for any other formula."""
    if len(formula) > 1_000:
        return None
    try:
        found: dict[str, float] = {}
        for name, weight in _terms(ast.parse(formula.strip(), mode="eval").body, 1.0):
            if name not in names:
                return None
            found[name] = found.get(name, 0.0) + weight
    except (SyntaxError, ValueError, RecursionError, MemoryError, ZeroDivisionError):
        return None
    return found or None


def _terms(node: ast.expr, factor: float) -> Iterator[tuple[str, float]]:
    """The terms of a sum. Raises ValueError if it is not a sum of names with factors."""
    match node:
        case ast.Name(id=name):
            yield name, factor
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            yield from _terms(inner, -factor)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            yield from _terms(left, factor)
            yield from _terms(right, -factor if isinstance(op, ast.Sub) else factor)
        case ast.BinOp(left=ast.Constant(value=int() | float() as number), op=ast.Mult(), right=inner):
            yield from _terms(inner, factor * float(number))
        case ast.BinOp(left=inner, op=ast.Mult(), right=ast.Constant(value=int() | float() as number)):
            yield from _terms(inner, factor * float(number))
        case ast.BinOp(left=inner, op=ast.Div(), right=ast.Constant(value=int() | float() as number)):
            yield from _terms(inner, factor / float(number))
        case _:
            raise ValueError("no weighted sum")


def _is_response(template: Any) -> bool:
    found = PLACE.fullmatch(template.strip()) if isinstance(template, str) else None
    return found is not None and found[1] in RESPONSE


def filled(template: Any, item: Row) -> str:
    """The template with the item's values in their places. Raises Unfilled if one is missing."""

    def value(place: re.Match[str]) -> str:
        path = place[1]
        if path in RESPONSE:
            return SHOWN
        found: Any = {"item": item}
        for part in PART.findall(path):
            found = _below(found, part)
        if found is None:
            raise Unfilled(path)
        return found if isinstance(found, str) else str(found)

    return PLACE.sub(value, template if isinstance(template, str) else "")


def _below(value: Any, part: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(part)
    if isinstance(value, list) and part.isdigit() and int(part) < len(value):
        return value[int(part)]
    return None


def content_text(content: Any) -> str:
    """The text of a message: for a message in parts, the parts that are text."""
    if isinstance(content, dict):
        content = [content]
    if isinstance(content, list):
        texts = [
            each if isinstance(each, str) else each.get("text") for each in content if isinstance(each, str | dict)
        ]
        return "\n".join(each for each in texts if isinstance(each, str))
    return content if isinstance(content, str) else ""
