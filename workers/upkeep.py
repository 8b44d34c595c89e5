"""What beat starts every few seconds: finds whatever a lost process left behind."""

from celery import shared_task

from webapp.experiments import jobs, people


@shared_task(name="workers.upkeep.watch_runs")
def watch_runs() -> None:
    jobs.watch()
    people.ask_waiting()
