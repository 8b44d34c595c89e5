"""Chains: launches what waits for a run. Tasks may arrive twice; `webapp.experiments.after.rounds` copes."""

from celery import shared_task

from webapp.experiments.after import rounds


@shared_task(name="workers.after.take_up")
def take_up(run_id: int) -> None:
    rounds.take_up(run_id)
