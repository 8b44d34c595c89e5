"""The answers of people about a run, as JSON."""

from typing import Any

from ..models import Run
from . import reason_matches
from .human_grades import DrawnResponse, JudgeAgreement


def people(found: JudgeAgreement | None) -> dict[str, Any]:
    """The judge's agreement with people as the API returns it. For a run that asks nobody, `share` is 0 and the rest is empty."""
    names = ("share", "drawn", "waiting", "left_out", "responses", "decided", "agreeing", "undecided")
    project = found.project if found else None
    return {name: getattr(found, name, 0) for name in names} | {
        "value": found.value if found else None,
        "low": found.low if found else None,
        "high": found.high if found else None,
        "project": {"id": project.pk, "name": project.name} if project else None,
    }


def graded(case: DrawnResponse) -> dict[str, Any]:
    """A response that people grade as well, with both answers."""
    names = ("id", "step", "phase", "group", "index", "state", "problem")
    criteria = [
        {name: getattr(each, name) for name in ("id", "text", "judge", "people", "met", "not_met", "agree")}
        for each in case.criteria
    ]
    return {name: getattr(case.row, name) for name in names} | {
        "task": case.row.task_id,
        "example": case.example,
        "response": case.response,
        "criteria": criteria,
    }


def reasons(run: Run) -> dict[str, Any]:
    """The agreement of its matchers with people, and the judgement that waits, blind to what was found."""
    waiting = reason_matches.waiting(run)
    shown = waiting and {
        "judgement": waiting.address,
        "question": waiting.question,
        "human": waiting.human,
        "model": waiting.model,
    }
    items = [
        {"matcher": each.matcher, "judgements": each.judgements}
        | {name: getattr(each, name).json() for name in ("agree", "recall", "precision")}
        for each in reason_matches.agreements(run)
    ]
    return {"items": items, "waiting": shown}
