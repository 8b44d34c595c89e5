"""The queue of imports."""

from celery import shared_task

from webapp.datasets import services, training


@shared_task(name="workers.imports.run")
def run(job_id: int) -> None:
    services.run_import(job_id)


@shared_task(name="workers.imports.requeue_lost")
def requeue_lost() -> None:
    services.requeue_lost_imports()


@shared_task(name="workers.imports.count_training")
def count_training(version_id: int) -> None:
    training.count(version_id)
