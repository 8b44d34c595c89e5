"""The queue of annotation: makes tasks, and gives back seats that nobody sits on any more."""

from celery import shared_task

from webapp.annotation.projects import task_services
from webapp.annotation.work import queue


@shared_task(name="workers.annotation.make_tasks")
def make_tasks(project_id: int) -> None:
    task_services.make(project_id)


@shared_task(name="workers.annotation.make_waiting")
def make_waiting() -> None:
    task_services.make_waiting()


@shared_task(name="workers.annotation.expire_leases")
def expire_leases() -> None:
    queue.expire_leases()
