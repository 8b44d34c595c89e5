"""The queue behind the reviewer's pages: coefficients, matching of items, publishing."""

from celery import shared_task

from webapp.annotation.models import Project
from webapp.annotation.services import matching, publish, standing


@shared_task(name="workers.review.measure")
def measure(project_id: int) -> None:
    standing.bring_up_to_date(Project.objects.get(pk=project_id))


@shared_task(name="workers.review.match")
def match(project_id: int) -> None:
    matching.match(project_id)


@shared_task(name="workers.review.publish")
def publish_answers(project_id: int, user_id: int, choice: dict[str, object]) -> None:
    publish.carry_out(project_id, user_id, choice)
