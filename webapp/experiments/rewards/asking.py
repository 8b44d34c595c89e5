"""The worker's side of the questions of a run: one worker at a time asks one judge for one run.

Questions that wait together are one wave of calls. Waves overlap, over the same connections and within the same share of the endpoint,
which other work uses as well. A call that is stored, or on its way, is not made again. Verdicts are stored as they come, together with
their cost, so a killed worker loses only the calls in flight.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from trainer.contracts import Criterion, JudgeQuestion, Message
from trainer.judges.answers import Reading
from trainer.judges.budget import Budget
from trainer.judges.calls import Call, read
from trainer.judges.chat import ChatReply, EndpointProblem, Target
from trainer.judges.client import ChatClient
from trainer.judges.engine import Counts, Outcome
from trainer.judges.engine import run as run_calls
from trainer.judges.inputs import JudgeInput
from trainer.judges.loop_thread import run_beside
from trainer.rewards.judges import ABOUT_THE_CALL
from webapp.core.database import locks
from webapp.core.health import DATABASE_AWAY
from webapp.core.problems import Conflict
from webapp.inference.endpoints.services import note_troubles
from webapp.inference.endpoints.sharing import EndpointShare
from webapp.judging.asking.calls import expanded, target_of
from webapp.judging.judges.services import begin_use
from webapp.judging.verdicts import queries as verdict_queries
from webapp.judging.verdicts.store import store, use
from webapp.usage import counters

from ..live import broadcasts
from ..models import RunJudge, RunQuestion
from ..queries import work_of
from . import budgets, questions

logger = logging.getLogger(__name__)
LOOK_S = 0.05  # between two looks for questions
LINGER_S = 1.0  # connections stay open this long for the next questions
NOTE_S = 1.0  # between two signs of life
WAVE = 64  # questions at a time
KEPT = timedelta(days=2)  # for answered questions; their verdicts stay in the verdict store
OVER = "the run is over, or ends"
BROKEN = "an error happened on the server while it was asked; the server's log has the details"


def answer(judge_id: int) -> None:
    """Answers the questions of a judge until there are none. A second worker ends at once; the first checks again at the end."""
    while True:
        with locks.exclusive(locks.Work.RUN_QUESTIONS, judge_id) as ours:
            if not ours:
                return
            _serve(judge_id)
        if not RunQuestion.objects.filter(judge=judge_id, state=RunQuestion.State.QUEUED).exists():
            return


def forget_old() -> None:
    """Deletes answered questions that are old; upkeep calls it."""
    RunQuestion.objects.filter(created_at__lt=timezone.now() - KEPT).exclude(state=RunQuestion.State.QUEUED).delete()


def _serve(judge_id: int) -> None:
    rows = RunJudge.objects.select_related("run__experiment", "version__judge", "version__endpoint__registered_model")
    row = rows.filter(pk=judge_id).first()
    if row is None:
        return
    try:
        target = target_of(row.version.endpoint, row.version.resolved)
        if not isinstance(target, Target):
            raise Conflict(f"{row.version} answers in the run's own process.")
        begin_use(row.version)
        desk = Desk(row, target)
        run_beside(desk.open)
        if desk.stopped:
            _all_away(row, OVER)
    except DATABASE_AWAY:
        raise  # the questions wait; the run asks for them again
    except (Conflict, EndpointProblem) as problem:
        _all_away(row, f"{row.version} cannot be asked: {str(problem).rstrip('.')}. {_remedy(str(problem))}")
    except Exception:
        # if they stayed queued, the same questions would lead to the same error again and again
        logger.exception("the questions of %s of run %s", row.version, row.run_id)
        _all_away(row, f"{row.version}: {BROKEN}")
        raise
    finally:
        RunJudge.objects.filter(pk=row.pk).update(seen_at=None)
        broadcasts.judges(row.run_id)


def _all_away(row: RunJudge, why: str) -> None:
    waiting = RunQuestion.objects.filter(judge=row, state=RunQuestion.State.QUEUED)
    waiting.update(state=RunQuestion.State.AWAY, problem=why)
    RunJudge.objects.filter(pk=row.pk).update(problem="" if why == OVER else why)


def _remedy(problem: str) -> str:
    """The advice about the problem."""
    if "budget" in problem:
        return "Raise its budget on the run's page, and the run continues."
    return "The run asks again until the judge answers; the page of its endpoint says more."


@dataclass
class Wave:
    """Questions that are asked together. `open` are the verdicts for which each still waits, `made` the calls it paid for."""

    rows: list[RunQuestion]
    open: dict[int, set[str]] = field(default_factory=dict)
    calls: dict[int, list[str]] = field(default_factory=dict)
    made: dict[int, list[str]] = field(default_factory=dict)
    owner: dict[str, int] = field(default_factory=dict)
    trouble: str = ""


class Desk:
    """Asks one judge for one run. Database code runs on the worker's thread, the rest in the event loop."""

    def __init__(self, row: RunJudge, target: Target) -> None:
        self.row, self.target = row, target
        self.version, self.spec = row.version, row.version.resolved
        self._work = work_of(row.run)
        self.budget = Budget()
        self.budget.spent_tokens, self.budget.spent_money = row.tokens, row.money
        self._noted = (row.tokens, row.money)
        self.stopped = False
        self._seen = self._told = 0.0
        self._asked: set[int] = set()
        self._flying: dict[str, asyncio.Event] = {}

    async def open(self, here: Executor) -> None:
        async with ChatClient(self.target, self.budget, EndpointShare(self.version.endpoint_id, here)) as client:
            waves: set[asyncio.Task[None]] = set()
            last = monotonic()
            while True:
                rows = await self._beside(here, self._look)
                if rows:
                    waves.add(asyncio.create_task(self._wave(Wave(rows), client, here)))
                if waves:
                    last = monotonic()
                elif self.stopped or monotonic() - last > LINGER_S:
                    return
                done, waves = await asyncio.wait(waves, timeout=LOOK_S) if waves else (set(), waves)
                for task in done:
                    task.result()  # raises the task's error
                if not waves:
                    await asyncio.sleep(LOOK_S)

    def _look(self) -> list[RunQuestion]:
        """New questions; now and then also the budget, which people may raise, and whether the run still asks."""
        if monotonic() - self._seen > NOTE_S:
            self._seen = monotonic()
            self.row.refresh_from_db()
            self.row.run.refresh_from_db()
            self.stopped = self.row.run.state not in questions.ASKING
            self.budget.tokens, self.budget.money = self.row.budget_tokens, self.row.budget_money
            RunJudge.objects.filter(pk=self.row.pk).update(seen_at=timezone.now())
        if self.stopped:
            return []
        waiting = RunQuestion.objects.filter(judge=self.row, state=RunQuestion.State.QUEUED)
        rows = list(waiting.exclude(pk__in=self._asked).order_by("id")[:WAVE])
        self._asked |= {row.pk for row in rows}
        return rows

    async def _wave(self, wave: Wave, client: ChatClient, here: Executor) -> None:
        calls = await self._beside(here, self._missing, wave)
        mine = [call for call in calls if call.key not in self._flying]
        others = {self._flying[call.key] for call in calls if call.key in self._flying}
        landed = asyncio.Event()
        self._flying |= {call.key: landed for call in mine}
        try:
            counts = await self._run(wave, mine, client, here) if mine else Counts()
        finally:
            for call in mine:
                del self._flying[call.key]
            landed.set()
        for each in others:
            await each.wait()
        await self._beside(here, self._finish, wave, counts)

    async def _run(self, wave: Wave, calls: list[Call], client: ChatClient, here: Executor) -> Counts:
        def parsed(call: Call, reply: ChatReply) -> Reading:
            return read(self.spec, call.subject, reply.text, complete=reply.finish_reason != "length")

        return await run_calls(
            calls,
            client,
            parsed,
            on_outcome=lambda outcomes: self._keep(wave, outcomes),
            stop=lambda: self.stopped,
            concurrency=min(self.target.concurrency, len(calls)),
            retries=self.spec.retries,
            prices=self.target.prices,
            executor=here,
        )

    def _missing(self, wave: Wave) -> list[Call]:
        """The calls of a wave without a verdict, each once; the first question with such a call pays for it."""
        found: dict[str, Call] = {}
        unusable: Counter[str] = Counter()
        for row in wave.rows:
            calls = list(expanded(self.spec, self.version.digest, self._inputs(row), unusable))
            wave.calls[row.pk] = list(dict.fromkeys(call.key for call in calls))
            for call in calls:
                found.setdefault(call.key, call)
                wave.owner.setdefault(call.key, row.pk)
        stored = verdict_queries.stored_keys(self.version, found)
        for row in wave.rows:
            wave.open[row.pk] = set(wave.calls[row.pk]) - stored
            wave.made[row.pk] = list(
                questions.keys(row.made)
            )  # stored by a worker that was killed, or before the judge was away
        self._done([row for row in wave.rows if not wave.open[row.pk]], wave)
        return [call for key, call in found.items() if key not in stored]

    def _inputs(self, row: RunQuestion) -> Iterator[JudgeInput]:
        asked = JudgeQuestion.model_validate({**(row.content or {}), "key": row.key, "judge": str(self.version)})
        for about in asked.about:
            yield JudgeInput(
                example=asked.example,
                conversation=tuple(Message.model_validate(each) for each in asked.conversation),
                responses=about.responses,
                criteria=tuple(Criterion.model_validate(each) for each in asked.criteria),
                reference=asked.reference,
                subject={"run": self.row.run_id, "place": about.place},
            )

    def _keep(self, wave: Wave, outcomes: list[Outcome]) -> None:
        """Stores verdicts, their cost and their questions in one transaction: nothing is paid for and forgotten."""
        settled = {each.call.key for each in outcomes if _lasts(each)}
        for each in outcomes:
            if each.reply is not None:
                wave.made[wave.owner[each.call.key]].append(each.call.key)
            elif not _lasts(each):
                wave.trouble = each.problem
        touched = {wave.owner[each.call.key] for each in outcomes}
        finished = []
        for row in wave.rows:
            was_open = wave.open[row.pk]
            wave.open[row.pk] = was_open - settled
            if was_open and not wave.open[row.pk]:
                finished.append(row)
        with transaction.atomic():
            store(self.version, outcomes)
            note_troubles(self.version.endpoint, [each.trouble for each in outcomes if each.trouble])
            self._note(outcomes)
            for row in wave.rows:
                if row.pk in touched and row not in finished:
                    made = questions.packed(wave.made[row.pk])
                    RunQuestion.objects.filter(pk=row.pk).update(made=made)
            self._done(finished, wave)
            counters.count(self._work, self.version.endpoint_id, use(outcomes))
        budgets.spent(self.row.run)
        self.stopped = self.row.run.state not in questions.ASKING

    def _note(self, outcomes: Iterable[Outcome]) -> None:
        """Notes the cost of the calls, retries included, as the budget was charged."""
        spent = (self.budget.spent_tokens, self.budget.spent_money)
        tokens, money = spent[0] - self._noted[0], spent[1] - self._noted[1]
        answered = sum(each.reply is not None for each in outcomes)
        failed = sum(each.state == "failed" for each in outcomes)
        changed: dict[str, Any] = {"problem": ""} if answered else {}
        RunJudge.objects.filter(pk=self.row.pk).update(
            calls=F("calls") + answered,
            failed=F("failed") + failed,
            tokens=F("tokens") + tokens,
            money=F("money") + money,
            **changed,
        )
        self._noted = spent
        if monotonic() - self._told > NOTE_S:  # the last ones are reported when the desk closes
            self._told = monotonic()
            broadcasts.judges(self.row.run_id)

    def _done(self, rows: list[RunQuestion], wave: Wave) -> None:
        for row in rows:
            row.state, row.content, row.problem = RunQuestion.State.DONE, None, ""
            row.calls, row.made = questions.packed(wave.calls[row.pk]), questions.packed(wave.made[row.pk])
        RunQuestion.objects.bulk_update(rows, ["state", "content", "problem", "calls", "made"])

    def _finish(self, wave: Wave, counts: Counts) -> None:
        """Verdicts that are still open now come from another wave, or could not be asked for."""
        left = [row for row in wave.rows if row.state == RunQuestion.State.QUEUED]
        keys = {key for row in left for key in wave.open[row.pk]}
        stored = verdict_queries.stored_keys(self.version, keys)
        self._done([row for row in left if wave.open[row.pk] <= stored], wave)
        away = [row for row in left if row.state == RunQuestion.State.QUEUED]
        why = OVER if self.stopped else counts.halted or wave.trouble or "it was not asked"
        told = f"{self.version} cannot be asked: {why.rstrip('.')}. {_remedy(why)}"
        for row in away:
            row.state, row.problem = RunQuestion.State.AWAY, told
            row.calls, row.made = questions.packed(wave.calls[row.pk]), questions.packed(wave.made[row.pk])
        RunQuestion.objects.bulk_update(away, ["state", "problem", "calls", "made"])
        if away and not self.stopped:
            RunJudge.objects.filter(pk=self.row.pk).update(problem=told)
        self._note(())
        self._asked -= {row.pk for row in wave.rows}

    async def _beside(self, here: Executor, function: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(here, function, *arguments)


def _lasts(outcome: Outcome) -> bool:
    """Whether another call would give the same outcome."""
    return outcome.state != "failed" or (outcome.trouble is not None and outcome.trouble.code in ABOUT_THE_CALL)
