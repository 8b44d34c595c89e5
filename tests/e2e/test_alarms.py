"""An alarm of a run, as a researcher sees it: it appears without a reload, shows its responses, and one click sends it to people."""

import pytest
from playwright.sync_api import expect

from tests import timeouts
from tests.e2e.look import layout_faults
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from tests.webapp.experiments.people.test_people import give_rubrics, judged_response
from webapp.experiments.alarms import services
from webapp.experiments.models import GradedResponse, Run, RunAlarm

pytestmark = pytest.mark.browser


def test_an_alarm_comes_while_one_looks_and_is_sent_to_people(open_page, as_researcher, team, run, process):  # noqa: F811
    give_rubrics(team.researcher, run)
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    expect(page.locator("#alarms")).to_be_attached()
    trainer = process(Run.objects.get(pk=run.pk))
    places = [{"group": 0, "index": index} for index in (1, 0)]
    alarm = {"signal": "flattery", "since": 6, "share": 0.5, "before": 0.01, "paid": 4.5, "places": places}
    rows = [
        judged_response(index, response="What a brilliant question! Red, as one can see at dusk.") for index in range(2)
    ]
    more = {"part": "rubric", "criterion": "Is polite"}
    trainer.post(trainer.event("rollouts", 7, rollouts=rows), trainer.event("alarm", 7, **alarm, **more))
    told = page.locator("#alarms summary", has_text="Flattery")
    expect(told).to_be_visible(timeout=timeouts.SECONDS * 1000)
    told.press("Enter")
    expect(page.get_by_text("What a brilliant question!").first).to_be_visible()
    assert layout_faults(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert layout_faults(page) == []
    page.get_by_role("button", name="Send to annotation").click()
    expect(page.get_by_text("2 responses went to people.")).to_be_visible()
    assert GradedResponse.objects.filter(run=run).count() == 2


def test_an_open_alarm_stays_open_and_shows_that_somebody_else_has_sent_it(
    open_page,
    as_researcher,
    team,
    run,  # noqa: F811
    process,
):
    give_rubrics(team.researcher, run)
    trainer = process(Run.objects.get(pk=run.pk))
    alarm = {"signal": "flattery", "since": 6, "share": 0.5, "before": 0.01, "paid": 4.5}
    rows = [judged_response(0, response="What a brilliant question!")]
    told = trainer.event("alarm", 7, places=[{"group": 0, "index": 0}], part="rubric", criterion="Is polite", **alarm)
    trainer.post(trainer.event("rollouts", 7, rollouts=rows), told)
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    page.locator("#alarms summary", has_text="Flattery").press("Enter")
    expect(page.get_by_role("button", name="Send to annotation")).to_be_visible()
    services.ask(team.researcher, run, RunAlarm.objects.get())
    expect(page.get_by_text("1 response sent to people")).to_be_visible(timeout=timeouts.SECONDS * 1000)
    expect(page.get_by_role("button", name="Send to annotation")).to_have_count(0)
    expect(page.locator("#alarms summary", has_text="Flattery")).to_be_focused()
