"""Notices in a browser: they appear by themselves, lead to their subjects, and can be marked as read."""

import json
import os
from pathlib import Path

import pytest
from django.db import transaction
from django.utils import timezone
from playwright.sync_api import expect

from tests.e2e.look import check_look
from tests.e2e.test_accessibility import AXE, LOOK, NAMED, bring_axe
from tests.team import browser
from tests.webapp.experiments.conftest import launch, model, version  # noqa: F401 - fixtures
from tests.webapp.experiments.sweeps.conftest import runs, sweep, wish  # noqa: F401 - fixtures
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401 - fixtures
from webapp.evaluation.models import Evaluation
from webapp.experiments.lifecycle.states import move
from webapp.experiments.models import ChainStep, Run
from webapp.experiments.sweeps import services as sweeps
from webapp.judging.judges.services import create_judge
from webapp.tracking import services as tracking

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# a browser in the background that grants permissions and remembers the notices that it showed
BOXES = """
window.shown = [];
window.newest = null;
window.Notification = class extends EventTarget {
  static permission = "default";
  static async requestPermission() { return (Notification.permission = "granted"); }
  constructor(title, options) { super(); newest = this; shown.push([title, options.body, options.tag]); }
  close() {}
};
document.hasFocus = () => false;
"""


@pytest.fixture
def run(launch) -> Run:  # noqa: F811
    return launch()


def look(page, name: str) -> None:
    """Saves pictures in the folder of TOUCHSTONE_LOOK, so that a person can look at them."""
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{folder}/{name}.png")


@pytest.fixture
def fail(process):
    """`fail(run)`: the process of the run begins, and ends with an error. It uses HTTP, because sockets hear of the server's own changes
    immediately.
    """

    def _fail(run: Run) -> None:
        training = process(run)
        training.post(training.event("state", state="failed", reason="No memory."))

    return _fail


def test_the_heading_of_the_choices_stands_above_them(open_page, as_owner):
    """Browsers give a legend a small margin inside, which put it 2 px to the right of everything else."""
    page = open_page(as_owner)
    page.goto("/settings/notices")
    left = "(node) => { const range = document.createRange(); range.selectNodeContents(node); return range.getBoundingClientRect().left; }"
    assert page.locator("#mail legend").evaluate(left) == page.locator("#mail").evaluate(
        "(node) => node.getBoundingClientRect().left"
    )


def test_a_notice_comes_by_itself_and_leads_to_what_it_is_about(open_page, team, run, fail):
    page = open_page(browser(team.reviewer))
    page.goto(f"/runs/{run.pk}")
    watch = page.get_by_role("button", name="Watch", exact=True)
    watch.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Watching")).to_have_attribute("aria-pressed", "true")
    page.goto("/datasets")
    bell = page.locator("#bell")
    expect(bell).to_have_attribute("data-unread", "0")
    fail(run)
    expect(bell.locator("[data-bell-count]")).to_have_text("2")
    bell.click()
    page.get_by_role("link", name="failed").click()
    page.wait_for_url(f"**/runs/{run.pk}/log")
    expect(page.locator("#bell")).to_have_attribute("data-unread", "1")


def test_the_open_list_says_that_there_is_more(open_page, team, run, fail):
    page = open_page(browser(team.researcher))
    page.goto("/notices")
    expect(page.get_by_role("heading", name="No notices yet")).to_be_visible()
    fail(run)
    expect(page.locator("#notices-news")).to_be_visible()
    page.get_by_role("link", name="Show it").click()
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.get_by_role("heading", name="You have read everything")).to_be_visible()


def test_boxes_are_shown_after_somebody_has_asked_for_them_and_share_one_for_a_sweep(open_page, team, sweep, run, fail):  # noqa: F811
    page = open_page(browser(team.researcher))
    page.context.add_init_script(BOXES)
    page.goto("/settings/notices")
    page.get_by_role("button", name="Show notices in this browser").click()
    expect(page.get_by_text("On.", exact=True)).to_be_visible()
    row = sweep(seeds=1)
    for trial in (1, 2):
        fail(runs(row, trial)[0])
    page.wait_for_function("shown.length === 2")
    (first, body, tag), (_, _, other) = page.evaluate("shown")
    assert "failed" in first and body == "No memory." and tag == other
    page.get_by_role("button", name="Stop showing them").click()
    fail(run)
    expect(page.locator("#bell [data-bell-count]")).to_have_text("4")
    assert page.evaluate("shown.length") == 2
    with page.expect_navigation():  # both notices of the box are read
        page.evaluate("newest.dispatchEvent(new Event('click'))")
    assert page.url.endswith(f"/runs/{runs(row, 2)[0].pk}/log")
    expect(page.locator("#bell [data-bell-count]")).to_have_text("2")


