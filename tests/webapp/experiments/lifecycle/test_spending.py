"""A limit for all judges of a run together. At the limit the run stops and saves, says which limit it was, and continues with a new one."""

from decimal import Decimal

import pytest

from tests.concurrency import concurrently
from tests.pages import page_html
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401  fixtures
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict, Invalid
from webapp.experiments.lifecycle import jobs, spending
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.models import RunJudge
from webapp.experiments.rewards import budgets
from webapp.experiments.rewards.budgets import KEEP
from webapp.experiments.runs import history

from ..rewards.test_questions import ask_and_answer, brief, grader, group, start  # noqa: F401  fixtures among them
from .test_jobs import fresh, live, set_row  # noqa: F401 - fixtures among them


@pytest.fixture
def judge(run, grader) -> RunJudge:  # noqa: F811
    """A judge that the run has asked. A second version of another judge would count as well."""
    return RunJudge.objects.create(run=run, version=grader, tokens=900, money=Decimal("1.5"), calls=9)


def limit(team, run, tokens=KEEP, money=KEEP):
    return spending.change(team.researcher, fresh(run), tokens, money)


@pytest.mark.parametrize(
    ("limits", "uses", "told"),
    [
        ({"tokens": 1000}, {"tokens": 1000}, "The 1,000 tokens that its judges may use are used up"),
        ({"money": Decimal("2.50")}, {"money": Decimal("2.6")}, "The 2.5 that its judges may cost are used up"),
    ],
)
def test_it_stops_and_saves_and_goes_on_only_with_a_new_limit(live, run, ray, team, judge, limits, uses, told):  # noqa: F811
    limit(team, run, **limits)
    jobs.watch()
    assert fresh(run).state == "running"
    RunJudge.objects.filter(pk=judge.pk).update(**uses)
    for _ in range(2):  # a round may be sent twice
        jobs.watch()
    assert (fresh(run).state, fresh(run).state_reason) == ("stopping", told)
    entry = AuditEntry.objects.get(action="run.stopping")
    assert (entry.actor, entry.detail["reason"]) == (None, told)
    assert live.post().json()["command"] == "stop"
    live.post(live.event("state", 3, state="stopped", reason="Stopped after step 3"))
    assert fresh(run).state == "stopped" and ray.stopped == []
    for act in (
        lambda: lifecycle.resume(team.researcher, fresh(run)),
        lambda: lifecycle.extend(team.researcher, fresh(run), 9),
    ):
        with pytest.raises(Conflict, match="Raise or lift the limit first"):
            act()
    limit(team, run, **{name: 2 * value for name, value in limits.items()})
    assert lifecycle.resume(team.researcher, fresh(run)).state == "queued"


def test_the_answer_that_uses_it_up_stops_the_run_before_upkeep_looks(launch, team, grader, chat_server):  # noqa: F811
    run = start(launch)
    limit(team, run, tokens=10)
    ask_and_answer(run, group(grader))
    made = chat_server.requests
    assert made and fresh(run).state_reason == "The 10 tokens that its judges may use are used up"
    assert fresh(run).state == "stopping"
    with pytest.raises(Conflict):
        ask_and_answer(fresh(run), group(grader, step=2))
    assert chat_server.requests == made


def test_all_judges_count_together_and_without_a_limit_nothing_stops(live, run, ray, team, judge):  # noqa: F811
    other = RunJudge(tokens=200, money=Decimal("0.7"))
    assert budgets.spending_of([judge, other]) == budgets.Spent(1100, Decimal("2.2"))
    assert budgets.spending_of([]) == budgets.Spent(0, Decimal())
    RunJudge.objects.filter(pk=judge.pk).update(tokens=10**12)
    jobs.watch()
    assert fresh(run).state == "running"


def test_a_limit_that_is_used_already_is_refused_and_what_is_left_out_stays(run, team, judge):
    limit(team, run, tokens=5000)
    for wrong, field in (({"tokens": 900}, "budget_tokens"), ({"money": Decimal("1.5")}, "budget_money")):
        with pytest.raises(Invalid) as refused:
            limit(team, run, **wrong)
        assert refused.value.fields[field].startswith("must be more than the ")
    found = limit(team, run, money=Decimal(4))
    assert (found.judge_token_limit, found.judge_money_limit) == (5000, 4)


def test_the_same_twice_is_one_entry_which_the_history_has_in_words(run, team, judge):
    for _ in range(2):
        limit(team, run, tokens=5000, money=None)
    limit(team, run, tokens=None)
    whys = [event.why for event in history.events(fresh(run))[0] if event.what == "Spending limit changed"]
    assert whys == ["tokens without limit", "tokens 5000, money without limit"]


@pytest.mark.django_db(transaction=True)
def test_limits_at_once_leave_the_last_of_the_log(run, team, judge):
    concurrently([lambda tokens=tokens: limit(team, run, tokens=tokens) for tokens in (1000, 2000, 3000, 4000)])
    last = AuditEntry.objects.filter(action="run.spending").latest("id")
    assert str(fresh(run).judge_token_limit) == last.detail["budget_tokens"]


def test_a_logged_run_has_no_limit(run, team):
    set_row(run, recipe="logged", state="running", dataset_version=None, model=None)
    with pytest.raises(Conflict):
        limit(team, run, tokens=5)


def test_by_the_page_and_the_api(run, judge, as_researcher, as_annotator, as_outsider):
    url, page = f"/api/v1/runs/{run.id}/budget", f"/runs/{run.id}/spending"
    told = as_researcher.post(url, {"budget_tokens": 5000, "budget_money": 2.5}, content_type="application/json").json()
    assert (told["judge_token_limit"], told["judge_money_limit"]) == (5000, 2.5)
    for wrong in ({"budget_tokens": 900}, {"budget_money": 1.5}, {"budget_tokens": 0}, {"tokens": 5}):
        assert as_researcher.post(url, wrong, content_type="application/json").status_code == 422, wrong
    html = page_html(as_researcher.get(f"/runs/{run.id}"))
    assert "900 of 5,000 tokens used, cost 1.5000 of 2.5000" in html
    as_researcher.post(page, {"budget_tokens": "6,000", "budget_money": ""})
    assert (fresh(run).judge_token_limit, fresh(run).judge_money_limit) == (6000, None)
    for odd in ("nan", "-1", "soon", "1"):
        as_researcher.post(page, {"budget_tokens": odd, "budget_money": odd})
    assert as_annotator.post(page, {"budget_tokens": ""}).status_code == 403
    assert as_outsider.post(page, {"budget_tokens": ""}).status_code == 404
    assert fresh(run).judge_token_limit == 6000
    as_researcher.post(page, {"budget_tokens": "", "budget_money": ""})
    assert fresh(run).judge_token_limit is None
    assert "Spending limit changed" in as_researcher.get(f"/runs/{run.id}/history").content.decode()
