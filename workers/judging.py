"""The queue of judges: trials of drafts and of versions."""

from celery import shared_task

from webapp.judging.stress_tests import services as stressing
from webapp.judging.trials import running as trying


@shared_task(name="workers.judging.run_trial")
def run_trial(trial_id: int) -> None:
    trying.run_trial(trial_id)


@shared_task(name="workers.judging.stress")
def stress(answer_id: int) -> None:
    stressing.stress(answer_id)
