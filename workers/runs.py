"""Queue of runs: hands them to Ray and takes them back. Tasks may arrive twice; `webapp.experiments.jobs` copes."""

from typing import Any

from celery import shared_task

from webapp.experiments import jobs, people


@shared_task(name="workers.runs.launch", bind=True, max_retries=None)
def launch(self: Any, run_id: int) -> None:
    delay = jobs.launch(run_id)
    if delay is not None:
        raise self.retry(countdown=delay)


@shared_task(name="workers.runs.stop")
def stop(run_id: int) -> None:
    jobs.stop(run_id)


@shared_task(name="workers.runs.remove_folder")
def remove_folder(run_id: int) -> None:
    jobs.remove_folder(run_id)


@shared_task(name="workers.runs.ask_people")
def ask_people(run_id: int) -> None:
    people.ask(run_id)
