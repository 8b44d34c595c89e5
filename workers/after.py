"""Chains: launches what waits for a run or an annotation project. Tasks may arrive twice; `webapp.experiments.after` copes."""

from celery import shared_task

from webapp.experiments.after import project_steps as settling
from webapp.experiments.after import rounds


@shared_task(name="workers.after.take_up")
def take_up(run_id: int) -> None:
    rounds.take_up(run_id)


@shared_task(name="workers.after.settled")
def settled(project_id: int) -> None:
    settling.take_up(project_id)
