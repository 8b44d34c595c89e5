"""The line of waiting runs in a browser. It moves by itself, priorities are changed by keyboard, and an evaluation waits in it."""

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from tests.e2e.look import layout_faults, picture
from tests.e2e.test_accessibility import LOOK, bring_axe
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.evaluation.launch import services as evaluating
from webapp.evaluation.work import running
from webapp.experiments.launch import services as launch
from webapp.experiments.lifecycle import waiting_line
from webapp.experiments.models import Experiment, Run
from webapp.inference.models import RegisteredModel
from webapp.weights.models import WeightsJob

pytestmark = pytest.mark.browser


def test_the_line_moves_and_a_raised_run_comes_first(open_page, as_researcher, settings, team, run):  # noqa: F811
    settings.MAX_RUNNING_RUNS = 1
    second, third, other = (
        launch.fork(team.researcher, run, overrides={}, name=name) for name in ("two", "three", "x")
    )
    theirs = Experiment.objects.create(workspace=team.outsider.workspace, name="Theirs")
    Run.objects.filter(id=other.id).update(experiment=theirs)
    now = timezone.now()
    Run.objects.filter(id=run.id).update(state="running", eta_s=400, heartbeat_at=now, state_at=now, started_at=now)
    Run.objects.filter(state="queued").update(next_try_at=None)
    waiting_line.update_waiting_reasons()
    page = open_page(as_researcher)
    page.goto("/experiments")
    page.get_by_role("link", name="The line").click()
    waiting = page.get_by_role("region", name="Runs and jobs that wait").locator("tbody tr")
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
            assert layout_faults(page) == []
    link = waiting.get_by_role("link", name="three")
    link.focus()
    Run.objects.filter(id=other.id).update(state="stopped")
    expect(waiting).to_have_count(2)  # without a reload
    expect(link).to_be_focused()  # and the focus stays where it is
    page.goto(f"/runs/{third.id}")
    expect(page.get_by_text("Priority:")).to_be_visible()
    page.get_by_role("button", name="Lower the priority of three").click()
    expect(page.get_by_role("button", name="Raise the priority of three")).to_be_visible()
    assert layout_faults(page) == [] and Run.objects.get(id=second.id).priority == 0


def test_an_evaluation_in_the_line_says_so_on_every_page(open_page, as_researcher, settings, team, run):  # noqa: F811
    settings.MAX_RUNNING_RUNS = 1
    model = RegisteredModel.objects.create(workspace=team.workspace, name="small", source="hub", path="o/small")
    config = {"writers": [{"model": model.pk}], "split": "", "max_new_tokens": 16}
    row = evaluating.create(team.researcher, recipe="generate", config=config, dataset=run.dataset_version)
    second = launch.fork(team.researcher, run, overrides={}, name="two")
    now = timezone.now()
    Run.objects.filter(id=run.id).update(state="running", eta_s=400, heartbeat_at=now, state_at=now, started_at=now)
    running.run(row.pk)
    WeightsJob.objects.update(next_try_at=None)
    Run.objects.filter(state="queued").update(next_try_at=None)
    waiting_line.update_waiting_reasons()
    running.run(row.pk)
    job, why = row.jobs.get(), "1 may run at once (MAX_RUNNING_RUNS)"
    page = open_page(as_researcher)
    bring_axe(page)
    pages = {"line": "/experiments/line", "evaluation": f"/evaluations/{row.pk}", "job": f"/jobs/{job.pk}", "home": "/"}
    for name, address in pages.items():
        for scheme in ("light", "dark"):
            for width in (1280, 390):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 900})
                page.goto(address)
                expect(page.get_by_text(why).first).to_be_visible()
                picture(page, f"{name}-{scheme}-{width}", full_page=True)
                assert layout_faults(page) == []
            page.set_viewport_size({"width": 1280, "height": 900})
            assert page.evaluate(LOOK) == []
    page.goto("/experiments/line")
    waiting = page.get_by_role("region", name="Runs and jobs that wait").locator("tbody tr")
    expect(waiting.nth(0)).to_contain_text(f"{job.title} Generate for {row.name}")
    expect(waiting.nth(1)).to_contain_text("two")
    page.get_by_role("button", name=f"Lower the priority of {job.title}").click()
    expect(waiting.nth(0)).to_contain_text("two")
    page.goto(f"/evaluations/{row.pk}")
    page.get_by_role("button", name="Raise the priority of its jobs").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("High", exact=True)).to_be_visible()
    assert [each.priority for each in (WeightsJob.objects.get(), Run.objects.get(pk=second.pk))] == [1, 0]
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    assert WeightsJob.objects.get().state == "stopped"
