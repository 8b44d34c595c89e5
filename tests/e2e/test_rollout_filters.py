"""The filters of the page that makes a dataset of a run's rollouts, filled in like a person does."""

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.seed import seed_run
from tests.webapp.experiments.conftest import make_version
from webapp.experiments.launch import checks, services
from webapp.experiments.models import Rollout
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.browser


@pytest.fixture
def run(server, team):
    version = make_version(team.owner)
    RegisteredModel.objects.create(workspace=team.workspace, name="smollm2", source="local", path="/models/smollm2")
    choice = checks.DatasetChoice(id=version.dataset_id)
    made = services.launch(team.researcher, recipe="policy", config={"model": {"name": "smollm2"}}, dataset=choice)
    seed_run(made, steps=4, state="finished")
    Rollout.objects.filter(run=made).update(example_key="e0")
    return made


def test_what_is_filled_in_counts(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/rollouts/dataset")
    best, least = page.get_by_role("checkbox", name="Best of each prompt"), page.get_by_label("at least")
    expect(best).not_to_be_checked()
    page.get_by_role("textbox", name="of each prompt").fill("2")
    expect(best).to_be_checked()
    least.fill("0.2")
    least.fill("")
    expect(page.get_by_role("checkbox", name="Reward or judge")).not_to_be_checked()
    page.get_by_role("checkbox", name="Truncated").uncheck()
    page.get_by_role("button", name="Count again").click()
    expect(page.get_by_role("button", name="Create the dataset of 2 responses")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    wide = page.locator(".sift").evaluate("node => node.scrollWidth > node.parentElement.clientWidth")
    assert not wide and layout_faults(page) == []
    least.fill("much")
    page.get_by_role("button", name="Count again").click()
    expect(least).to_have_accessible_description("Must be a number, or empty.")
