"""Questions of runs to their judges, as the web side sees them: taken in, handed to a worker, answered from the verdict store.

A question is a row, so it outlives a worker and the web server. If it is asked again under its key, it is the same row.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Q

from trainer.contracts import JudgeAnswer, JudgeQuestion, QuestionReply
from trainer.rewards.judges import ABOUT_THE_CALL
from webapp.core.problems import Conflict, Invalid
from webapp.core.tasks import enqueue, silent
from webapp.judging.models import JudgeVersion, Verdict

from .. import recipe_metrics
from ..models import Run, RunJudge, RunQuestion
from . import grants

ASKING = (Run.State.STARTING, Run.State.RUNNING, Run.State.BLOCKED)
LOST = timedelta(seconds=10)  # a worker that has not looked for its questions for this long is gone
MOST_ROWS = 20  # answered at a time: a group may have hundreds of verdicts
_KEY = 32  # bytes


@dataclass(frozen=True)
class TakenQuestions:
    """Rows that answer a batch: ids of their judges, and keys."""

    judges: tuple[int, ...]
    keys: frozenset[str]


def take(run: Run, asked: Iterable[JudgeQuestion]) -> TakenQuestions:
    """Stores new questions, and has a worker ask them. Raises Conflict if the run is over or ending, Invalid for a judge that its config
    does not name."""
    if run.state not in ASKING:
        raise Conflict("This run can ask no more questions, because it is over or about to end.", code="over")
    by_judge: dict[str, dict[str, JudgeQuestion]] = {}
    for question in asked:
        by_judge.setdefault(question.judge, {})[question.key] = question
    judges = _judges(run, by_judge)
    for name, questions in by_judge.items():
        _take(judges[name], questions)
    keys = frozenset(key for questions in by_judge.values() for key in questions)
    return TakenQuestions(tuple(judge.pk for judge in judges.values()), keys)


def _take(judge: RunJudge, questions: dict[str, JudgeQuestion]) -> None:
    rows = [RunQuestion(judge=judge, key=key, content=_content(question)) for key, question in questions.items()]
    with transaction.atomic():
        RunQuestion.objects.bulk_create(rows, ignore_conflicts=True)
        known = RunQuestion.objects.filter(judge=judge, key__in=questions)
        known.filter(state=RunQuestion.State.AWAY).update(state=RunQuestion.State.QUEUED, problem="")
    # after the commit: a worker notes its end before it looks a last time, so either it sees the questions or we see its end
    if known.filter(state=RunQuestion.State.QUEUED).exists() and _unattended(judge):
        enqueue("workers.questions.answer", judge.pk)


def _unattended(judge: RunJudge) -> bool:
    gone = Q(seen_at=None) | silent("seen_at", LOST)
    return RunJudge.objects.filter(gone, pk=judge.pk).exists()


def _content(question: JudgeQuestion) -> dict[str, Any]:
    return question.model_dump(mode="json", exclude={"key", "judge"})


def _judges(run: Run, names: Collection[str]) -> dict[str, RunJudge]:
    """The judges by their names in the config. A row is made when a judge is first asked, with the budget of the config."""
    versions = {name: version for name, version in grants.versions(run).items() if name in names}
    for name in names:
        if name not in versions:
            raise Invalid("This run has no such judge.", {"questions": f"its config names no judge {name!r}"})
    found = {row.version_id: row for row in RunJudge.objects.filter(run=run)}
    for name, version in versions.items():
        if version.pk not in found:
            tokens, money = _budget(run, name)
            found[version.pk], _ = RunJudge.objects.get_or_create(
                run=run, version=version, defaults={"budget_tokens": tokens, "budget_money": money}
            )
    return {name: found[version.pk] for name, version in versions.items()}


def _budget(run: Run, name: str) -> tuple[int | None, Decimal | None]:
    """The budget of the parts that ask the judge, which all have the same."""
    for part in recipe_metrics.reward(run)[0]:
        if part.get("judge") == name:
            tokens, money = part.get("budget_tokens"), part.get("budget_money")
            return tokens, None if money is None else Decimal(str(money))
    return None, None


def judge_row(run: Run, name: str) -> RunJudge:
    """The row with the budget and the use of the run's judge of this name. Raises Invalid for a judge that the config does not name."""
    return _judges(run, [name])[name]


def answers(version: JudgeVersion, wanted: Collection[str]) -> tuple[JudgeAnswer, ...]:
    """The verdicts that are stored under these keys. No judge is called."""
    return tuple(_answer(row, called=False) for row in _verdicts(version.pk, wanted).values()) if wanted else ()


def ready(taken: TakenQuestions, left: Collection[str]) -> list[QuestionReply]:
    """Replies to those of `left` that are answered by now, a few at a time."""
    over = (RunQuestion.State.DONE, RunQuestion.State.AWAY)
    rows = RunQuestion.objects.filter(judge__in=taken.judges, key__in=left, state__in=over).defer("content")
    found = list(rows.select_related("judge")[:MOST_ROWS])
    wanted: dict[int, set[str]] = {}
    for row in found:
        wanted.setdefault(row.judge.version_id, set()).update(keys(row.calls))
    stored = {version: _verdicts(version, each) for version, each in wanted.items()}
    return [_reply(row, stored[row.judge.version_id]) for row in found]


def _reply(row: RunQuestion, stored: Mapping[str, Verdict]) -> QuestionReply:
    made = set(keys(row.made))
    answers = tuple(_answer(stored[key], key in made) for key in keys(row.calls) if key in stored)
    return QuestionReply(key=row.key, answers=answers, away=row.problem)


def _verdicts(version: int, wanted: Collection[str]) -> dict[str, Verdict]:
    """The verdicts by key, without failures that another try may mend."""
    rows = Verdict.objects.filter(version=version, key__in=wanted).defer("request")
    return {row.key: row for row in rows if row.state != Verdict.State.FAILED or about_the_call(row.problem)}


def about_the_call(problem: str) -> bool:
    """Whether asking again would not mend a failure."""
    return problem.partition(":")[0] in ABOUT_THE_CALL


def _answer(row: Verdict, called: bool) -> JudgeAnswer:
    return JudgeAnswer(
        key=row.key,
        state=row.state,
        parsed=row.parsed,
        raw=row.raw,
        problem=row.problem,
        called=called,
        tokens=(row.prompt_tokens or 0) + (row.completion_tokens or 0),
        cost=None if row.cost is None else float(row.cost),
        latency_s=(row.latency_ms or 0) / 1000,
    )


def packed(wanted: Iterable[str]) -> bytes:
    """Keys of verdicts, as rows keep them."""
    return b"".join(bytes.fromhex(key) for key in wanted)


def keys(content: "bytes | memoryview[int]") -> Iterator[str]:
    held = bytes(content)
    return (held[at : at + _KEY].hex() for at in range(0, len(held), _KEY))
