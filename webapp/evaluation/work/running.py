"""Carries an evaluation to its end on one worker at a time.

A recipe starts from the beginning each time: judges' answers are in the verdict store, so a worker that was killed, or an evaluation that
was paused, continues from where it was without asking anything twice.
"""

import json
import logging
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from trainer.config.errors import ConfigInvalid
from trainer.contracts import Example
from trainer.judges.budget import Budget
from trainer.judges.inputs import JudgeInput
from webapp.core.auditing import audit
from webapp.core.background.jobs import NOT_ITS_FAULT, Throttle
from webapp.core.problems import Problem
from webapp.inference.models import Endpoint
from webapp.judging.asking.jobs import needs_job
from webapp.judging.lines.fields import LineProblem
from webapp.judging.models import JudgeVersion
from webapp.webhooks.services import announce
from webapp.weights.models import WeightsJob

from .. import queries
from ..launch import services
from ..launch.services import EVALUATION
from ..models import Case, Evaluation
from ..recipes import RECIPES, resolve
from ..recipes.base import (
    ClusterWaiting,
    FoundCase,
    JudgedQuestion,
    JudgeFacts,
    NothingToScore,
    ProjectAnswer,
    RecipeOutcome,
    Rollout,
    Stopped,
    StudyJudgement,
    VerdictSpending,
    Writer,
    WrittenText,
)
from ..sources import answering, judges, people
from ..sources import registry as sources
from ..studies import services as studies
from . import dataset_outputs, measuring
from .questions import Questions

logger = logging.getLogger(__name__)
State = Evaluation.State
TELL_EVERY_S = 1.0
LOOK_AGAIN_S = 3.0  # at the jobs of the cluster that an evaluation waits for
BATCH = 1_000


def run(evaluation_id: int) -> float | None:
    """Returns the seconds after which to look again if the cluster is working, because no thread waits for it; else None.

    Raises errors that the evaluation did not cause (the database is away): it stays running, and a worker takes it up again.
    """
    while True:
        with EVALUATION.claimed(evaluation_id) as evaluation:
            if evaluation is None:
                return None
            if _stands_in_line(evaluation) or _carry_out(evaluation):
                return LOOK_AGAIN_S
        # paused and resumed while we were leaving: the new worker saw that we had it, and went away
        if not Evaluation.objects.filter(id=evaluation_id, state=State.QUEUED).exists():
            return None


def _stands_in_line(evaluation: Evaluation) -> bool:
    """Queues the evaluation if all its jobs wait in the line; it then says for what it waits. Returns whether it did."""
    if not _was_in_line(evaluation) and evaluation.state != State.RUNNING:
        return False
    why = answering.in_line(evaluation)
    if why is None:
        return False
    # not an evaluation that a person has resumed meanwhile: that one starts again
    ours = Q(state=State.RUNNING) | Q(state=State.QUEUED, problem=evaluation.problem or None)
    rows = EVALUATION.held(evaluation).filter(ours).exclude(state=State.QUEUED, problem=why)
    waits = {"state": State.QUEUED, "problem": why, "progress": evaluation.progress}
    with transaction.atomic():
        left = rows.filter(state=State.RUNNING).update(**waits)
        if left:
            _audit(evaluation, State.QUEUED, State.RUNNING, why)
        if left or rows.update(**waits):
            evaluation.state, evaluation.problem = State.QUEUED, why
            services.broadcast_evaluation(evaluation)
    return True


def _audit(evaluation: Evaluation, to: str, before: str, reason: str = "") -> None:
    """The audit entry of a move by a worker, in the transaction of the move. `services.move` audits the moves of people."""
    detail = {"before": before, **({"reason": reason} if reason else {})}
    audit.record(evaluation.workspace, None, f"evaluation.{to}", evaluation, **detail)


def _was_in_line(evaluation: Evaluation) -> bool:
    """Whether it is queued and says for what it waits, as its worker wrote. If a person begins or resumes it, the text is empty."""
    return evaluation.state == State.QUEUED and bool(evaluation.problem)


