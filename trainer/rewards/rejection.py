"""Filters of rejection sampling that use rewards: the form of a text, and the verdicts of verifiers. It needs no torch."""

from collections.abc import Iterable, Iterator
from typing import Any

from trainer.contracts import VerifierSpec
from trainer.contracts.rollout_examples import ALWAYS, LEFT_OUT, Fault, WantedResponses

from ..verifiers import VerifierError, verify
from .kinds.texts import tags_fault


def problems(wanted: WantedResponses) -> Iterator[tuple[str, str]]:
    """The filters that cannot work: (field, reason)."""
    if wanted.phase not in ("train", "eval"):
        yield "phase", "must be train or eval"
    if wanted.last is not None and wanted.last < wanted.first:
        yield "last", f"must be {wanted.first} or more"
    if wanted.least is not None and wanted.least != wanted.least:
        yield "least", "must be a number, or empty"
    if wanted.correct is not None and not 0 <= wanted.correct <= 1:
        yield "correct", "must be a share from 0 to 1, or empty"
    if wanted.form not in ("", "tags", "json", "pattern"):
        yield "form", "must be tags, json or pattern, or empty"
    if wanted.form in ("tags", "pattern") and not wanted.form_of.strip():
        yield "form_of", "name the tags" if wanted.form == "tags" else "write the expression that fits a whole response"
    if wanted.form == "pattern" and wanted.form_of:
        try:
            verify(_pattern(wanted.form_of), "")
        except VerifierError as error:
            yield "form_of", error.message
    for step in wanted.without:
        if step not in LEFT_OUT or step in ALWAYS:
            yield (
                "without",
                f"{step!r} is not a filter that can be left out; these are {', '.join(LEFT_OUT.keys() - set(ALWAYS))}",
            )


def form_fault(wanted: WantedResponses) -> Fault | None:
    """The function that checks the form of a text; None if no form is asked for. A text that cannot be checked does not have the form."""
    if wanted.form == "tags":
        tags = wanted.form_of.split()
        return lambda text: tags_fault(text, tags)
    if not wanted.form:
        return None
    spec = _pattern(wanted.form_of)
    if wanted.form == "json":
        spec = VerifierSpec(name="valid_json", args={"required": wanted.form_of.split()})

    def fault(text: str) -> str:
        found = verify(spec, text)
        return "" if found.met else found.note or "it has another form"

    return fault


def share_right(criteria: Iterable[tuple[float, Any, Any]]) -> float | None:
    """The share of the criteria, given as (points, met, source), that verifiers decided as the rubric wishes: met, or not met if the points
    are negative. None if verifiers decided none."""
    decided = [met == (points > 0) for points, met, source in criteria if source == "verifier" and met is not None]
    return sum(decided) / len(decided) if decided else None


def _pattern(expression: str) -> VerifierSpec:
    return VerifierSpec(name="regex", args={"pattern": expression, "where": "whole", "dot_all": True})
