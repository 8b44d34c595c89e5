"""Reports, for lineage: which runs their queries find by now."""

from celery import shared_task

from webapp.reports import origins


@shared_task(name="workers.reports.look_again")
def look_again() -> None:
    origins.look_again()
