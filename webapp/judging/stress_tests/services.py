"""The judge of a project's stress tests: it decides the criteria of a submitted rubric that no verifier decides."""

import logging

from django.core.cache import cache

from trainer.contracts import Example, Verdict
from trainer.judges.chat import EndpointProblem
from trainer.judges.combine import criterion_verdicts
from trainer.judges.inputs import JudgeInput
from webapp.annotation.kinds import Settings
from webapp.annotation.models import Answer
from webapp.annotation.work.stress_judges import JUDGE, JudgedAnswer, LetterVerdicts
from webapp.annotation.work.stress_test import given_of
from webapp.core.problems import Problem
from webapp.core.tasks import enqueue
from webapp.usage.models import WorkKind
from webapp.usage.works import MeteredWork

from .. import queries
from ..asking.calls import judge_calls
from ..models import JudgeVersion
from ..verdicts import queries as verdict_queries

logger = logging.getLogger(__name__)
KINDS = ("criterion", "checklist")
MOST_OFFERED = 200
UNDECIDED = "the judge has given no verdict"
ASKED_S = 600  # nobody waits longer for a worker
AGAIN_S = (
    30  # a message that no worker took for this long may be lost; it is sent again, and asking twice costs nothing
)
WAITS, BEGUN = "waits", "begun"


class ProjectJudge:
    """See `StressJudge`. The judge's verdicts are in the verdict store under the content of their questions, so a rubric that is
    submitted again asks only what is new."""

    def options(self, workspace_id: int) -> list[tuple[int, str]]:
        rows = queries.usable_versions(workspace_id, KINDS)[:MOST_OFFERED]
        return [(row.pk, f"{row} · {row.judge.title} · {row.endpoint}") for row in rows]

    def problem(self, workspace_id: int, version: int) -> str:
        row = JudgeVersion.objects.filter(judge__workspace_id=workspace_id, pk=version).select_related("judge").first()
        if row is None:
            return "this workspace has no such judge"
        if row.judge.kind not in KINDS:
            return f"{row} is of kind {row.judge.kind}; this needs {' or '.join(KINDS)}"
        usable = queries.usable_versions(workspace_id, KINDS).filter(pk=version).exists()
        return "" if usable else f"{row} or its endpoint is archived; restore it, or choose another"

    def ask(self, answer_id: int) -> None:
        cache.set(_key(answer_id), WAITS, ASKED_S)
        cache.set(_sent(answer_id), 1, AGAIN_S)
        enqueue("workers.judging.stress", answer_id)

    def said(self, version: int, given: JudgedAnswer) -> LetterVerdicts:
        state = cache.get(_key(given.answer))  # before the verdicts: none comes after it is closed
        if state == WAITS and cache.add(_sent(given.answer), 1, AGAIN_S):
            enqueue("workers.judging.stress", given.answer)
        row = queries.usable_versions(given.workspace, KINDS).filter(pk=version).first()
        if row is None:
            return LetterVerdicts()
        answers = [answer for _, said in verdict_queries.answers(row, [_input(given)]) for answer in said]
        called = [answer for answer in answers if answer.verdict_id is not None]
        found = {
            key[1]: {one.criterion_id: one.model_copy(update=_hidden(one)) for one in told}
            for key, told in criterion_verdicts(called).items()
        }
        return LetterVerdicts(found, state is not None)


def stress(answer_id: int) -> None:
    """Asks what nobody asked before about a submission. If the answer is gone or the judge cannot be asked, the criteria have no
    verdict."""
    cache.set(_key(answer_id), BEGUN, ASKED_S)
    rows = Answer.objects.select_related("project", "assignment__project", "assignment__task__example")
    answer = rows.filter(pk=answer_id).first()
    try:
        if answer is not None:
            _ask(answer)
    except (Problem, EndpointProblem) as problem:
        logger.warning("no judge in the stress test of answer %s: %s", answer_id, problem)
    finally:
        cache.delete(_key(answer_id))


def _ask(answer: Answer) -> None:
    version = Settings.model_validate(answer.project.settings).stress_judge
    given = given_of(answer.assignment, answer)
    if version is None or given is None:
        return
    row = queries.usable_versions(answer.project.workspace_id, KINDS).filter(pk=version).first()
    if row is not None:
        project = answer.project
        work = MeteredWork(project.workspace_id, WorkKind.PROJECT, project.pk, project.created_by_id)
        judge_calls(row, [_input(given)], used_by=work)


def _input(given: JudgedAnswer) -> JudgeInput:
    record = Example.model_validate(dict(given.example))
    return JudgeInput(
        example=record.key,
        conversation=record.prompt,
        responses={response.letter: response.text for response in given.responses},
        criteria=given.rubric.criteria,
        reference=record.reference or "",
        subject={"answer": given.answer},
    )


def _hidden(one: Verdict) -> dict[str, str]:
    """Takes out what the author must not read: the raw answer, and why there is none, in which servers name their model."""
    return {"raw": ""} if one.met is not None else {"raw": "", "note": UNDECIDED}


def _key(answer_id: int) -> str:
    return f"stress:{answer_id}"


def _sent(answer_id: int) -> str:
    return f"stress:{answer_id}:sent"


JUDGE.append(ProjectJudge())
