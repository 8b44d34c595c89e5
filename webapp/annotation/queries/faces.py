"""What the agreement page shows, drawn from the stored report: people under pseudonyms, matrices with tints."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from webapp.accounts.models import User
from webapp.annotation.models import AgreementReport, Comment, Project

from .raters import Rater, raters

GRID_UP_TO = 16  # people; more are a list


def day(at: datetime) -> datetime:
    """Its first moment."""
    return timezone.localtime(at).replace(hour=0, minute=0, second=0, microsecond=0)


@dataclass(frozen=True)
class Faces:
    """How people are shown: under pseudonyms, or under their names where the reader `access.may_name` them and wants to."""

    by_user: Mapping[int, Rater]
    named: bool = False

    def label(self, user: int) -> str:
        rater = self.by_user.get(user)
        if rater is None:
            return "Somebody who left"
        return rater.name if self.named else rater.label

    def pseudonym(self, user: int) -> str:
        rater = self.by_user.get(user)
        return rater.pseudonym if rater else "annotator-0"

    def moment(self, at: datetime | None) -> datetime | None:
        """When somebody did something, as exact as they are named: of a pseudonym the day. Who knows when a colleague sat at
        work would know the colleague by the minute."""
        return at if self.named or at is None else day(at)

    def number(self, user: int) -> int:
        rater = self.by_user.get(user)
        return rater.number if rater else 0

    def author(self, user: User | None) -> str:
        """Of a remark: whoever answers in the project under a pseudonym, others by their names."""
        if user is None:
            return "Somebody who left"
        return self.label(user.pk) if user.pk in self.by_user else str(user)

    def user(self, number: int) -> int | None:
        return next((rater.user for rater in self.by_user.values() if rater.number == number), None)


def faces(project: Project, named: bool = False) -> Faces:
    return Faces(raters(project), named)


def comment(row: Comment, people: Faces) -> dict[str, Any]:
    """A remark as the API and the reviewer's pages tell it."""
    return {
        "id": row.pk,
        "task_id": row.task_id,
        "kind": row.kind,
        "text": row.text,
        "by": people.author(row.author),
        **remarked(row, people),
    }


def remarked(row: Comment, people: Faces) -> dict[str, datetime | None]:
    """When a remark was made and dealt with; that of somebody who answers in the project as exact as they are named."""
    hidden = row.author_id in people.by_user
    times = {"created_at": row.created_at, "resolved_at": row.resolved_at}
    return {name: people.moment(at) if hidden else at for name, at in times.items()}


def published(report: AgreementReport, people: Faces, newest: int) -> dict[str, Any]:
    """The report as the API tells it: raters by their pseudonyms, and whether newer answers wait to be counted."""
    body = report.body and {
        **report.body,
        "fields": [_renamed(field, people) for field in report.body["fields"]],
        "items": report.body["items"] and _renamed(report.body["items"], people),
    }
    fresh = report.through == newest and body is not None
    return {
        "state": "ready" if fresh else "computing",
        "computed_at": report.computed_at,
        "started_at": report.started_at,
        "report": body,
    }


def _renamed(part: dict[str, Any], people: Faces) -> dict[str, Any]:
    pairs = [{**pair, "raters": [people.pseudonym(user) for user in pair["raters"]]} for pair in part["pairs"]]
    return {**part, "pairs": pairs}


def grid(pairs: list[dict[str, Any]], people: Faces, measure: str = "cohen") -> dict[str, Any] | None:
    """Rows and columns of everybody with everybody; None for too many people to see at once."""
    users = sorted({user for pair in pairs for user in pair["raters"]}, key=people.number)
    if not 2 <= len(users) <= GRID_UP_TO:
        return None
    found = {frozenset(pair["raters"]): pair for pair in pairs}
    rows = []
    for place, one in enumerate(users[1:], start=1):
        cells = [_cell(found.get(frozenset((one, two))), people, measure) for two in users[:place]]
        rows.append({"label": people.label(one), "cells": cells, "rest": range(len(users) - 1 - place)})
    return {"columns": [people.label(user) for user in users[:-1]], "rows": rows}


def _cell(pair: dict[str, Any] | None, people: Faces, measure: str) -> dict[str, Any] | None:
    if pair is None:
        return None
    one, two = (people.number(user) for user in pair["raters"])
    estimate = pair[measure]
    return {
        "key": f"{one}-{two}",
        "estimate": estimate,
        "value": estimate.get("value"),
        "n": pair.get("n", estimate.get("n")),
    }


def matrix(field: dict[str, Any], pair: dict[str, Any], people: Faces) -> dict[str, Any]:
    """The confusion matrix of one pair: rows what the first said, columns what the second said."""
    labels = [value["label"] for value in field["values"]]
    most = max((n for row in pair["matrix"] for n in row), default=0)
    rows = [
        {
            "label": labels[v],
            "cells": [
                {
                    "n": n,
                    "same": v == w,
                    "share": n / most if most else 0,
                    "values": (field["values"][v]["value"], field["values"][w]["value"]),
                    "says": (labels[v], labels[w]),
                }
                for w, n in enumerate(row)
            ],
            "total": sum(row),
        }
        for v, row in enumerate(pair["matrix"])
    ]
    totals = [sum(column) for column in zip(*pair["matrix"], strict=True)]
    one, two = pair["raters"]
    return {
        "rows": rows,
        "columns": labels,
        "totals": totals,
        "n": pair["n"],
        "first": people.label(one),
        "second": people.label(two),
        "key": f"{people.number(one)}-{people.number(two)}",
    }
