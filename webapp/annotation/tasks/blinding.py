"""The part of a task that an annotator sees: texts under letters. Nothing here names a response, a model, a label or a rater.

`content` is an example's canonical JSON as a dict. It was validated when it was stored, and this runs for each request, so plain dicts are
built in the shape of `kinds.TaskView`.

A suggestion is a model's view of the task. A judge was asked for it (`Task.suggestion`), or the example has it in `meta.suggestions`, a
list of `{"subject": {...}, "content": {...}}` in the subject's frame. A pair without a suggestion takes the strength of a judge in the data
(`example_labels.judge_strength`).
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from string import ascii_uppercase
from typing import Any

from .. import kinds
from ..models import Assignment

Content = Mapping[str, Any]
DATASET = "the dataset"  # the source of the view if the example brought it


def view(
    kind: str,
    settings: kinds.Settings,
    subject: Content,
    order: Sequence[int],
    content: Content,
    *,
    done: bool,
    offered: Content | None = None,
) -> dict[str, Any]:
    """The task in the shape of `kinds.TaskView`. `done`: the person has an answer that stands, so the view also has what is shown only
    after an answer (responses and reference of an authored rubric, a late suggestion). `offered`: see there."""
    suggested = settings.suggestions == "before" or (settings.suggestions == "after" and done)
    asked = kinds.get_kind(kind)
    return {
        "kind": kind,
        "prompt": [{"role": message["role"], "content": message["content"]} for message in content["prompt"]],
        "responses": responses(kind, subject, order, content, done=done),
        "criteria": [_criterion(one) for one in asked.criteria(subject, content)],
        "rationale": asked.rationale(subject, content),
        "reference": content.get("reference") if done or not asked.responses_after else None,
        "material": asked.material(subject, content),
        "suggestion": suggestion(kind, subject, order, content, offered) if suggested else None,
    }


def responses(
    kind: str, subject: Content, order: Sequence[int], content: Content, *, done: bool
) -> list[dict[str, str]]:
    """[{letter, text}] in the order in which this person sees them. A rubric's author sees them only once the rubric stands, in an order
    drawn from their texts, because the dataset's own order often tells which one is preferred."""
    known = {one["id"]: one["text"] for one in content.get("responses", ())}
    if kinds.get_kind(kind).responses_after:
        texts = sorted(known.values(), key=_shuffle)[: kinds.MAX_RESPONSES] if done else []
        return [{"letter": letter, "text": text} for letter, text in zip(ascii_uppercase, texts, strict=False)]
    named = kinds.letters(subject, order)
    return [{"letter": letter, "text": known[side]} for letter, side in named.items()]


def _shuffle(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def _criterion(stored: dict[str, Any]) -> dict[str, Any]:
    """The criterion with its defaults, which the canonical text leaves out."""
    return {"kind": "principle", "importance": "important", "tags": [], "verifier": None, **stored}


def offered(seat: Assignment, settings: kinds.Settings) -> Content | None:
    """The judge's view of this seat's task, if it existed when this person would first have been shown it. A later one is not shown, so
    that the record says what the person saw."""
    given: Content | None = seat.task.suggestion
    if given is None:
        return None
    until = seat.claimed_at if settings.suggestions == "before" else seat.submitted_at
    return given if until is None or datetime.fromisoformat(given["at"]) <= until else None


def suggestion(
    kind: str, subject: Content, order: Sequence[int], content: Content, offered: Content | None = None
) -> dict[str, Any] | None:
    """A model's answer to this task in the shown frame: the judge's, else the example's; None if neither has one that fits."""
    if offered is not None:
        return kinds.to_shown(kind, offered["content"], subject, order)
    asked = kinds.get_kind(kind)
    for one in _brought(subject, content):
        try:
            asked.answer.model_validate(one)
            return kinds.to_shown(kind, one, subject, order)
        except (ValueError, KeyError, TypeError):  # imported data: broken, or about another kind of task
            continue
    made = asked.view_of_example(subject, content)
    return None if made is None else kinds.to_shown(kind, made, subject, order)


def _brought(subject: Content, content: Content) -> list[dict[str, Any]]:
    """The suggestions for this subject in `meta.suggestions`; the same response may be graded and rated."""
    given = content.get("meta", {}).get("suggestions")
    listed = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    found = [one.get("content") for one in listed if one.get("subject") == subject]
    return [one for one in found if isinstance(one, dict)]
