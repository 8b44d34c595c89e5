"""A judge with local weights answers in the run's own process. Its verdicts go to the verdict store like all others."""

import json
from decimal import Decimal

import pytest

from tests.webapp.judging.asking.test_local import judge, local  # noqa: F401  a fixture among them
from tests.webapp.judging.conftest import inputs
from trainer.contracts import KnownVerdicts
from trainer.judges.budget import Budget
from trainer.judges.calls import expand
from trainer.judges.chat import ChatReply
from trainer.judges.engine import Outcome
from trainer.rewards.judges import VerdictsAway
from trainer.rewards.verdict_store import ServerStore
from webapp.experiments.lifecycle import spending
from webapp.experiments.models import RunJudge
from webapp.experiments.rewards import budgets
from webapp.experiments.rewards.budgets import KEEP
from webapp.judging.asking.calls import judge_calls
from webapp.judging.models import Verdict

from ..conftest import Trainer
from .test_questions import start


@pytest.fixture
def own(team, local):  # noqa: F811
    return judge(team, local)


@pytest.fixture
def run(launch, own):
    return start(launch, judge=str(own), budget_tokens=1000)


def store_of(run, own) -> ServerStore:
    """The verdict store as the run's process has it, over the real route."""
    trainer = Trainer(run)

    class Here(ServerStore):
        def _answer(self, body: bytes) -> KnownVerdicts:
            answer = trainer.client.post(self.url, body, content_type="application/json")
            if answer.status_code != 200:
                raise VerdictsAway(answer.content.decode())
            return KnownVerdicts.model_validate_json(answer.content)

    return Here(trainer.url("/verdicts"), "t", str(own))


def outcomes(own, count=2, tokens=7) -> list[Outcome]:
    calls = [call for given in inputs(count) for call in expand(own.resolved, own.digest, given)]
    parsed = {"met": True, "explanation": "P(yes) = 0.750"}
    reply = ChatReply("0.75", "stop", tokens, 3, 0, 0.5)
    return [Outcome(call, "done", parsed, "0.75", "", reply, None) for call in calls]


def test_what_a_run_says_is_not_asked_again_by_an_evaluation_nor_by_another_run(run, own, launch):
    told = outcomes(own)
    keys = [outcome.call.key for outcome in told]
    store = store_of(run, own)
    assert store.get(keys) == {}
    store.put(told)
    known = store.get(keys)
    assert {key: answer.parsed for key, answer in known.items()} == dict.fromkeys(keys, told[0].parsed)
    assert not any(answer.called for answer in known.values())
    assert judge_calls(own, inputs(2)).stored == 4, "the evaluation calls nobody"
    again = start(launch, judge=str(own))
    assert store_of(again, own).get(keys).keys() == set(keys)
    assert RunJudge.objects.get(run=again).calls == 0


def test_the_verdicts_that_use_up_what_all_judges_may_use_stop_the_run_at_once(run, own, team):
    spending.change(team.researcher, run, 10, KEEP)
    store_of(run, own).put(outcomes(own))
    run.refresh_from_db()
    assert (run.state, run.state_reason) == ("stopping", "The 10 tokens that its judges may use are used up")


def test_verdicts_that_are_sent_twice_are_counted_once(run, own):
    for _ in range(2):
        store_of(run, own).put(outcomes(own))
    row = RunJudge.objects.get(run=run)
    assert (row.calls, row.tokens, row.budget_tokens) == (4, 28, 1000)
    assert Verdict.objects.count() == 4
    verdict = Verdict.objects.first()
    assert (verdict.prompt_tokens, verdict.cached_tokens, verdict.latency_ms) == (7, 3, 500)


def test_a_budget_that_is_raised_reaches_the_run_and_what_others_used_counts(run, own, team):
    store, other, budget = store_of(run, own), store_of(run, own), Budget(1000)
    other.put(outcomes(own))
    store.get([outcomes(own)[0].call.key])
    store.limit(budget)
    assert (budget.tokens, budget.spent_tokens) == (1000, 28)
    budgets.change(team.researcher, RunJudge.objects.get(run=run), tokens=5000, money=Decimal(3))
    store.get([outcomes(own)[0].call.key])
    budget.spent_tokens = 40  # for calls that are not stored yet
    store.limit(budget)
    assert (budget.tokens, budget.money, budget.spent_tokens) == (5000, 3, 40)


def test_a_verdict_under_the_key_of_another_question_is_refused_and_nothing_is_stored(run, own):
    first, second = outcomes(own)[:2]
    sent = json.loads(_body(own, [first, second]))
    sent["verdicts"][0]["key"] = second.call.key
    trainer = Trainer(run)
    answer = trainer.client.post(trainer.url("/verdicts"), sent, content_type="application/json")
    assert answer.status_code == 422 and "verdicts.0.key" in answer.content.decode()
    assert not Verdict.objects.exists()


def test_a_judge_that_the_run_does_not_name_or_that_the_server_asks_is_refused(run, own):
    trainer = Trainer(run)
    for name in ("Nobody v1", ""):
        answer = trainer.client.post(trainer.url("/verdicts"), {"judge": name}, content_type="application/json")
        assert answer.status_code == 422
    type(run).objects.filter(pk=run.pk).update(state="finished")
    body = {"judge": str(own)}
    assert trainer.client.post(trainer.url("/verdicts"), body, content_type="application/json").status_code in (
        401,
        409,
    )


def _body(own, told) -> bytes:
    sent: list[bytes] = []

    class Caught(ServerStore):
        def _answer(self, body: bytes) -> KnownVerdicts:
            sent.append(body)
            return KnownVerdicts(answers=(), budget_tokens=None, budget_money=None, tokens=0, money="0")

    Caught("", "t", str(own)).put(told)
    return sent[0]