def test_on_a_phone_the_name_of_the_bell_has_the_number_that_it_shows(open_page, team, run, fail):
    fail(run)
    page = open_page(browser(team.researcher))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/datasets")
    bell = page.locator("a.btn.bell")
    expect(bell).to_have_accessible_name("Notices 2")
    page.evaluate(AXE.read_text())
    assert page.evaluate(NAMED) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_datasets_judges_and_models_are_watched_from_their_pages(
    open_page,
    team,
    request,
    theme,
    width,
):
    version, model, endpoint = map(request.getfixturevalue, ("version", "model", "endpoint"))  # noqa: F811
    judge = create_judge(team.researcher, name="Strict", spec={"kind": "criterion"}, endpoint=endpoint).judge
    page = open_page(browser(team.owner), color_scheme=theme)
    bring_axe(page)
    page.set_viewport_size({"width": width, "height": 900})
    for address in (f"/datasets/{version.dataset_id}", f"/judges/{judge.pk}", f"/models/{model.pk}"):
        page.goto(address)
        page.get_by_role("button", name="Watch", exact=True).click()
        expect(page.get_by_role("button", name="Watching")).to_have_attribute("aria-pressed", "true")
        assert page.evaluate(LOOK) == [], address
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), address
        look(page, f"watch-{theme}-{width}-{address.split('/')[1]}")
    page.goto("/settings/notices")
    expect(page.get_by_role("button", name="Stop watching")).to_have_count(3)
    look(page, f"watch-{theme}-{width}-settings")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pages_of_notices_are_for_everybody(open_page, team, sweep, run, theme):  # noqa: F811
    row = sweep(seeds=2)
    for trial in (1, 2):
        for each in runs(row, trial):
            move(each, "failed", reason="The process ended without saying why.")
    move(run, "finished")
    page = open_page(browser(team.researcher), color_scheme=theme)
    bring_axe(page)
    found = {}
    for address in (
        "/notices",
        "/notices?show=all",
        "/settings/notices",
        f"/runs/{run.pk}",
        f"/experiments/sweeps/{row.pk}",
    ):
        page.goto(address)
        found[address] = page.evaluate(LOOK) + (page.evaluate(NAMED) if "notices" in address else [])
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), address
    assert not any(found.values()), found


def test_what_needs_somebody_and_its_notices_fit_every_screen(open_page, team, launch, sweep):  # noqa: F811
    """The longest texts that people meet: the reason of a blocked run, an alert without spaces, a refused step."""
    why = (
        "Step 12 waits. rubric: Strict v1 cannot be asked: The budget is used up: 1,000,000 tokens are spent, and the next call may need "
        "more than is left. Raise its budget on the run's page, and the run continues."
    )
    row, waits = sweep(seeds=1), launch()
    with transaction.atomic():
        sweeps.move(row, row.State.FAILED, "Its runs cannot be launched any more: the version was deleted")
    for state in ("starting", "running", "blocked"):
        move(waits, state, reason=why if state == "blocked" else "")
    ChainStep.objects.create(
        after=waits, workspace=team.workspace, kind="run", name="DPO", asked={}, state="refused", reason="No model",
        decided_at=timezone.now(),
    )  # fmt: skip
    logged = tracking.begin(team.researcher, tracking.experiment(team.researcher, "elsewhere"), "mlflow", name="one")
    said = {"title": "loss_is_not_a_number_" * 8, "text": "x" * 200, "level": "ERROR"}
    tracking.log(logged, tags={"touchstone.alert.1": json.dumps(said)})
    Evaluation.objects.create(workspace=team.workspace, name="Judges", recipe="study", state="paused", problem=why)
    page = open_page(browser(team.researcher))
    bring_axe(page)
    page.emulate_media(reduced_motion="reduce")  # a colour that still changes has too little contrast
    for address, told in (
        ("/", "is blocked"),
        ("/notices", "is blocked"),
        (f"/runs/{logged.run_id}/history", "alerted"),
    ):
        page.goto(address)
        expect(page.get_by_text(told).first).to_be_visible()
        check_look(page)
        for scheme in ("light", "dark"):
            for width in (1280, 390):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 1100})
                look(page, f"needs-{scheme}-{width}-{address.strip('/').replace('/', '-') or 'home'}")
        assert page.evaluate(LOOK) == [], address
