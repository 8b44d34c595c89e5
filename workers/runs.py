"""Queue of runs: hands them to Ray and takes them back. Tasks may arrive twice; `webapp.experiments.lifecycle.jobs` copes."""

from typing import Any

from celery import shared_task

from webapp.core.storage.artifact_store import StoreAway
from webapp.experiments.lifecycle import jobs
from webapp.experiments.metrics import condensing
from webapp.experiments.outputs import artifact_store
from webapp.experiments.outputs.retention import services as retention
from webapp.experiments.people import human_grades
from webapp.experiments.rollouts import indexing
from webapp.experiments.table import family_means

AGAIN, AGAIN_S = 200, 600  # storage that is away for more than a day keeps what it should have removed


@shared_task(name="workers.runs.launch", bind=True, max_retries=None)
def launch(self: Any, run_id: int) -> None:
    delay = jobs.launch(run_id)
    if delay is not None:
        raise self.retry(countdown=delay)


@shared_task(name="workers.runs.stop")
def stop(run_id: int) -> None:
    jobs.stop(run_id)


@shared_task(name="workers.runs.remove_folder", bind=True, max_retries=AGAIN)
def remove_folder(self: Any, run_id: int) -> None:
    try:
        jobs.remove_folder(run_id)
    except StoreAway as error:
        raise self.retry(exc=error, countdown=AGAIN_S) from None


@shared_task(name="workers.runs.prune", bind=True, max_retries=AGAIN)
def prune(self: Any, run_id: int) -> None:
    try:
        artifact_store.prune(run_id)
    except StoreAway as error:
        raise self.retry(exc=error, countdown=AGAIN_S) from None


@shared_task(name="workers.runs.delete_checkpoints")
def delete_checkpoints() -> None:
    retention.work()


@shared_task(name="workers.runs.ask_people")
def ask_people(run_id: int) -> None:
    human_grades.ask(run_id)


@shared_task(name="workers.runs.condense")
def condense(run_id: int) -> None:
    condensing.condense(run_id)


@shared_task(name="workers.runs.index_words")
def index_words() -> None:
    indexing.index_due()


@shared_task(name="workers.runs.keep_means")
def keep_means() -> None:
    family_means.keep_changed()
