"""The queue of curation jobs: derived versions, duplicates, checks of rubrics."""

from celery import shared_task

from webapp.datasets.curation import near_leak_search, runner


@shared_task(name="workers.curation.run")
def run(job_id: int) -> None:
    runner.run(job_id)


@shared_task(name="workers.curation.look_for_leaks")
def look_for_leaks(trained_id: int, tried_id: int, side: str) -> None:
    near_leak_search.look(trained_id, tried_id, side)
