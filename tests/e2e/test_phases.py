"""The phases of a run, as a researcher sees them: planned on the form, drawn behind the curves, with a note about phases that do not begin."""

import os

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults, unfold
from tests.e2e.test_run_page import step_events
from tests.webapp.experiments.conftest import make_version
from trainer.contracts import Preference, Response
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launch
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.browser

WARMER = {"begins": "step", "step": 4, "temperature": "set", "set_to": 1.2}
WAITS = {"begins": "plateau", "window": 8, "temperature": "set", "set_to": 1.4, "name": "hot"}


@pytest.fixture
def run(server, team):
    version = make_version(team.owner)
    RegisteredModel.objects.create(workspace=team.workspace, name="smollm2", source="local", path="/models/smollm2")
    choice = checks.DatasetChoice(id=version.dataset_id)
    config = {"steps": 20, "model": {"name": "smollm2"}, "phases": [WARMER, WAITS]}
    return launch.launch(team.researcher, recipe="policy", config=config, dataset=choice)


def look(page, name: str) -> None:
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def phase_is_drawn(page, chart: str) -> None:
    """Waits until the band from step 4 on is darker than the part before it, at a height where there is no curve. The chart draws the steps as
    they come, so it may not reach step 5 yet when the list of phases has the second one.
    """
    page.wait_for_function(
        """(id) => {
          const { plot } = document.getElementById(id).chart;
          const y = plot.bbox.top + plot.bbox.height - 3;
          const at = (step) => [...plot.ctx.getImageData(Math.round(plot.valToPos(step, "x", true)), y, 1, 1).data].join();
          return plot.scales.x.max >= 6 && at(2.1) === at(3.1) && at(3.1) !== at(4.4) && at(4.4) === at(5.4);
        }""",
        arg=chart,
    )


def test_phases_are_drawn_behind_the_curves_as_they_come(open_page, as_researcher, run, process):
    trainer = process(run)
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    page.wait_for_selector('#connection[data-state="live"]')
    rows = page.get_by_role("list", name="Phases of the run").get_by_role("listitem")
    expect(rows).to_contain_text(
        ["as configured", "not yet: step 4", "not yet: once the mean reward has reached a plateau"]
    )
    for step in range(1, 7):
        begins = [trainer.event("metrics", step, values={"phase/number": 1.0}, histograms={})] if step == 4 else []
        trainer.post(*begins, *step_events(trainer, step))
    expect(rows.nth(1)).to_contain_text("temperature 1.2 from step 4")
    expect(rows.nth(2)).to_contain_text("hot not yet: once")
    page.locator("#chart-reward-mean canvas").wait_for()
    phase_is_drawn(page, "chart-reward-mean")
    expect(page.locator("#chart-phase-number")).to_have_count(0)  # it has no chart
    assert layout_faults(page) == []
    look(page, "phases")
    page.set_viewport_size({"width": 390, "height": 844})
    assert layout_faults(page) == []
    look(page, "phases-phone")
    trainer.post(trainer.event("state", 6, state="finished"))
    expect(rows.nth(2)).to_contain_text(
        "never began: once the mean reward has reached a plateau over 8 steps; phase 1 continued"
    )


