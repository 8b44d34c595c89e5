"""Sweeps: launches their next trials and stops the weak ones. Rounds may come twice; `webapp.experiments.sweeps.rounds` copes."""

from celery import shared_task

from webapp.experiments.sweeps import rounds


@shared_task(name="workers.sweeps.advance")
def advance(sweep_id: int) -> None:
    rounds.advance(sweep_id)


@shared_task(name="workers.sweeps.watch")
def watch() -> None:
    rounds.watch()