def _carry_out(evaluation: Evaluation) -> bool:
    """Carries the evaluation out. Returns whether it waits for the cluster."""
    work = RecipeWork(evaluation)
    try:
        work.begin()
        work.wait_for_jobs()
        outcome = RECIPES[evaluation.recipe].run(work)
        work.questions.note(outcome.report, outcome.cases)
        dataset_outputs.deliver(evaluation, outcome)
        _finish(evaluation, outcome)
    except ClusterWaiting:
        if work.left_waiting():
            return False
        _stands_in_line(evaluation)
        return True
    except Stopped:  # the page shows how far it came, with the answers that were on their way
        stopped = Evaluation.objects.filter(pk=evaluation.pk, state__in=(State.PAUSED, State.CANCELLED))
        stopped.update(progress=evaluation.progress)
    except judges.Halted as halted:
        _pause(evaluation, str(halted))
    except NOT_ITS_FAULT:
        raise
    except (NothingToScore, LineProblem, ConfigInvalid, Problem) as problem:
        _fail(evaluation, str(problem))
    except Exception:
        # otherwise a worker would take it up again and meet the same mistake of ours, for ever
        logger.exception("evaluation %s failed", evaluation.pk)
        _fail(
            evaluation,
            "An error happened on the server while the evaluation was scored; the server's log has the details.",
        )
    return False


def _running(evaluation: Evaluation) -> QuerySet[Evaluation]:
    """The row, for an UPDATE by its worker; no row if a person paused or ended it, or if another worker has it."""
    return EVALUATION.held(evaluation).filter(state=State.RUNNING)


@transaction.atomic
def _finish(evaluation: Evaluation, outcome: RecipeOutcome) -> None:
    """Results and cases appear together, and only if nobody cancelled it in the last moment."""
    audit.asked_by(evaluation)
    tags: dict[str, int] = {}
    for found in outcome.cases:
        found.tags = list(dict.fromkeys(found.tags))
        for each in found.tags:
            tags[each] = tags.get(each, 0) + 1
    evaluation.results = outcome.report.json(tags)
    evaluation.ended_at = timezone.now()
    ended = {"results": evaluation.results, "ended_at": evaluation.ended_at, "progress": evaluation.progress}
    moved = _running(evaluation).update(state=State.FINISHED, problem="", **ended)
    if not moved:
        return
    Case.objects.filter(evaluation=evaluation).delete()  # left by an attempt that failed while it wrote them
    Case.objects.bulk_create(_rows(evaluation, outcome.cases), batch_size=BATCH)
    evaluation.state = State.FINISHED
    audit.record(
        evaluation.workspace, evaluation.created_by, "evaluation.finished", evaluation, cases=len(outcome.cases)
    )
    services.broadcast_evaluation(evaluation)
    announce(evaluation.workspace_id, "evaluation.finished", queries.facts(evaluation))


def _rows(evaluation: Evaluation, found: list[FoundCase]) -> Iterator[Case]:
    for number, each in enumerate(found, 1):
        yield Case(evaluation=evaluation, number=number, subject=each.subject, values=each.values, tags=each.tags)


@transaction.atomic
def _pause(evaluation: Evaluation, why: str) -> None:
    """Pauses the evaluation without a person. Answers are kept, and a resumed evaluation continues after them."""
    told = (
        f"{why} Answers are kept, and judges are not asked for them again. Remove the cause and resume the evaluation, or run it "
        "again with other settings."
    )
    if _running(evaluation).update(state=State.PAUSED, problem=told, progress=evaluation.progress):
        evaluation.state, evaluation.problem = State.PAUSED, told
        audit.record(evaluation.workspace, None, "evaluation.paused", evaluation, reason=why)
        services.broadcast_evaluation(evaluation)
        announce(evaluation.workspace_id, "evaluation.paused", queries.facts(evaluation) | {"reason": why})


