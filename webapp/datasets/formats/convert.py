"""Converts a row to an example. Every failure becomes one problem that names the field."""

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from trainer.contracts import Example, Rubric
from trainer.verifiers import VerifierError, check_spec
from webapp.core.forms.error_messages import error_text
from webapp.files.records import BadRow, Row, RowProblem

from ..bounds import MAX_LABEL
from . import plain_pairs

Mapping = dict[str, str]  # our field -> column of the file
MappingOf = Callable[[Row], Mapping]  # a row of one file -> the mapping by which it is read
Convert = Callable[[Row, Mapping], dict[str, Any]]


def example(label: str, convert: Convert, line: int, row: Row, mapping: Mapping) -> Example | RowProblem:
    """The row as an example. It never raises: an error in the row is returned as a problem."""
    try:
        data = convert(row, mapping)
        found = plain_pairs.pair(data) or Example.model_validate(data)
        _check_labels(found)
        if found.rubric:
            _check_verifiers(found.rubric)
    except BadRow as bad:
        return RowProblem(line, bad.field, bad.reason, doubts_all=bad.doubts_all)
    except ValidationError as error:
        return _first(line, error)
    except (TypeError, ValueError, AttributeError, KeyError, IndexError, RecursionError, ArithmeticError) as error:
        # a row of a shape that no converter knows must not end the import of a million good ones
        return RowProblem(line, "", f"has a shape that {label!r} does not know: {error}")
    return found


def _first(line: int, error: ValidationError) -> RowProblem:
    errors = error.errors(include_url=False)
    first = errors[0]
    field = ".".join(str(part) for part in first["loc"])
    reason = "unknown field" if first["type"] == "extra_forbidden" else error_text(first)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return RowProblem(line, field, reason + more)


def _check_labels(found: Example) -> None:
    for name, value in (("key", found.key), ("group", found.group), ("domain", found.domain), ("source", found.source)):
        if len(value) > MAX_LABEL:
            raise BadRow(name, f"is longer than {MAX_LABEL} characters")
        _no_nul(value, name)
    for place, response in enumerate(found.responses):
        _no_nul(response.id, f"responses.{place}.id")
    for place, preference in enumerate(found.preferences):
        _no_nul(preference.rater, f"preferences.{place}.rater")
    for place, criterion in enumerate(found.rubric.criteria if found.rubric else ()):
        _no_nul(criterion.id, f"rubric.criteria.{place}.id")
        _no_nul(criterion.text, f"rubric.criteria.{place}.text")


def _no_nul(text: str, field: str) -> None:
    """Raises BadRow for a NUL, which Postgres refuses in the tables that name responses, criteria and raters."""
    if "\0" in text:
        raise BadRow(field, "holds a NUL character")


def _check_verifiers(rubric: Rubric) -> None:
    for index, criterion in enumerate(rubric.criteria):
        if criterion.verifier is None:
            continue
        try:
            check_spec(criterion.verifier)
        except VerifierError as error:
            raise BadRow(f"rubric.criteria.{index}.verifier.{error.field}", error.message) from error


def with_ids(rubric: Any) -> Any:
    """The rubric, whose criteria without an id are called c1, c2, ... Malformed parts are left to validation, which names them."""
    if not isinstance(rubric, dict) or not isinstance(rubric.get("criteria"), list | tuple):
        return rubric
    criteria = [
        {"id": f"c{number}", **criterion} if isinstance(criterion, dict) else criterion
        for number, criterion in enumerate(rubric["criteria"], start=1)
    ]
    return {**rubric, "criteria": criteria}