def test_the_form_shows_the_phases_beforehand(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/fork")
    rows = page.get_by_role("list", name="Phases of the run").get_by_role("listitem")
    expect(rows).to_contain_text(
        ["as configured step 1", "temperature 1.2 step 4", "hot once the mean reward has reached a plateau"]
    )
    step = unfold(page, "f-phases-0-step")
    step.fill("40")
    step.press("Tab")
    expect(rows.nth(1)).to_contain_text("temperature 1.2 step 40")
    expect(page.get_by_text("the run ends after step 20, so this phase would never begin")).to_be_visible()
    assert layout_faults(page) == []
    look(page, "phases-form")


@pytest.fixture
def comparing(server, team):
    """A run on pairs, which has no reward. It gets other pairs from step 4 on, and learns more slowly after the held-out accuracy is level."""
    pair = (Response(id="a", text="one"), Response(id="b", text="two"))
    judged = (Preference(a="a", b="b", strength=1, rater="r"),)
    version = make_version(team.owner, responses=pair, preferences=judged, domain="code")
    RegisteredModel.objects.create(workspace=team.workspace, name="smollm2", source="local", path="/models/smollm2")
    slower = {"begins": "plateau", "metric": "eval/accuracy", "window": 4, "learning_rate": "times", "lr_times": 0.5}
    plan = [{"begins": "step", "step": 4, "prompts": "some", "domains": ["code"]}, slower]
    config = {"steps": 20, "model": {"name": "smollm2"}, "evaluation": {"every": 2}, "phases": plan}
    return launch.launch(
        team.researcher, recipe="dpo", config=config, dataset=checks.DatasetChoice(id=version.dataset_id)
    )


def in_both(page, name: str) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert layout_faults(page) == []
        look(page, f"{name}-{scheme}")


def test_a_run_on_stored_pairs_has_phases_too(open_page, as_researcher, comparing, process):
    trainer = process(comparing)
    page = open_page(as_researcher)
    page.goto(f"/runs/{comparing.id}")
    page.wait_for_selector('#connection[data-state="live"]')
    for step in range(1, 8):
        values = {"train/loss": 0.7 - step / 50, "optim/lr": 5e-5, "train/pool": 3.0 if step < 4 else 2.0}
        trainer.post(
            trainer.event("metrics", step, values=values | ({"phase/number": 1.0} if step == 4 else {}), histograms={})
        )
    rows = page.get_by_role("list", name="Phases of the run").get_by_role("listitem")
    expect(rows).to_contain_text(
        [
            "as configured from step 1",
            "domains code from step 4",
            "learning rate × 0.5 not yet: once the held-out",
        ]
    )
    page.locator("#chart-train-loss canvas").wait_for()
    phase_is_drawn(page, "chart-train-loss")
    expect(page.locator("#chart-train-pool")).to_be_visible()
    in_both(page, "phases-dpo")

    page.goto(f"/runs/{comparing.id}/fork")
    rows = page.get_by_role("list", name="Phases of the run").get_by_role("listitem")
    expect(rows).to_contain_text(
        [
            "as configured step 1",
            "domains code step 4",
            "learning rate × 0.5 once the held-out accuracy has reached a plateau over 4 evaluations",
        ]
    )
    expect(page.locator("#f-phases-0-temperature")).to_have_count(0)  # nothing is sampled
    window = unfold(page, "f-phases-1-window")
    window.fill("9")
    window.press("Tab")
    expect(page.get_by_text("the phase cannot begin before step 21, and the run ends after step 20")).to_be_visible()
    in_both(page, "phases-dpo-form")


def test_a_phase_changes_the_order_on_the_form_with_shares_where_it_mixes(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/fork")
    rows = page.get_by_role("list", name="Phases of the run").get_by_role("listitem")
    order = unfold(page, "f-phases-0-order")
    expect(page.locator("#f-phases-0-easy_share")).to_be_hidden()
    order.select_option("uncertain")
    expect(rows.nth(1)).to_contain_text("temperature 1.2, the most uncertain first step 4")
    order.select_option("mixed")
    for name, share in (("data", "1"), ("uncertain", "3")):
        page.locator(f"#f-phases-0-{name}_share").fill(share)
        page.locator(f"#f-phases-0-{name}_share").press("Tab")
    expect(rows.nth(1)).to_contain_text("order: 25% by data, 75% by uncertainty step 4")
    page.locator("#f-phases-0-easy_share").fill("1")
    page.locator("#f-phases-0-easy_share").press("Tab")
    expect(
        page.get_by_text("no training prompt has a pass rate yet (`meta.pass_rate`), so there is no order").first
    ).to_be_visible()
    in_both(page, "phases-order")


def test_a_phase_of_rounds_begins_with_one_and_a_recipe_without_phases_says_what_it_has(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto("/runs/new?recipe=iterative_dpo&at.phases.0.step=12&at.phases.0.temperature=set")
    step = unfold(page, "f-phases-0-step")
    expect(page.locator("#f-phases-0-verification")).to_have_count(0)  # the run learns pairs, not rewards
    step.press("Tab")
    step.fill("15")
    step.press("Tab")
    expect(page.get_by_text("step 15 is in the middle of one; choose 11 or 21").first).to_be_visible()
    step.fill("21")
    step.press("Tab")
    rows = page.get_by_role("list", name="Phases of the run").get_by_role("listitem")
    expect(rows).to_contain_text(["as configured step 1", "temperature 1 step 21"])
    expect(page.get_by_text("in the middle of one")).to_have_count(0)
    in_both(page, "phases-rounds")
    page.goto("/runs/new?recipe=alternating")
    expect(page.get_by_text("No phases: its warm-up and its turns set who is trained and when.")).to_be_visible()
    in_both(page, "phases-none")


def test_a_stage_that_the_run_ends_before_is_marked_while_one_types(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto("/runs/new?recipe=chain")
    rows = page.get_by_role("list", name="Phases of the run").get_by_role("listitem")
    expect(rows.nth(2)).to_contain_text("reinforce step 26")
    expect(rows.get_by_text("never entered")).to_have_count(0)
    page.locator("#f-steps").fill("20")
    page.locator("#f-steps").press("Tab")
    expect(rows.nth(2)).to_contain_text("never entered: the run ends with step 20")
    expect(rows.get_by_text("never entered")).to_have_count(1)
    expect(
        page.get_by_text("never begins: the run ends with step 20, and the stage would begin with step 26")
    ).to_be_visible()
    in_both(page, "stages-form")
