"""Alarms of a run: each is stored once, even if it is sent several times, shown with its responses, announced, and sent to people."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.pages import page_html
from tests.team import ApiClient, browser
from tests.webapp.experiments.people.test_people import asking, give_rubrics, judged_response  # noqa: F401 - a fixture
from trainer.config.alarms import SIGNALS
from webapp.annotation.models import Task
from webapp.core.models import AuditEntry
from webapp.experiments.alarms import services
from webapp.experiments.models import GradedResponse, Run, RunAlarm
from webapp.experiments.people import human_grades
from webapp.webhooks.models import Delivery, Webhook


def alarm_event(process, step: int = 7, **changes) -> dict:
    plain = {"signal": "flattery", "since": 6, "share": 0.5, "before": 0.01, "paid": 4.5}
    more = {"part": "rubric", "criterion": "Is polite", "places": [{"group": 0, "index": 1}, {"group": 0, "index": 0}]}
    return process.event("alarm", step, **(plain | more | changes))


@pytest.fixture
def alarmed(trainer, run):
    """A run with one alarm about two responses that a judge has graded."""
    give_rubrics(run_member(run), run)
    rows = [
        judged_response(0, response="Great question! Red"),
        judged_response(1, response="What a brilliant question! Blue"),
    ]
    sent = trainer.post(trainer.event("rollouts", 7, rollouts=rows), alarm_event(trainer))
    assert sent.status_code == 200, sent.content
    run.refresh_from_db()
    return run


def run_member(run):
    return run.experiment.workspace.memberships.get(user=run.created_by)


def test_an_alarm_is_stored_with_all_it_says(alarmed):
    [found] = services.described_alarms(alarmed)
    assert (found.row.step, found.row.signal, found.data.share, found.data.paid) == (7, "flattery", 0.5, 4.5)
    assert [(each.index, each.text[:5], each.reward) for each in found.examples] == [
        (1, "What ", 1.0),
        (0, "Great", 1.0),
    ]
    assert found.told.startswith("50% of the responses of step 7 compliment the asker; 1% at first, more since step 6.")


def test_a_repeat_replaces_an_alarm_and_another_stands_beside_it(trainer, alarmed):
    trainer.post(alarm_event(trainer, step=8, share=0.75))
    trainer.post(
        alarm_event(trainer, signal="phrase", subject="so to say"),
        alarm_event(trainer, signal="phrase", subject="indeed"),
    )
    rows = RunAlarm.objects.filter(run=alarmed).order_by("id")
    assert [(row.signal, row.subject, row.step) for row in rows] == [
        ("flattery", "", 8),
        ("phrase", "so to say", 7),
        ("phrase", "indeed", 7),
    ]
    assert rows[0].content["share"] == 0.75


def test_each_role_of_a_run_has_alarms_of_its_own(trainer, run, as_researcher):
    roles = ("judge", "writer", "")
    trainer.post(*(alarm_event(trainer, signal="phrase", subject="indeed", role=role) for role in roles))
    trainer.post(alarm_event(trainer, signal="phrase", subject="indeed", role="judge", share=0.75))
    gap: dict[str, Any] = {
        "signal": "held_out",
        "role": "writer",
        "share": 0.38,
        "before": 0.0,
        "since": 3,
        "paid": None,
        "places": [],
    }
    trainer.post(alarm_event(trainer, part="choice", **gap))
    found = as_researcher.get(f"/api/v1/runs/{run.pk}/alarms").json()["items"]
    phrases = {each["role"]: each for each in found if each["signal"] == "phrase"}
    assert set(phrases) == set(roles) and phrases["judge"]["share"] == 0.75
    assert phrases["judge"]["title"] == "A new phrase that pays: judge" and phrases["judge"]["subject"] == "indeed"
    assert "of the responses of the rubric writer of step 7 say “indeed”" in phrases["writer"]["told"]
    [panel] = [each for each in found if each["signal"] == "held_out"]
    assert panel["told"] == (
        "In the turn of the rubric writer that ends with step 7 the training pairs lie 38 points above the held-out panel; in the "
        "first turn not above them. The turn began with step 3."
    )


def test_a_delivery_twice_is_one_alarm(trainer, run):
    event = alarm_event(trainer)
    for _ in range(2):
        assert trainer.post(event).status_code == 200
    assert RunAlarm.objects.count() == 1


def test_an_alarm_is_announced_once(trainer, run, team):
    Webhook.objects.create(workspace=team.workspace, url="https://example.org", events=["run.alarm"], secret="s")
    trainer.post(alarm_event(trainer))
    trainer.post(alarm_event(trainer, step=9))
    [sent] = Delivery.objects.all()
    facts = sent.payload.get("data", sent.payload)
    assert (facts["run"], facts["signal"], facts["step"], facts["part"]) == (run.pk, "flattery", 7, "rubric")


@pytest.mark.parametrize("changes", [{"share": 1.5}, {"signal": ""}, {"places": [{"group": -1, "index": 0}]}])
def test_an_alarm_that_cannot_be_is_refused(trainer, changes):
    assert trainer.post(alarm_event(trainer, **changes)).status_code == 422
    assert not RunAlarm.objects.exists()


def test_the_page_shows_it_with_its_responses_and_escapes_them(trainer, alarmed, as_researcher, as_outsider):
    page = page_html(as_researcher.get(f"/runs/{alarmed.pk}"))
    assert (
        "1 sign that the reward is being gamed" in page
        and "Flattery" in page
        and "What a brilliant question! Blue" in page
    )
    assert f"/runs/{alarmed.pk}/rollouts?step=7&amp;group=0" in page and "Send to annotation" in page
    trainer.post(alarm_event(trainer, signal="phrase", subject="<script>alert(1)</script>"))
    part = page_html(as_researcher.get(f"/runs/{alarmed.pk}/alarms"))
    assert "2 signs" in part and "&lt;script&gt;" in part and "<script>" not in part
    assert as_outsider.get(f"/runs/{alarmed.pk}/alarms").status_code == 404


def test_steps_that_teach_nothing_are_no_sign_of_gaming(trainer, alarmed, team, as_researcher):
    Webhook.objects.create(workspace=team.workspace, url="https://example.org", events=["run.alarm"], secret="s")
    flat = {"signal": "flat", "subject": "solved", "since": 8, "share": 1.0, "before": 0.2, "paid": None}
    flat |= {"part": "", "criterion": "", "places": []}
    trainer.post(alarm_event(trainer, step=12, **flat))
    page = page_html(as_researcher.get(f"/runs/{alarmed.pk}"))
    assert "2 alarms" in page and "Nothing to learn: the prompts are solved" in page and "Flattery" in page
    assert "In steps 8 to 12 all responses to each prompt had the same reward" in page
    [sent] = Delivery.objects.all()
    assert sent.payload.get("data", sent.payload)["signal"] == "flat"
    RunAlarm.objects.exclude(signal="flat").delete()
    RunAlarm.objects.update(time=timezone.now())
    assert "learns nothing" in page_html(as_researcher.get("/"))
    part = page_html(as_researcher.get(f"/runs/{alarmed.pk}/alarms"))
    assert "Steps in which nothing was learned" in part and "gamed" not in part and "Send to annotation" not in part


@pytest.mark.parametrize(
    ("signal", "subject", "concern", "words"),
    [
        ("entropy", "", "no longer explores", "its entropy is now 0.02 nats per token; in the first steps it was 0.4."),
        (
            "dead",
            "the norm is near 0",
            "hardly learns",
            "the norm of the gradient is now 0.02; in the first steps it was 0.4.",
        ),
        ("dead", "few tokens have one", "hardly learns", "2% of the tokens had a gradient; in the first steps 40%."),
        ("mismatch", "", "disagrees with its sampler", "2% of the tokens differ by more than a factor of 2"),
    ],
)
def test_a_run_that_learns_badly_says_how_and_what_to_do(trainer, run, as_researcher, signal, subject, concern, words):
    facts = {"subject": subject, "paid": None, "part": "", "criterion": "", "places": [], "before": 0.4}
    trainer.post(alarm_event(trainer, signal=signal, share=0.05, value=0.02, usual=0.4, **facts | {"since": 5}))
    RunAlarm.objects.update(time=timezone.now())
    page = page_html(as_researcher.get(f"/runs/{run.pk}"))
    assert "1 sign that the run learns badly" in page and "In steps 5 to 7" in page and words in page
    assert f'href="/help/{SIGNALS[signal].page.replace(".md", "")}"' in page
    assert SIGNALS[signal].look in page and "gamed" not in page and "Send to annotation" not in page
    assert concern in page_html(as_researcher.get("/"))
    [found] = as_researcher.get(f"/api/v1/runs/{run.pk}/alarms").json()["items"]
    assert (found["value"], found["usual"], found["subject"]) == (0.02, 0.4, subject)


def test_a_run_without_alarms_shows_none(run, as_researcher):
    page = page_html(as_researcher.get(f"/runs/{run.pk}"))
    assert 'id="alarms"' in page and "sign that the reward" not in page


def test_a_reviewer_sees_it_and_cannot_send_it(alarmed, team):
    as_reviewer = browser(team.reviewer)
    assert "Send to annotation" not in page_html(as_reviewer.get(f"/runs/{alarmed.pk}"))
    alarm = RunAlarm.objects.get()
    assert as_reviewer.post(f"/runs/{alarmed.pk}/alarms/{alarm.pk}/people").status_code == 403


def test_a_response_that_is_gone_is_said_to_be(trainer, run, as_researcher):
    trainer.post(alarm_event(trainer))
    assert "The response is no longer stored." in page_html(as_researcher.get(f"/runs/{run.pk}"))


def test_one_click_makes_tasks_blind_to_the_judge_and_a_second_makes_none(alarmed, as_researcher):
    alarm = RunAlarm.objects.get()
    for _ in range(2):
        answer = as_researcher.post(f"/runs/{alarmed.pk}/alarms/{alarm.pk}/people", follow=True)
    assert "These responses went to people before." in page_html(answer)
    human_grades.ask(alarmed.pk)
    tasks = Task.objects.order_by("id")
    texts = {task.example.content["responses"][0]["text"] for task in tasks}
    assert texts == {"Great question! Red", "What a brilliant question! Blue"}
    assert all("met" not in task.example.canonical for task in tasks)
    assert AuditEntry.objects.filter(action="run.alarm_asked").count() == 1
    assert "2 responses sent to people" in page_html(as_researcher.get(f"/runs/{alarmed.pk}"))


def test_what_an_alarm_sends_is_no_random_draw(alarmed, team):
    Run.objects.filter(pk=alarmed.pk).update(config={**alarmed.config, "people": {"share": 1e-9}})
    alarmed.refresh_from_db()
    services.ask(team.researcher, alarmed, RunAlarm.objects.get())
    found = human_grades.agreement(alarmed)
    assert found and (found.drawn, GradedResponse.objects.count()) == (0, 2)
    assert human_grades.cases(alarmed, None, 10)[0] == []


def test_a_response_without_criteria_says_why_nobody_can_be_asked(trainer, run, team):
    give_rubrics(run_member(run), run)
    trainer.post(
        trainer.event("rollouts", 7, rollouts=[judged_response(0, criteria=[]), judged_response(1, criteria=[])]),
        alarm_event(trainer),
    )
    services.ask(team.researcher, run, RunAlarm.objects.get())
    human_grades.ask(run.pk)
    [found] = services.described_alarms(Run.objects.get(pk=run.pk))
    assert (found.asked, found.left_out, found.why) == (0, 2, "no judge has decided a criterion of it")


def test_the_api_says_the_same(alarmed, team):
    client = ApiClient(team.researcher)
    [found] = client.get(f"/runs/{alarmed.pk}/alarms").json()["items"]
    assert (found["signal"], found["step"], found["part"], found["criterion"]) == ("flattery", 7, "rubric", "Is polite")
    assert found["responses"][1] == {"group": 0, "index": 0, "response": "Great question! Red", "reward": 1.0}
    asked = client.post(f"/runs/{alarmed.pk}/alarms/{found['id']}/people", {})
    assert (asked.status_code, asked.json()) == (202, {"sent": 2})
    assert client.get(f"/runs/{alarmed.pk}/alarms").json()["items"][0]["asked"] == 2
    assert client.post(f"/runs/{alarmed.pk}/alarms/{found['id'] + 1}/people", {}).status_code == 404
    assert ApiClient(team.outsider).get(f"/runs/{alarmed.pk}/alarms").status_code == 404


def test_more_alarms_ask_the_database_no_more(trainer, alarmed):
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            services.described_alarms(alarmed)
        return len(caught)

    before = queries()
    trainer.post(*(alarm_event(trainer, signal="phrase", subject=f"phrase {n}", step=7 + n) for n in range(8)))
    assert queries() == before == 3
