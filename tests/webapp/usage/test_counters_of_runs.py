"""A run counts what the answers of its judges cost, once, with the verdicts that they brought."""

import pytest

from tests.webapp.experiments.conftest import launch, model, places_enough, version  # noqa: F401  fixtures
from tests.webapp.experiments.rewards.test_own_verdicts import outcomes, store_of
from tests.webapp.experiments.rewards.test_questions import ask_and_answer, brief, grader, group, start  # noqa: F401  fixtures among them
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401  fixtures
from tests.webapp.judging.asking.test_local import judge, local  # noqa: F401  a fixture among them
from webapp.experiments.models import RunJudge
from webapp.judging.models import Verdict
from webapp.usage import counters
from webapp.usage.models import MonthlyUse

pytestmark = pytest.mark.django_db


def test_a_run_counts_what_its_judges_cost(launch, grader, chat_server):  # noqa: F811
    run = start(launch)
    for _ in range(2):
        ask_and_answer(run, group(grader))
    ask_and_answer(run, group(grader, step=2))
    row, counted = RunJudge.objects.get(run=run), MonthlyUse.objects.get()
    assert (counted.kind, counted.work, counted.place, counted.person) == (
        "run",
        run.pk,
        run.experiment_id,
        run.created_by,
    )
    assert (counted.calls, counted.prompt_tokens + counted.completion_tokens) == (row.calls, row.tokens)
    assert counted.money == row.money and row.calls == 4


def test_a_worker_of_a_run_that_dies_has_counted_nothing(launch, grader, chat_server, monkeypatch):  # noqa: F811
    run = start(launch)
    with monkeypatch.context() as broken:
        broken.setattr(counters, "count", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ask_and_answer(run, group(grader))
    assert not Verdict.objects.exists() and not MonthlyUse.objects.exists()
    assert RunJudge.objects.get(run=run).calls == 0
    ask_and_answer(run, group(grader))
    assert MonthlyUse.objects.get().calls == RunJudge.objects.get(run=run).calls == 4


def test_a_batch_of_answers_is_one_statement_more(launch, grader, monkeypatch):  # noqa: F811
    run, written, count = start(launch), [], counters.count
    monkeypatch.setattr(counters, "count", lambda *given: (written.append(given), count(*given)))
    ask_and_answer(run, group(grader, responses=8))
    assert 1 <= len(written) < 16 == MonthlyUse.objects.get().calls


def test_a_judge_in_the_runs_own_process_counts_once_even_if_its_verdicts_are_sent_again(team, launch, local):  # noqa: F811
    own = judge(team, local)
    run = start(launch, judge=str(own))
    store = store_of(run, own)
    told = outcomes(own)
    for _ in range(2):
        store.put(told)
    counted, row = MonthlyUse.objects.get(), RunJudge.objects.get(run=run)
    assert (counted.work, counted.endpoint, counted.calls) == (run.pk, local, row.calls) == (run.pk, local, len(told))
    assert counted.prompt_tokens + counted.completion_tokens == row.tokens == 7 * len(told)
