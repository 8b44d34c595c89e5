"""What an annotator sees of a task: texts under letters. Nothing here names a response, a model, a label or a rater.

`content` is an example's canonical JSON as a dict. It was validated when it was stored, and this runs for each request,
so plain dicts are built in the shape of `kinds.TaskView`.

A suggestion is a model's view of the task. A judge has been asked for it (`Task.suggestion`), or the example brings it in
`meta.suggestions`, a list of `{"subject": {...}, "content": {...}}` in the subject's frame; a pair without one takes the
strength that came with it (`judge_strength`).
"""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from string import ascii_uppercase
from typing import Any

from . import kinds
from .models import Assignment

Content = Mapping[str, Any]
DATASET = "the dataset"  # whose view it is where the example brought it
JUDGE = "judge"  # preferences by the rater "judge" or "judge:NAME" are a model's, not a person's


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
    """The task in the shape of `kinds.TaskView`. `done`: the person has an answer that stands, so that what is shown
    only after one (responses and reference of an authored rubric, a late suggestion) is part of it. `offered`: see there."""
    suggested = settings.suggestions == "before" or (settings.suggestions == "after" and done)
    return {
        "kind": kind,
        "prompt": [{"role": message["role"], "content": message["content"]} for message in content["prompt"]],
        "responses": responses(kind, subject, order, content, done=done),
        "criteria": [_criterion(one) for one in _criteria(kind, subject, content)],
        "rationale": rationale(subject, content) if kind == "rationale" else None,
        "reference": content.get("reference") if kind != "rubric" or done else None,
        "suggestion": suggestion(kind, subject, order, content, offered) if suggested else None,
    }


def responses(
    kind: str, subject: Content, order: Sequence[int], content: Content, *, done: bool
) -> list[dict[str, str]]:
    """[{letter, text}] in the order this person sees them; of a rubric's author hidden until the rubric stands, then
    in an order drawn from their texts: the dataset's own often tells which one is preferred."""
    known = {one["id"]: one["text"] for one in content.get("responses", ())}
    if kind == "rubric":
        texts = sorted(known.values(), key=_shuffle)[: kinds.MAX_RESPONSES] if done else []
        return [{"letter": letter, "text": text} for letter, text in zip(ascii_uppercase, texts, strict=False)]
    named = kinds.letters(subject, order)
    return [{"letter": letter, "text": known[side]} for letter, side in named.items()]


def _shuffle(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def criteria(content: Content) -> list[dict[str, Any]]:
    rubric = content.get("rubric") or {}
    return list(rubric.get("criteria", ()))


def arms(content: Content) -> dict[str, list[dict[str, Any]]]:
    """The rubrics of a study by the name of their arm, from `meta.study.arms`; {} where the example is in none."""
    study = content.get("meta", {}).get("study")
    found = study.get("arms") if isinstance(study, dict) else None
    return found if isinstance(found, dict) else {}


def _criteria(kind: str, subject: Content, content: Content) -> list[dict[str, Any]]:
    """The rubric that this task is judged by. A study's is told apart from the other arm's by nothing but its words."""
    if kind == "grading":
        return criteria(content)
    given = arms(content).get(subject.get("arm", ""), ()) if kind == "pairwise" else ()
    return [
        {"id": str(number), "text": one["text"], "points": 1 if one["points"] > 0 else -1}
        for number, one in enumerate(given, 1)
    ]


def _criterion(stored: dict[str, Any]) -> dict[str, Any]:
    """With its defaults, which the canonical text leaves out."""
    return {"kind": "principle", "importance": "important", "tags": [], "verifier": None, **stored}


def rationale(subject: Content, content: Content) -> str | None:
    """The text to cut into reasons: `meta.rationale` (one for the example, or a list with one per preference), else
    the reasons of the subject's preference, one a line. None: the person writes it."""
    if "preference" not in subject:
        return None
    index = subject["preference"]
    given = content.get("meta", {}).get("rationale")
    if isinstance(given, list) and index is not None and index < len(given):
        given = given[index]
    if isinstance(given, str) and given.strip():
        return given
    preferences = content.get("preferences", ())
    if index is None or index >= len(preferences):
        return None
    return "\n".join(reason["text"] for reason in preferences[index].get("reasons", ())) or None


def offered(seat: Assignment, settings: kinds.Settings) -> Content | None:
    """The judge's view of this seat's task, if it was there when this person would first have been shown it: one that came
    later is not slipped in, so that what is recorded is what was seen."""
    given: Content | None = seat.task.suggestion
    if given is None:
        return None
    until = seat.claimed_at if settings.suggestions == "before" else seat.submitted_at
    return given if until is None or datetime.fromisoformat(given["at"]) <= until else None


def suggestion(
    kind: str, subject: Content, order: Sequence[int], content: Content, offered: Content | None = None
) -> dict[str, Any] | None:
    """A model's answer to this task in the shown frame: the judge's, else the example's; None where neither has one that
    fits."""
    if offered is not None:
        return kinds.to_shown(kind, offered["content"], subject, order)
    for one in _brought(subject, content):
        try:
            kinds.ANSWERS[kind].model_validate(one)
            return kinds.to_shown(kind, one, subject, order)
        except (ValueError, KeyError, TypeError):  # imported data: broken, or about another kind of task
            continue
    strength = judge_strength(subject, content) if kind == "pairwise" else None
    if strength is None:
        return None
    return kinds.to_shown(kind, {"verdict": "compared", "strength": round(strength)}, subject, order)


def _brought(subject: Content, content: Content) -> list[dict[str, Any]]:
    """What the example says in `meta.suggestions` of this subject; the same response may be graded and rated."""
    given = content.get("meta", {}).get("suggestions")
    listed = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    found = [one.get("content") for one in listed if one.get("subject") == subject]
    return [one for one in found if isinstance(one, dict)]


def judge_strength(subject: Content, content: Content) -> float | None:
    """Mean strength (-3..3, in the subject's frame) that judges gave this pair. They are found among the example's
    preferences by their rater, and in `meta.judge`: a list of {"a", "b", "strength"}."""
    given = content.get("meta", {}).get("judge")
    listed = [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []
    judged = [one for one in content.get("preferences", ()) if is_judge(one)] + listed
    return mean_strength(subject, judged)


def human_strength(subject: Content, content: Content) -> float | None:
    """Mean strength that people gave this pair."""
    found = human_strengths(subject, content)
    return sum(found) / len(found) if found else None


def human_strengths(subject: Content, content: Content) -> list[float]:
    return strengths(subject, [one for one in content.get("preferences", ()) if not is_judge(one)])


def is_judge(preference: Content) -> bool:
    rater = str(preference.get("rater", ""))
    return rater == JUDGE or rater.startswith(f"{JUDGE}:")


def mean_strength(subject: Content, preferences: Sequence[Content]) -> float | None:
    found = strengths(subject, preferences)
    return sum(found) / len(found) if found else None


def strengths(subject: Content, preferences: Sequence[Content]) -> list[float]:
    """Of each preference about the subject's two responses, turned where it names them the other way round."""
    a, b = subject.get("a"), subject.get("b")
    found = []
    for one in preferences:
        strength = one.get("strength")
        if isinstance(strength, int | float) and (one.get("a"), one.get("b")) in ((a, b), (b, a)):
            found.append(float(strength if one.get("a") == a else -strength))
    return found
