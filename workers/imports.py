"""The queue of imports."""

from celery import shared_task

from webapp.core.tasks import UNTAKEN
from webapp.datasets import housekeeping
from webapp.datasets.ingest import services
from webapp.datasets.versions import training_counts


@shared_task(name="workers.imports.run")
def run(job_id: int) -> None:
    services.run_import(job_id)


@shared_task(name="workers.imports.delete_rest")
def delete_rest() -> None:
    housekeeping.take_up_lost(UNTAKEN)


@shared_task(name="workers.imports.delete_dataset")
def delete_dataset(dataset_id: int) -> None:
    housekeeping.carry_out(dataset_id)


@shared_task(name="workers.imports.count_training")
def count_training(version_id: int) -> None:
    training_counts.count(version_id)
