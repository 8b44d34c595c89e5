"""Questions of runs to the judges of their rewards. Tasks may arrive twice: one worker at a time asks for one run."""

from celery import shared_task

from webapp.experiments.rewards import asking


@shared_task(name="workers.questions.answer")
def answer(judge_id: int) -> None:
    asking.answer(judge_id)


@shared_task(name="workers.questions.forget_old")
def forget_old() -> None:
    asking.forget_old()
