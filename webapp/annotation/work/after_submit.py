"""Work after an answer is stored: kinds of task register their functions here."""

from typing import Any

from webapp.annotation.kinds import Settings
from webapp.annotation.models import Answer, Assignment

from . import stress_test


def after_submit(seat: Assignment, answer: Answer, settings: Settings) -> dict[str, Any] | None:
    """The `stress` part of the response to a submission. Called after the commit, outside of any transaction, for each submission and again
    for its repeats; `seat` has its project and `task.example` in place, no query needed."""
    if seat.project.kind == "rubric" and settings.stress_test:
        return stress_test.of_submission(seat, answer, settings, ask=True)
    return None


def stress_test_of(seat: Assignment) -> dict[str, Any] | None:
    """The stress test of the standing answer, as far as it is known now; None if there is none. No judge is asked."""
    settings = Settings.model_validate(seat.project.settings)
    answer = seat.answers.filter(current=True).first()
    if answer is None or seat.project.kind != "rubric" or not settings.stress_test:
        return None
    return stress_test.of_submission(seat, answer, settings)
