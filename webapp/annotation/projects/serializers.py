"""Projects as the API returns them."""

from dataclasses import asdict
from typing import Any

from webapp.datasets.models import DatasetVersion

from ..agreement.pseudonyms import Faces, remarked
from ..models import Answer, Assignment, Comment, Guidelines, Task
from ..queries import Progress, ProjectRow
from ..work.inbox import WaitingProject


def project(row: ProjectRow) -> dict[str, Any]:
    found = row.project
    return {
        "id": found.pk,
        "name": found.name,
        "kind": found.kind,
        "state": found.state,
        "version": version(found.version),
        "overlap": found.overlap,
        "strategy": found.strategy,
        "settings": found.settings,
        "tasks_made": found.tasks_made,
        "tasks_problem": found.tasks_problem,
        "created_at": found.created_at,
        "progress": progress(row.progress),
        "people": row.people,
        "alpha": row.alpha,
    }


def version(row: DatasetVersion) -> dict[str, Any]:
    return {"dataset_id": row.dataset_id, "dataset": row.dataset.name, "number": row.number, "digest": row.digest}


def progress(far: Progress) -> dict[str, Any]:
    return {**asdict(far), "untouched": far.untouched, "fraction": far.fraction}


def guidelines(row: Guidelines) -> dict[str, Any]:
    author = str(row.created_by) if row.created_by else None
    answers = getattr(row, "answers", 0)
    return {"number": row.number, "text": row.text, "author": author, "created_at": row.created_at, "answers": answers}


def task(row: Task) -> dict[str, Any]:
    resolution = getattr(row, "resolution", None)
    return {
        "id": row.pk,
        "example": row.example_id,
        "key": row.example.key,
        "excerpt": row.example.excerpt,
        "subject": row.subject,
        "state": state(row),
        "overlap": row.overlap,
        "taken": row.taken,
        "done": row.done,
        "gold": row.gold,
        "resolution": resolution.source if resolution else None,
        "skips": getattr(row, "skips", 0),
        "remarks": getattr(row, "remarks", 0),
    }


def state(row: Task) -> str:
    if row.overlap is None:
        return "gold"
    if row.completed_at:
        return "complete"
    return "in_work" if row.taken else "untouched"


def seat(row: Assignment, people: Faces) -> dict[str, Any]:
    given: list[Answer] = getattr(row, "given", [])
    return {
        "rater": people.pseudonym(row.user_id),
        **({"user": row.user_id, "name": str(row.user)} if people.named else {}),
        "state": row.state,
        "claimed_at": people.moment(row.claimed_at),
        "submitted_at": people.moment(row.submitted_at),
        "seconds": row.seconds or None,
        "skip_reason": row.skip_reason,
        "sent_back": row.sent_back,
        "answers": [answer(each, people) for each in given],
    }


def answer(row: Answer, people: Faces) -> dict[str, Any]:
    return {
        "id": row.pk,
        "revision": row.revision,
        "content": row.content,
        "seconds": row.seconds or None,
        "guidelines": row.guidelines.number if row.guidelines else None,
        "suggestion": row.suggestion,
        "suggested_by": row.suggested_by,
        "gold_right": row.gold_right,
        "gold_detail": row.gold_detail,
        "submitted_at": people.moment(row.submitted_at),
    }


def comment(row: Comment, people: Faces) -> dict[str, Any]:
    return {
        "id": row.pk,
        "kind": row.kind,
        "text": row.text,
        "author": people.author(row.author) if row.author else None,
        **remarked(row, people),
    }


def waiting(row: WaitingProject) -> dict[str, Any]:
    found = row.project
    named = {"project": found.pk, "name": found.name, "kind": found.kind, "state": found.state}
    counts = {name: getattr(row, name) for name in ("paused", "done", "free", "held", "sent_back", "last_at")}
    return {**named, **counts}
