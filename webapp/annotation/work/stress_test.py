"""The stress test after a rubric is submitted: it scores responses that its author did not see.

Verifiers decide at once. If the project has a judge, the judge decides the other criteria: a worker asks it, and the page checks again
until it has answered.
"""

import logging
from typing import Any

from trainer.contracts import Rubric
from webapp.annotation.kinds import Settings, Shown
from webapp.annotation.models import Answer, Assignment
from webapp.annotation.tasks import blinding
from webapp.annotation.work import stress_judges
from webapp.annotation.work.rubric_trial import report
from webapp.annotation.work.stress_judges import JudgedAnswer, LetterVerdicts
from webapp.core.problems import Problem

logger = logging.getLogger(__name__)


def of_submission(seat: Assignment, answer: Answer, settings: Settings, ask: bool = False) -> dict[str, Any] | None:
    """The test of a submitted rubric; None if its example has no responses, or if the test takes too much: the answer stands in any case.
    `seat` has its project and `task.example` in place. `ask`: ask the judge for missing verdicts."""
    if (given := given_of(seat, answer)) is None:
        return None
    said = LetterVerdicts()
    judge = settings.stress_judge
    if judge is not None and any(criterion.verifier is None for criterion in given.rubric.criteria):
        for each in stress_judges.JUDGE:
            if ask:
                each.ask(answer.pk)
            said = each.said(judge, given)
    try:
        found = report(given.rubric, given.responses, said.verdicts)
    except Problem as problem:
        logger.warning("no stress test of a submitted rubric: %s %s", problem, problem.fields)
        return None
    return {**found, "assignment": seat.pk, "judging": said.open}


def given_of(seat: Assignment, answer: Answer) -> JudgedAnswer | None:
    """The rubric to test; None if the example has no responses."""
    example = seat.task.example.content
    seen = blinding.responses("rubric", {}, [], example, done=True)
    responses = [Shown.model_validate(response) for response in seen]
    if not responses:
        return None
    rubric = Rubric.model_validate(answer.content["rubric"])
    return JudgedAnswer(answer.pk, seat.project.workspace_id, example, rubric, responses)
