"""The origin of a label: read from the rater that a preference carries.

A published label of a project is signed `annotator-3@project-1` for one person's answer, or `majority@project-1`, `consolidated@…`,
`unanimous@…` for a resolution after review. A label with any other rater came with an import.
"""

import re
from collections.abc import Iterable
from typing import Any

from trainer.contracts import Example, Preference

SIGNED = re.compile(r"(annotator-\d+|unanimous|consolidated|majority)@project-(\d+)")
IMPORTED = "imported"
RUBRIC_BY = "rubric_by"  # in `meta`: who signed the rubric that stands


def is_imported(rater: str) -> bool:
    return SIGNED.fullmatch(rater) is None


def signature_of(rater: str) -> str:
    """The signature itself, or `imported`, with the name that the import gave its rater: `imported:RATER`."""
    if not is_imported(rater):
        return rater
    return f"{IMPORTED}:{rater}" if rater else IMPORTED


def label_origins(preferences: Iterable[Preference]) -> list[str]:
    """The origins of these preferences, each named once, in their order."""
    return list(dict.fromkeys(signature_of(each.rater) for each in preferences))


def of_rubric(example: Example) -> list[str]:
    """The origin of the rubric; empty without a rubric."""
    if example.rubric is None:
        return []
    by = example.meta.get(RUBRIC_BY)
    return [by if isinstance(by, str) and not is_imported(by) else IMPORTED]


def of_reference(example: Example) -> list[str]:
    """The origin of the reference answer: projects write none, so it came with an import. Empty without a reference."""
    return [] if example.reference is None else [IMPORTED]


def of_response(origin: str) -> list[str]:
    """The origin of an answer that nobody has judged: `imported`, with the model or person that the import named."""
    return [f"{IMPORTED}:{origin}" if origin else IMPORTED]


def says_imported(labelled_by: list[str]) -> bool:
    return any(each == IMPORTED or each.startswith(f"{IMPORTED}:") for each in labelled_by)


def without_imported(example: Example) -> Example:
    """The example with the preferences and the rubric that people of projects gave, and no others; without a reference."""
    changed: dict[str, Any] = {}
    kept = tuple(each for each in example.preferences if not is_imported(each.rater))
    if len(kept) < len(example.preferences):
        changed["preferences"] = kept
    if IMPORTED in of_rubric(example):
        changed["rubric"] = None
    if example.reference is not None:
        changed["reference"] = None
    return example.model_copy(update=changed) if changed else example
