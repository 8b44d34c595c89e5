"""One task as the reviewer's page draws it, as JSON. Responses have letters, in the subject's own order."""

from string import ascii_uppercase
from typing import Any

from webapp.annotation import kinds
from webapp.annotation.kinds.table import AnswerRow
from webapp.annotation.models import Answer, Resolution
from webapp.annotation.review.consolidation import agreed

from ..agreement.pseudonyms import Faces, comment, day
from .queries import Opened, comments, neighbour_tasks


def task(opened: Opened, people: Faces) -> dict[str, Any]:
    row = opened.task
    resolution = Resolution.objects.filter(task=row).select_related("decided_by").first()
    before, following = neighbour_tasks(row)
    return {
        "task": row.pk,
        "project": row.project_id,
        "kind": opened.kind,
        "heading": kinds.get_kind(opened.kind).heading,
        "key": row.example.key,
        "domain": row.example.domain,
        "prompt": opened.example["prompt"],
        "reference": opened.example.get("reference"),
        "rationale": kinds.get_kind(opened.kind).rationale(row.subject, opened.example),
        "responses": _responses(opened),
        "people": [_person(each, people, opened.settings.fast_seconds) for each in _by_number(opened, people)],
        "rows": [_row(each, len(opened.answers)) for each in opened.rows],
        "matcher": opened.matcher,
        "groups": opened.groups,
        "complete": row.overlap is not None and len(opened.answers) >= row.overlap,
        "resolution": resolution and _resolution(resolution, opened),
        "comments": [_comment(comment(each, people)) for each in comments(row.project, task=row)],
        "previous": before,
        "next": following,
    }


def _responses(opened: Opened) -> list[dict[str, str]]:
    known = {each["id"]: each["text"] for each in opened.example.get("responses", ())}
    sides = kinds.subject_sides(opened.task.subject)
    if kinds.get_kind(opened.kind).responses_after:
        sides = list(known)[: kinds.MAX_RESPONSES]
    return [
        {"letter": letter, "id": side, "text": known.get(side, "")}
        for letter, side in zip(ascii_uppercase, sides, strict=False)
    ]


def _by_number(opened: Opened, people: Faces) -> list[Answer]:
    """The answers by the raters' numbers, so that a key means the same person on every task."""
    return sorted(opened.answers, key=lambda answer: people.number(answer.assignment.user_id))


def _person(answer: Answer, people: Faces, fast: float) -> dict[str, Any]:
    seat = answer.assignment
    return {
        "answer": answer.pk,
        "assignment": seat.pk,
        "label": people.label(seat.user_id),
        "seconds": answer.seconds or None,
        "fast": 0 < answer.seconds < fast,
        "revision": answer.revision,
        "guidelines": answer.guidelines.number if answer.guidelines else None,
        "suggestion": answer.suggestion,
        "submitted_at": day(answer.submitted_at).isoformat() if not people.named else answer.submitted_at.isoformat(),
        "note": answer.content.get("note", ""),
        "source": answer.content.get("source", ""),
    }


def _row(row: AnswerRow, people: int) -> dict[str, Any]:
    return {
        "id": row.id,
        "type": row.type,
        "label": row.label,
        "options": [{"value": value, "label": label} for value, label in row.options.items()],
        "free": row.free,
        "given": {str(answer): value for answer, value in row.given.items()},
        "items": [{"answer": answer, "index": index, "item": item} for answer, index, item in row.items],
        "most": row.most() if row.type == "choice" else None,
        "support": len(row.given) if row.type == "choice" else len(row.items),
        "agreed": agreed(row, people),
        "drop": row.drop,
    }


def _resolution(row: Resolution, opened: Opened) -> dict[str, Any]:
    """`decisions` by row, if the resolution was made on this page; `stale` if answers have come or gone since."""
    used = row.trace[0].get("answers", []) if row.trace else []
    decisions = {
        part["row"]: {name: part[name] for name in ("action", "answer", "value", "item") if name in part}
        for part in row.trace[1:]
        if "row" in part
    }
    return {
        "source": row.source,
        "content": row.content,
        "by": str(row.decided_by) if row.decided_by else None,
        "at": row.decided_at.isoformat(),
        "why": row.trace[1].get("why", "") if len(row.trace) > 1 else "",
        "stale": sorted(used) != sorted(each.pk for each in opened.answers),
        "decisions": decisions,
        "can_undo": row.by_a_person,
    }


def _comment(told: dict[str, Any]) -> dict[str, Any]:
    """The remark as JSON, which has no type for times."""
    told["settled"] = told.pop("resolved_at") is not None
    return {**told, "created_at": told["created_at"].isoformat()}
