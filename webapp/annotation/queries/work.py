"""What an annotator reads about their own work."""

from django.db.models import QuerySet

from webapp.annotation.models import Assignment, Project


def submissions(project: Project, user_id: int) -> QuerySet[Assignment]:
    """This person's assignments with an answer that stands, each with its example's excerpt."""
    mine = Assignment.objects.filter(project=project, user_id=user_id, submitted_at__isnull=False)
    return mine.select_related("task__example").defer("task__example__canonical", "draft")
