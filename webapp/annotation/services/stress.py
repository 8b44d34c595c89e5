"""The stress test after a rubric is submitted: it meets the responses its author wrote it without."""

import logging
from collections.abc import Mapping
from typing import Any

from trainer.contracts import Rubric
from webapp.annotation import shown
from webapp.annotation.kinds import Shown
from webapp.annotation.trying import report
from webapp.core.problems import Problem

logger = logging.getLogger(__name__)


def of_answer(answer: Mapping[str, Any], example: Mapping[str, Any]) -> dict[str, Any] | None:
    """For a submitted rubric and the example it was written for; None where that has no responses, or where the test takes
    too much: the answer stands in any case."""
    seen = shown.responses("rubric", {}, [], example, done=True)
    responses = [Shown.model_validate(response) for response in seen]
    if not responses:
        return None
    try:
        return report(Rubric.model_validate(answer["rubric"]), responses)
    except Problem as problem:
        logger.warning("no stress test of a submitted rubric: %s %s", problem, problem.fields)
        return None
