"""The line of runs in a browser: it moves by itself, and priorities are changed by keyboard."""

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from tests.e2e.look import faults
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.experiments.launch import services as launch
from webapp.experiments.lifecycle import waiting_line
from webapp.experiments.models import Experiment, Run

pytestmark = pytest.mark.browser


def test_the_line_moves_and_a_raised_run_comes_first(open_page, as_researcher, settings, cast, run):  # noqa: F811
    settings.MAX_RUNNING_RUNS = 1
    second, third, other = (
        launch.fork(cast.researcher, run, overrides={}, name=name) for name in ("two", "three", "x")
    )
    theirs = Experiment.objects.create(workspace=cast.outsider.workspace, name="Theirs")
    Run.objects.filter(id=other.id).update(experiment=theirs)
    now = timezone.now()
    Run.objects.filter(id=run.id).update(state="running", eta_s=400, heartbeat_at=now, state_at=now, started_at=now)
    Run.objects.filter(state="queued").update(next_try_at=None)
    waiting_line.tell()
    page = open_page(as_researcher)
    page.goto("/experiments")
    page.get_by_role("link", name="The line").click()
    waiting = page.get_by_role("region", name="Runs that wait").locator("tbody tr")
    expect(waiting).to_have_count(3)
    expect(waiting.nth(0)).to_contain_text("a run of another workspace")
    expect(waiting.nth(1)).to_contain_text("two")
    raised = page.get_by_role("button", name="Raise the priority of three")
    raised.focus()
    page.keyboard.press("Enter")
    expect(waiting.nth(1)).to_contain_text("three")
    expect(waiting.nth(1)).to_contain_text("High")
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            assert faults(page) == []
    link = waiting.get_by_role("link", name="three")
    link.focus()
    Run.objects.filter(id=other.id).update(state="stopped")
    expect(waiting).to_have_count(2)  # without a reload
    expect(link).to_be_focused()  # nor does it take the key's place away
    page.goto(f"/runs/{third.id}")
    expect(page.get_by_text("Priority:")).to_be_visible()
    page.get_by_role("button", name="Lower the priority of three").click()
    expect(page.get_by_role("button", name="Raise the priority of three")).to_be_visible()
    assert faults(page) == [] and Run.objects.get(id=second.id).priority == 0
