"""Reads of the workbench besides its tasks: an annotator's own submissions, the guidelines, their keys."""

from django.db.models import QuerySet

from webapp.annotation.models import Assignment, Guidelines, Participant, Project


def submissions(project: Project, user_id: int) -> QuerySet[Assignment]:
    """The person's assignments with an answer that stands, each with its example's excerpt."""
    mine = Assignment.objects.filter(project=project, user_id=user_id, submitted_at__isnull=False)
    return mine.select_related("task__example").defer("task__example__canonical", "draft")


def latest_guidelines(project: Project) -> Guidelines | None:
    return Guidelines.objects.filter(project=project).order_by("-number").first()


def standing_of(project: Project, user_id: int) -> tuple[dict[str, str], bool]:
    """(the keys that this person chose in this project: {action: key}; whether they have not submitted anything in it)."""
    row = Participant.objects.filter(project=project, user_id=user_id).values_list("keys", "submitted").first()
    keys, submitted = row or ({}, 0)
    return keys, not submitted
