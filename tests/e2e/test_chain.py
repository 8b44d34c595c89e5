"""A chain in a browser. By keyboard, a run is put after a run, and an evaluation after that run. The chain is drawn, and steps are
cancelled.
"""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import check_look
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from tests.webapp.annotation.answers import make_project
from webapp.experiments.after import rounds
from webapp.experiments.models import ChainStep, Run

pytestmark = pytest.mark.browser


def test_a_chain_is_put_together_drawn_and_goes_on(open_page, as_researcher, run):  # noqa: F811
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    page.get_by_role("link", name="Chain").click()
    page.get_by_role("button", name="Then train… behind run 1").press("Enter")
    page.get_by_role("button", name="Continue").press("Enter")
    page.get_by_label("Begin with the model that “run 1” trains").uncheck()
    page.locator("#f-name").fill("second")
    check_look(page)
    page.get_by_role("button", name="Launch afterwards").click()
    page.wait_for_url(f"**/runs/{run.id}/chain")
    chain = page.locator("#chain")
    expect(chain).to_contain_text("Waits until run 1 has finished")
    page.get_by_role("button", name="Then evaluate… behind second").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("how good")
    dialog.get_by_role("button", name="Add the step").click()
    expect(chain).to_contain_text("Waits until “second” before it was launched and has finished")
    check_look(page)
    Run.objects.filter(id=run.id).update(state="finished")
    rounds.take_up(run.id)
    expect(chain.get_by_role("link", name="second")).to_have_count(2)  # without a reload
    chain.get_by_role("link", name="second").last.click()
    page.get_by_role("button", name="Cancel how good").click()
    expect(page.get_by_role("heading", name="Cancel “how good”?")).to_be_visible()
    page.get_by_role("button", name="Cancel the step").click()
    expect(page.locator("#chain")).to_contain_text("Cancelled")
    assert set(ChainStep.objects.values_list("state", flat=True)) == {"launched", "cancelled"}


def test_a_run_waits_for_a_project_and_starts_on_its_answers(open_page, as_researcher, run, team):  # noqa: F811
    project = make_project(team, "pairwise", n=2, overlap=1)
    page = open_page(as_researcher)
    page.goto(f"/projects/{project.pk}/answers")
    page.get_by_role("link", name="Then", exact=True).click()
    expect(page.get_by_text("Not settled: 2 tasks still lack answers.")).to_be_visible()
    page.get_by_role("button", name="Wait and train").click()
    expect(page.get_by_text("Choose a run.")).to_be_visible()
    page.get_by_label("Like this run").select_option(str(run.pk))
    page.get_by_label("Name").fill("on the new answers")
    check_look(page)
    page.get_by_role("button", name="Wait and train").click()
    expect(page.locator(".chain-node")).to_contain_text("Waits: 2 tasks still lack answers")
    check_look(page)
    page.get_by_role("button", name="Cancel on the new answers").click()
    expect(page.get_by_role("heading", name="Cancel “on the new answers”?")).to_be_visible()
    page.get_by_role("button", name="Cancel the step").click()
    expect(page.locator(".chain-node")).to_contain_text("Cancelled")
    assert ChainStep.objects.get().project == project
