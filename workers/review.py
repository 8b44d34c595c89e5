"""The queue behind the reviewer's pages: coefficients, matching of items, publishing."""

from typing import Any

from celery import shared_task

from webapp.accounts.models import Membership
from webapp.annotation.models import Project
from webapp.annotation.services import matching, publish, review, standing, upkeep


@shared_task(name="workers.review.measure")
def measure(project_id: int) -> None:
    standing.bring_up_to_date(Project.objects.get(pk=project_id))


@shared_task(name="workers.review.match")
def match(project_id: int) -> None:
    matching.match(project_id)


@shared_task(name="workers.review.take_up_lost")
def take_up_lost() -> None:
    upkeep.take_up_lost()


@shared_task(name="workers.review.accept_majority")
def accept_majority(project_id: int, membership_id: int, minimum: float) -> None:
    membership = Membership.objects.select_related("workspace", "user").get(pk=membership_id)
    review.carry_out_majority(membership, Project.objects.get(pk=project_id), minimum)


@shared_task(name="workers.review.publish")
def publish_answers(project_id: int, membership_id: int, choice: dict[str, Any]) -> None:
    publish.carry_out(project_id, membership_id, choice)
