"""Claims: launches the runs of a study whose task was made. Tasks may arrive twice; `webapp.experiments.claims.services` copes."""

from celery import shared_task

from webapp.experiments.claims import services


@shared_task(name="workers.claims.begin")
def begin(study_id: int) -> None:
    services.begin(study_id)