@transaction.atomic
def _fail(evaluation: Evaluation, why: str) -> None:
    audit.asked_by(evaluation)
    ended = {"ended_at": timezone.now(), "progress": evaluation.progress}
    if _running(evaluation).update(state=State.FAILED, problem=why, **ended):
        evaluation.state, evaluation.problem = State.FAILED, why
        audit.record(evaluation.workspace, evaluation.created_by, "evaluation.failed", evaluation, reason=why)
        services.broadcast_evaluation(evaluation)
        announce(evaluation.workspace_id, "evaluation.failed", queries.facts(evaluation) | {"reason": why})


class RecipeWork:
    """A recipe's context: data in, verdicts asked for, progress out."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.config: Any = resolve(evaluation.recipe, evaluation.config)
        self.dataset = str(evaluation.dataset_version or "")
        self.questions = Questions()
        self._known: dict[int, JudgeVersion] = {}
        spent = evaluation.progress.get("spent", {})  # spent before a pause or a kill: the budget does not start again
        jobs = spent.get("jobs", {"tokens": 0, "money": "0"})
        self._spent_tokens = spent.get("tokens", 0) - jobs["tokens"]
        self._spent_money = Decimal(spent.get("money", "0")) - Decimal(jobs["money"])
        self._due = Throttle(TELL_EVERY_S)
        # whether a person has begun or resumed it; otherwise a worker looks at it again
        self._again = evaluation.state == State.QUEUED and not _was_in_line(evaluation)

    def begin(self) -> None:
        now = timezone.now()
        rows = EVALUATION.held(self.evaluation)
        progress = self._spent(None) if self._again else self.evaluation.progress
        with transaction.atomic():
            first = rows.filter(started_at=None).update(started_at=now)
            # an evaluation whose worker was lost is running already
            begins = rows.filter(state=State.QUEUED).update(state=State.RUNNING)
            if not rows.update(state=State.RUNNING, problem="", seen_at=now, progress=progress):
                raise Stopped
            if begins:
                _audit(self.evaluation, State.RUNNING, State.QUEUED)
            if first:
                announce(self.evaluation.workspace_id, "evaluation.started", queries.facts(self.evaluation))
        self.evaluation.started_at = self.evaluation.started_at or now
        self.evaluation.state, self.evaluation.problem, self.evaluation.progress = State.RUNNING, "", progress
        services.broadcast_evaluation(self.evaluation)

    def examples(self) -> Iterator[Example]:
        if self.evaluation.dataset_version:
            yield from queries.examples(self.evaluation.dataset_version)

    def graded(self, datasets: Sequence[int]) -> Iterator[tuple[str, Iterator[Example]]]:
        if self.evaluation.dataset_version:
            yield self.dataset, self.examples()
        for dataset in datasets:
            version = sources.newest(self.evaluation.workspace_id, dataset)
            if version is None:
                raise NothingToScore(
                    f"Dataset {dataset}, in which people have graded, is deleted, is archived or has no version."
                )
            yield str(version), queries.examples(version)

    def lines(self) -> Iterator[Any]:
        recording = self.evaluation.recording
        if recording:
            for line in zlib.decompress(recording.content).decode("utf-8-sig").split("\n"):
                if line.strip():
                    yield json.loads(line)

    def judge_facts(self, version: int) -> JudgeFacts:
        return judges.facts(self._version(version))

    def judge(self, version: int, inputs: Sequence[JudgeInput], phase: str, draw: int = 0) -> list[JudgedQuestion]:
        row, draw = self._version(version), self.config.draw * self.config.draws + draw
        if needs_job(row):
            self._by_job(row, inputs, phase, draw)
        else:
            self._ask(row, inputs, phase, draw)
        unusable: Counter[str] = Counter()
        unasked: set[str] = set()
        found = judges.answers(row, inputs, unusable, unasked, draw)
        href = f"/judges/{row.judge_id}/versions/{row.number}"
        self.questions.asked(str(row), href, inputs, found, phase)
        self.questions.could_not(str(row), unusable, unasked)
        return found

    def _ask(self, row: JudgeVersion, inputs: Sequence[JudgeInput], phase: str, draw: int) -> None:
        with self._spending() as budget:
            judges.ask(
                row,
                inputs,
                budget=budget,
                stop=self._stop,
                tell=lambda done, total, words: self._note(phase, done, total, words, budget),
                used_by=judges.work(self.evaluation),
                draw=draw,
            )

    def _by_job(self, row: JudgeVersion, inputs: Sequence[JudgeInput], phase: str, draw: int) -> None:
        """Returns once there is nothing left to ask. Raises ClusterWaiting, Stopped and Halted."""
        left, again = self._budget(), self._again
        job = judges.ask_by_job(
            row, inputs, self.evaluation, phase, budget=left, again=again, stop=self._stop, draw=draw
        )
        if job is not None:
            if self.stopped():
                raise Stopped
            answering.wait_for([job], self._show)

    def wait_for_jobs(self) -> None:
        """Waits for the jobs that are under way; otherwise the recipe would start again only to find that it must wait. Raises
        ClusterWaiting."""
        if not self._again:
            answering.wait_for(self.evaluation.jobs.all(), self._show)

    def writer_name(self, writer: Writer) -> str:
        return answering.name(self.evaluation.workspace_id, writer)

    def written(self, writers: Sequence[Writer], examples: Sequence[Example]) -> list[list[WrittenText]]:
        """Jobs are started first, so that the cluster works while endpoints are asked. A worker that looks again asks no endpoint before
        the jobs are done, because endpoints were asked when the evaluation began."""
        models = [each.model for each in writers if each.model is not None]
        jobs = answering.jobs(self.evaluation, models, self.config, self._again)
        if not self._again:
            answering.wait_for(jobs, self._show)
        asked = [self._of_endpoint(each, examples) if each.endpoint is not None else None for each in writers]
        answering.wait_for(jobs, self._show)
        finished = iter(jobs)
        return [answering.of_job(next(finished)) if found is None else found for found in asked]

    def scored(self, models: Sequence[int], most: int) -> list[dict[tuple[str, str], float | None]]:
        jobs = answering.jobs(self.evaluation, models, self.config, self._again, most)
        answering.wait_for(jobs, self._show)
        return [answering.scores(job) for job in jobs]

    def _show(self, phase: str, done: int, total: int) -> None:
        self.evaluation.progress = {"phase": phase, "done": done, "total": total, **self._spent(None)}
        services.broadcast_evaluation(self.evaluation)

    def _of_endpoint(self, writer: Writer, examples: Sequence[Example]) -> list[WrittenText]:
        if writer.endpoint is None:
            raise TypeError("the writer is not an endpoint")
        rows = Endpoint.objects.filter(workspace_id=self.evaluation.workspace_id)
        endpoint = rows.get(pk=writer.endpoint)
        with self._spending() as budget:
            return answering.of_endpoint(
                endpoint,
                examples,
                self.config,
                budget=budget,
                stop=self._stop,
                tell=lambda done, total: self._note(f"asking {endpoint}", done, total, "", budget),
                used_by=judges.work(self.evaluation),
            )

    @contextmanager
    def _spending(self) -> Iterator[Budget | None]:
        """The budget of a call of endpoints, settled after it. Raises Stopped if the call was halted without a reason."""
        budget = self._budget()
        try:
            yield budget
        except judges.Halted as halted:
            if not str(halted):
                raise Stopped from halted
            raise
        finally:
            self._settle(budget)

    def _settle(self, budget: Budget | None) -> None:
        if budget:
            self._spent_tokens += budget.spent_tokens
            self._spent_money += budget.spent_money

    def rollouts(self, run: int, step: int | None) -> Iterator[Rollout]:
        for provide in sources.ROLLOUTS:
            yield from provide(self.evaluation.workspace_id, run, step)

    def trained(self, run: int, step: int | None) -> Iterator[Rollout]:
        for provide in sources.TRAINED:
            yield from provide(self.evaluation.workspace_id, run, step)

    def embedding_diversity(self, texts: dict[str, list[str]]) -> dict[str, float | None]:
        self.tell("measuring diversity", 0, 0)
        return measuring.embedding_diversity(texts)

    def novelty(self, run: int, step: int | None) -> list[float | None]:
        self.tell("measuring novelty", 0, 0)
        return [rho for provide in sources.NOVELTY for rho in provide(self.evaluation.workspace_id, run, step)]

    def study(self, project: int) -> Iterator[StudyJudgement]:
        return studies.judgements(self.evaluation.workspace_id, project)

    def answers(self, project: int) -> Iterator[ProjectAnswer]:
        return people.answers(self.evaluation.workspace_id, project)

    def spent(self, verdicts: Sequence[int]) -> VerdictSpending:
        return judges.spending_of(verdicts)

    def _version(self, version: int) -> JudgeVersion:
        if version not in self._known:
            self._known[version] = judges.versions(self.evaluation.workspace_id).get(pk=version)
        return self._known[version]

    def _budget(self) -> Budget | None:
        tokens, money = judges.spent_by_jobs(self.evaluation)
        config = self.evaluation.config.get("budget")
        return judges.budget_left(config, self._spent_tokens + tokens, self._spent_money + money)

    def _stop(self) -> bool:
        """Whether to stop. It is called several times a second, and looks once a second."""
        if not self._due():
            return False
        services.broadcast_evaluation(self.evaluation)
        return self.stopped()

    def _note(self, phase: str, done: int, total: int, words: str, budget: Budget | None) -> None:
        """With a budget, each batch is noted at once: a worker that is killed must not lead to the same spending again."""
        progress = {"phase": phase, "done": done, "total": total, "counts": words, **self._spent(budget)}
        self.evaluation.progress = progress
        if budget:
            Evaluation.objects.filter(pk=self.evaluation.pk).update(progress=progress)

    def _spent(self, budget: Budget | None) -> dict[str, Any]:
        """The use of the config's budget by calls; nothing if it has none. `budget`: of the calls under way."""
        if not self.evaluation.config.get("budget"):
            return {}
        tokens, money = (budget.spent_tokens, budget.spent_money) if budget else (0, Decimal(0))
        more, more_money = judges.spent_by_jobs(self.evaluation)
        told = {"tokens": self._spent_tokens + tokens + more, "money": str(self._spent_money + money + more_money)}
        return {"spent": {**told, "jobs": {"tokens": more, "money": str(more_money)}}}

    def tell(self, phase: str, done: int, total: int) -> None:
        if not self._due():
            return
        self.evaluation.progress = {"phase": phase, "done": done, "total": total, **self._spent(None)}
        if self.stopped():
            raise Stopped
        services.broadcast_evaluation(self.evaluation)

    def left_waiting(self) -> bool:
        """Whether somebody has ended it meanwhile. If it was resumed while a job was still stopping, it is resumed once more, because that
        job continues only when it has stopped."""
        if self.stopped():
            return True
        if self._again and self.evaluation.jobs.filter(state=WeightsJob.State.STOPPING).exists():
            with transaction.atomic():
                if _running(self.evaluation).update(state=State.QUEUED):
                    _audit(self.evaluation, State.QUEUED, State.RUNNING, "A job of it is still stopping")
        return False

    def stopped(self) -> bool:
        """Whether the evaluation stopped; also the worker's sign of life. If it was resumed before we noticed the pause, we continue."""
        rows = EVALUATION.held(self.evaluation)
        news = {"seen_at": timezone.now(), "progress": self.evaluation.progress}
        if rows.filter(state=State.RUNNING).update(**news):
            return False
        with transaction.atomic():
            resumed = rows.filter(state=State.QUEUED).update(state=State.RUNNING, **news)
            if resumed:
                _audit(self.evaluation, State.RUNNING, State.QUEUED)
        return not resumed
