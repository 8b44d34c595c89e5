"""Tasks that beat starts every few seconds or every hour: they find the work that a lost process left behind, and clear what is over."""

from celery import shared_task

from webapp.accounts.sessions import services as sessions
from webapp.core.background import jobs
from webapp.core.distributed import cluster
from webapp.experiments.after import project_steps
from webapp.experiments.after import rounds as chains
from webapp.experiments.claims import services as claims
from webapp.experiments.launch import discarding
from webapp.experiments.lifecycle import jobs as runs
from webapp.experiments.lifecycle import stalls
from webapp.experiments.people import human_grades
from webapp.experiments.repeats import rounds as repeats
from webapp.identity import recovery_codes
from webapp.inference.folders import stored
from webapp.tracking import services as tracking


@shared_task(name="workers.upkeep.take_up_lost")
def take_up_lost() -> None:
    jobs.take_up_lost()


@shared_task(name="workers.upkeep.watch_runs")
def watch_runs() -> None:
    cluster.refresh()
    cluster.refresh_jobs()
    tracking.mark_lost(since=runs.watch())
    human_grades.ask_waiting()
    chains.watch()
    project_steps.watch()
    repeats.watch()
    claims.watch()
    stalls.watch()


@shared_task(name="workers.upkeep.forget_fetched")
def forget_fetched() -> None:
    stored.forget_fetched()


@shared_task(name="workers.upkeep.erase_deleted_runs")
def erase_deleted_runs() -> None:
    tracking.erase_deleted()
    discarding.erase_expired()


@shared_task(name="workers.upkeep.clear_sessions")
def clear_sessions() -> None:
    sessions.clear_expired()


@shared_task(name="workers.upkeep.hash_former_codes")
def hash_former_codes() -> None:
    recovery_codes.hash_former()
