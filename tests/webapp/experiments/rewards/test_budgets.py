"""Limits for the judges of a run: shown on its page and by the API, and raised while the run waits."""

from decimal import Decimal

import pytest

from tests.team import browser
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401  fixtures
from webapp.core.models import AuditEntry
from webapp.experiments.models import Run, RunJudge

from .test_questions import ask_and_answer, grader, group, start  # noqa: F401  a fixture among them

TOLD = "Strict v1 cannot be asked: The budget is used up."


@pytest.fixture
def row(launch, grader) -> RunJudge:  # noqa: F811
    run = start(launch, budget_tokens=1000, budget_money=2)
    return RunJudge.objects.create(
        run=run,
        version=grader,
        budget_tokens=1000,
        budget_money=2,
        tokens=990,
        money=Decimal("0.5"),
        calls=7,
        problem=TOLD,
    )


def test_reviewers_see_what_judges_used_and_researchers_raise_it(row, team, as_researcher):
    as_reviewer = browser(team.reviewer)
    path = f"/runs/{row.run_id}"
    page = as_reviewer.get(path).content.decode()
    assert TOLD in page and "990 of 1,000" in page and 'name="budget_tokens"' not in page
    page = as_researcher.get(path).content.decode()
    assert 'name="budget_tokens"' in page and "Strict v1" in page
    assert as_reviewer.post(f"{path}/judges/{row.pk}", {"budget_tokens": "5000"}).status_code in (403, 404)
    assert (
        as_researcher.post(f"{path}/judges/{row.pk}", {"budget_tokens": "5,000", "budget_money": ""}).status_code == 302
    )
    row.refresh_from_db()
    assert (row.budget_tokens, row.budget_money) == (5000, None)
    entry = AuditEntry.objects.filter(action="run.budget").get()
    assert entry.detail == {"judge": "Strict v1", "budget_tokens": "5000", "budget_money": None}


def test_the_api_changes_what_is_given_and_refuses_what_is_spent(row, api):
    path = f"/runs/{row.run_id}/judges"
    (told,) = api.get(path).json()["items"]
    assert (told["judge"], told["calls"], told["tokens"], told["problem"]) == ("Strict v1", 7, 990, TOLD)
    assert api.patch(f"{path}/{row.pk}", {"budget_tokens": 2000}).json()["budget_tokens"] == 2000
    row.refresh_from_db()
    assert (row.budget_tokens, row.budget_money) == (2000, 2)
    for wrong in ({"budget_tokens": 990}, {"budget_money": 0.5}, {"budget_tokens": 0}, {"tokens": 5}):
        assert api.patch(f"{path}/{row.pk}", wrong).status_code == 422, wrong
    row.refresh_from_db()
    assert (row.budget_tokens, row.budget_money) == (2000, 2)
    assert api.patch(f"{path}/{row.pk}", {"budget_tokens": None}).json()["budget_tokens"] is None
    assert api.patch(f"{path}/{row.pk + 1}", {"budget_tokens": 5000}).status_code == 404


@pytest.mark.parametrize("typed", [{"budget_tokens": "many"}, {"budget_money": "-1"}, {"budget_money": "nan"}])
def test_what_is_no_budget_is_said_and_changes_nothing(row, as_researcher, typed):
    answer = as_researcher.post(f"/runs/{row.run_id}/judges/{row.pk}", typed, follow=True)
    assert "leave the field empty for no limit" in answer.content.decode()
    row.refresh_from_db()
    assert (row.budget_tokens, row.budget_money) == (1000, 2)


def test_a_judge_of_a_run_elsewhere_is_not_there(row, team, api):
    Run.objects.filter(pk=row.run_id).update(experiment=team.outsider.workspace.experiments.create(name="theirs"))
    assert api.get(f"/runs/{row.run_id}/judges").status_code == 404
    assert api.patch(f"/runs/{row.run_id}/judges/{row.pk}", {"budget_tokens": 5000}).status_code == 404


def test_the_card_is_there_before_the_first_question_and_moves_with_the_calls(
    launch,
    grader,  # noqa: F811
    as_researcher,
    team,
    monkeypatch,
    django_capture_on_commit_callbacks,
):
    run = start(launch)
    sent = []
    monkeypatch.setattr("webapp.core.broadcast.send_now", lambda to, message: sent.append((to, message)))
    path = f"/runs/{run.pk}/judges"
    assert "not asked yet" in as_researcher.get(f"/runs/{run.pk}").content.decode()
    assert "not asked yet" in as_researcher.get(path).content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        ask_and_answer(run, group(grader))
    assert (f"run.{run.pk}", {"type": "judges"}) in sent
    fragment = as_researcher.get(path).content.decode()
    assert "4 calls" in fragment and "not asked yet" not in fragment and "<html" not in fragment
    assert browser(team.outsider).get(path).status_code == 404


def test_a_run_without_a_judge_has_no_card(launch, as_researcher):
    run = launch(config={"steps": 2})
    assert as_researcher.get(f"/runs/{run.pk}/judges").status_code == 404
    assert 'id="judges"' not in as_researcher.get(f"/runs/{run.pk}").content.decode()
