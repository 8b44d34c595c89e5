"""Shows people to readers of their answers under pseudonyms, with days instead of exact times."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from webapp.accounts.models import User
from webapp.annotation.models import Comment, Project

from .raters import Rater, raters


def day(at: datetime) -> datetime:
    """The first moment of the day."""
    return timezone.localtime(at).replace(hour=0, minute=0, second=0, microsecond=0)


@dataclass(frozen=True)
class Faces:
    """The names of people as one reader sees them: pseudonyms, or real names if the reader `access.may_name` them and asks for them."""

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
        """The time of a person's action, as exact as the person is named: for a pseudonym only the day. A person who knows when a colleague
        worked could recognise the colleague by the minute."""
        return at if self.named or at is None else day(at)

    def number(self, user: int) -> int:
        rater = self.by_user.get(user)
        return rater.number if rater else 0

    def author(self, user: User | None) -> str:
        """The author of a remark: people who answer in the project under a pseudonym, others by their names."""
        if user is None:
            return "Somebody who left"
        return self.label(user.pk) if user.pk in self.by_user else str(user)

    def user(self, number: int) -> int | None:
        return next((rater.user for rater in self.by_user.values() if rater.number == number), None)


def faces(project: Project, named: bool = False) -> Faces:
    return Faces(raters(project), named)


def comment(row: Comment, people: Faces) -> dict[str, Any]:
    """A remark as the API and the reviewer's pages return it."""
    return {
        "id": row.pk,
        "task_id": row.task_id,
        "kind": row.kind,
        "text": row.text,
        "by": people.author(row.author),
        **remarked(row, people),
    }


def remarked(row: Comment, people: Faces) -> dict[str, datetime | None]:
    """The times at which a remark was made and resolved. If its author answers in the project, `Faces.moment` makes them less exact."""
    hidden = row.author_id in people.by_user
    times = {"created_at": row.created_at, "resolved_at": row.resolved_at}
    return {name: people.moment(at) if hidden else at for name, at in times.items()}
