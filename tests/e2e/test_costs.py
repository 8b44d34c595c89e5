"""The page of costs in a browser: it says what was measured, passes axe in both themes, and fits a phone."""

import os
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from tests.e2e.look import check_look
from tests.e2e.test_accessibility import AXE, in_both_themes
from tests.webapp.experiments.conftest import launch, model, version  # noqa: F401  fixtures
from webapp.experiments.lifecycle import services as lifecycle
from webapp.experiments.lifecycle import states
from webapp.experiments.models import Run
from webapp.usage import spans
from webapp.usage.models import MonthlyUse, WorkKind, WorkSpan
from webapp.usage.works import MeteredWork

pytestmark = pytest.mark.browser


def save_pictures(page, name):
    """Saves pictures in the folder of TOUCHSTONE_LOOK, so that a person can look at them."""
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{folder}/costs-{name}-{scheme}.png")


def test_the_costs_of_runs_fit_every_screen_and_lead_to_the_runs(team, open_page, as_researcher, launch):  # noqa: F811
    if not AXE.exists():
        pytest.skip("axe-core is not there: run `make setup`")
    page, now = open_page(as_researcher), timezone.now()
    assert in_both_themes(page, "/costs?by=run") == [], "while there is nothing"
    for hours, gpus in ((3, 0), (1, 0.5), (2, None)):
        Run.objects.filter(pk=(run := launch()).pk).update(name=f"lasted {hours} hours")
        work = MeteredWork(run.experiment.workspace_id, WorkKind.RUN, run.pk, run.created_by_id, run.experiment_id)
        spans.begin(work, 1, now - timedelta(hours=hours), gpus)
        spans.end(WorkKind.RUN, run.pk, now, on_gpu=None)
    run = launch()
    Run.objects.filter(pk=run.pk).update(name="paused and resumed")
    for state in ("starting", "running"):
        states.move(run, state)
    lifecycle.pause(team.researcher, run)
    states.move(run, "paused")
    lifecycle.resume(team.researcher, run)
    for state in ("starting", "running", "finished"):
        states.move(run, state)
    for attempt, hour in ((1, 9), (2, 2)):
        began = now - timedelta(hours=hour)
        WorkSpan.objects.filter(work=run.pk, attempt=attempt).update(
            began=began, ended=began + timedelta(minutes=45), gpus=2
        )
    MonthlyUse.objects.create(
        workspace=team.workspace, month=now.date().replace(day=1), kind="evaluation", work=1, calls=9, prompt_tokens=123456,
        completion_tokens=789, money="1.25", unpriced=3,
    )  # fmt: skip
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert in_both_themes(page, "/costs?by=run") == [], width
        check_look(page)
    page.goto("/costs?by=run&sort=minutes")
    expect(page.get_by_role("columnheader", name="People's minutes", exact=True)).to_be_in_viewport(ratio=1)
    page.goto("/costs?by=run")
    expect(page.locator("tfoot")).to_contain_text("7.50")
    expect(page.locator("tfoot")).to_contain_text("1 unknown")
    save_pictures(page, "runs")
    total = page.locator("tfoot tr > *").first
    expect(total).to_have_css("border-top-style", "solid")  # a sum stands below a line
    page.get_by_label("Group by").select_option("person")  # acts at once
    expect(page.get_by_role("columnheader", name="Person")).to_be_visible()
    page.go_back()
    row = page.locator("tbody tr").filter(has_text="paused and resumed")
    expect(row.locator("td").first).to_have_text("1.50")
    expect(row.locator("td").nth(1)).to_have_text("3.00")
    assert in_both_themes(page, "/costs?by=month") == []
    check_look(page)
    page.goto(page.url.replace("by=month", "by=run"))
    page.get_by_role("link", name="lasted 3 hours").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("lasted 3 hours")
    page.get_by_role("link", name="costs", exact=True).click()
    expect(page.get_by_text("Show all work")).to_be_visible()
    assert in_both_themes(page, page.url.removeprefix(page.url.split("/costs")[0])) == [], "of one run"
    check_look(page)
    expect(page.locator("tbody tr")).to_have_count(1)
