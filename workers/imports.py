"""The queue of imports."""

from celery import shared_task

from webapp.datasets import services


@shared_task(name="workers.imports.run")
def run(job_id: int) -> None:
    services.run_import(job_id)


@shared_task(name="workers.imports.requeue_lost")
def requeue_lost() -> None:
    services.requeue_lost_imports()
