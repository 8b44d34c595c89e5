"""What calls of endpoints used: counted with the answers they brought, for what they were made, in their month."""

import threading
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from django.db import connections, transaction

from tests.concurrency import concurrently
from tests.timeouts import SECONDS
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401  fixtures
from tests.webapp.judging.conftest import MET, inputs, version  # noqa: F401  a fixture among them
from webapp.inference.models import Endpoint
from webapp.judging.asking import calls
from webapp.judging.asking.calls import judge_calls
from webapp.judging.models import Verdict
from webapp.personal_data.erasing import erase
from webapp.usage import counters
from webapp.usage.counters import CallUse
from webapp.usage.models import MonthlyUse, WorkKind
from webapp.usage.works import MeteredWork

pytestmark = pytest.mark.django_db


@pytest.fixture
def priced(version, chat_server):  # noqa: F811
    chat_server.answer = lambda body: MET
    Endpoint.objects.filter(pk=version.endpoint_id).update(price_prompt=Decimal(1000), price_completion=Decimal(2000))
    return type(version).objects.get(pk=version.pk)


def evaluation(team, number=1):
    return MeteredWork(team.workspace.pk, WorkKind.EVALUATION, number, team.researcher.user_id)


def stored():
    """(tokens of prompts, of replies, money) of the verdict store, for comparison."""
    rows = Verdict.objects.all()
    return (
        sum(row.prompt_tokens or 0 for row in rows),
        sum(row.completion_tokens or 0 for row in rows),
        sum(row.cost or Decimal(0) for row in rows),
    )


def test_calls_count_with_their_verdicts_and_what_is_stored_costs_nothing(team, priced, chat_server):  # noqa: F811
    for _ in range(2):
        judge_calls(priced, inputs(3), used_by=evaluation(team))
    row = MonthlyUse.objects.get()
    assert (row.workspace, row.kind, row.work, row.person) == (team.workspace, "evaluation", 1, team.researcher.user)
    assert (row.endpoint, row.calls, row.untold, row.unpriced) == (priced.endpoint, 6, 0, 0)
    assert (row.prompt_tokens, row.completion_tokens, row.money) == stored()
    assert row.calls == chat_server.requests and row.money > 0 and row.other_tokens == 0
    assert row.month.day == 1


def test_without_a_purpose_they_count_for_the_judge(priced):
    judge_calls(priced, inputs(1))
    row = MonthlyUse.objects.get()
    assert (row.kind, row.work, row.person) == ("judge", priced.judge_id, priced.created_by)


def test_a_call_without_a_price_or_without_an_answer_is_no_money(team, version, chat_server):  # noqa: F811
    chat_server.answer = lambda body: MET
    Endpoint.objects.filter(pk=version.endpoint_id).update(price_prompt=None, price_completion=None)
    judge_calls(type(version).objects.get(pk=version.pk), inputs(2), used_by=evaluation(team))
    row = MonthlyUse.objects.get()
    assert (row.calls, row.unpriced, row.money) == (4, 4, 0) and row.prompt_tokens > 0
    chat_server.fault = "error"
    judge_calls(version, inputs(3), used_by=evaluation(team))
    assert MonthlyUse.objects.get().calls == 4


def test_a_reply_that_does_not_tell_its_tokens_is_counted_as_that(team, version):  # noqa: F811
    counters.count(evaluation(team), version.endpoint_id, CallUse(2, 10, 5, Decimal("0.5"), 1, 1))
    counters.count(evaluation(team), version.endpoint_id, CallUse())
    row = MonthlyUse.objects.get()
    assert (row.calls, row.prompt_tokens, row.untold, row.unpriced) == (2, 10, 1, 1)


def test_months_are_utc(team, version):  # noqa: F811
    tokyo = datetime.fromisoformat("2026-04-01T08:59:00+09:00")
    for at in (tokyo, datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 4, 30, 23, 59, tzinfo=UTC)):
        counters.count(evaluation(team), version.endpoint_id, CallUse(calls=1), at)
    assert list(MonthlyUse.objects.order_by("month").values_list("month", "calls")) == [
        (date(2026, 3, 1), 1),
        (date(2026, 4, 1), 2),
    ]


def test_a_worker_that_dies_before_the_commit_has_neither_verdict_nor_cost(team, priced, chat_server, monkeypatch):  # noqa: F811
    with monkeypatch.context() as broken:
        broken.setattr(calls, "note_troubles", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            judge_calls(priced, inputs(2), used_by=evaluation(team))
    assert not Verdict.objects.exists() and not MonthlyUse.objects.exists()
    judge_calls(priced, inputs(2), used_by=evaluation(team))
    assert (MonthlyUse.objects.get().calls, Verdict.objects.count()) == (4, 4)
    assert MonthlyUse.objects.get().money == stored()[2]


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_count_each_call_that_was_made(team, priced, chat_server):  # noqa: F811
    chat_server.latency_s = 0.005
    fresh = lambda: type(priced).objects.get(pk=priced.pk)  # noqa: E731
    concurrently([lambda n=n: judge_calls(fresh(), inputs(30), used_by=evaluation(team, n % 2)) for n in range(4)])
    assert Verdict.objects.count() == 60
    assert sum(MonthlyUse.objects.values_list("calls", flat=True)) == chat_server.requests


@pytest.mark.django_db(transaction=True)
def test_counters_at_once_lose_nothing(team, version):  # noqa: F811
    use = CallUse(1, 10, 3, Decimal("0.00000001"), 1, 1)
    concurrently([lambda: counters.count(evaluation(team), version.endpoint_id, use)] * 40)
    row = MonthlyUse.objects.get()
    assert (row.calls, row.prompt_tokens, row.completion_tokens) == (40, 400, 120)
    assert (row.money, row.untold, row.unpriced) == (Decimal("0.0000004"), 40, 40)


@pytest.mark.django_db(transaction=True)
def test_an_account_that_is_being_erased_is_not_waited_for(team, version):  # noqa: F811
    """Who erases holds the account and waits for our counter; we hold the counter and do not wait for the account."""
    counters.count(evaluation(team), version.endpoint_id, CallUse(calls=1))
    held, ours, done = threading.Event(), threading.Event(), []

    def erasing():
        try:
            with transaction.atomic():
                list(type(team.researcher.user).objects.select_for_update().filter(pk=team.researcher.user_id))
                held.set()
                ours.wait(SECONDS)
                MonthlyUse.objects.update(person=None)
                done.append(True)
        finally:
            connections.close_all()

    other = threading.Thread(target=erasing)
    other.start()
    assert held.wait(SECONDS)
    with transaction.atomic():
        for number in (1, 2):
            counters.count(evaluation(team, number), version.endpoint_id, CallUse(calls=1))
        ours.set()
    other.join(SECONDS)
    assert done and sorted(MonthlyUse.objects.values_list("calls", "person")) == [(1, None), (2, None)]


def test_after_an_erasure_the_money_stays_and_names_nobody(team, version):  # noqa: F811
    counters.count(evaluation(team), version.endpoint_id, CallUse(calls=1))
    erase(team.researcher.user, None)
    counters.count(evaluation(team), version.endpoint_id, CallUse(calls=1))
    row = MonthlyUse.objects.get()
    assert (row.calls, row.person) == (2, None)
