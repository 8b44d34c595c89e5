"""A sweep, as a researcher makes it: it begins with a run, shows a wrong value at its field, is launched, and shows its trials as they get
values.
"""

import math
import random
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.look import layout_faults
from tests.e2e.seed import seed_run
from tests.e2e.test_accessibility import AXE, LOOK
from tests.e2e.test_runs_table import photograph
from tests.webapp.experiments.conftest import make_version
from webapp.experiments import table_facts
from webapp.experiments.launch import checks, services
from webapp.experiments.models import Run, Sweep, SweepRun
from webapp.experiments.sweeps import rounds
from webapp.experiments.sweeps import services as sweeping
from webapp.experiments.sweeps.checking import Wish
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.browser
METRIC = "eval/rubric_score"


@pytest.fixture
def run(server, team) -> Run:
    version = make_version(team.owner)
    RegisteredModel.objects.create(
        workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/models/smollm2"
    )
    choice = checks.DatasetChoice(id=version.dataset_id)
    config = {"steps": 60}
    made = services.launch(team.researcher, recipe="policy", config=config, dataset=choice, name="first try")
    return seed_run(made, steps=60, state="finished")


def come_to(sweep: Sweep, worth) -> None:
    """Finishes the runs of the sweep, except those of the last trial. If `worth(values, seed)` is None, the run has failed."""
    last = sweep.trials.order_by("-number").first()
    for row in SweepRun.objects.filter(trial__sweep=sweep).exclude(trial=last).select_related("trial", "run"):
        value = worth(row.trial.values, row.seed)
        Run.objects.filter(pk=row.run_id).update(state="failed" if value is None else "finished", step=60)
        if value is not None:
            fact = table_facts.Fact("metric", sweep.metric, number=value, low=value, high=value, step=60)
            table_facts.keep(sweep.workspace_id, row.run_id, [fact])
    rounds.advance(sweep.pk)


def test_a_sweep_is_made_from_a_run_and_what_is_wrong_stands_at_its_field(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto("/experiments/sweeps")
    assert layout_faults(page) == []
    photograph(page, "sweeps-none")
    page.goto(f"/runs/{run.pk}")
    page.get_by_label("More", exact=True).click()
    page.get_by_role("link", name="Sweep from this run").click()
    page.wait_for_load_state()  # the form is there before its script has run
    page.get_by_label("Key", exact=True).select_option("optim.lr")
    expect(page.get_by_text("the run had")).to_be_visible()
    values = page.get_by_label("Values", exact=True)
    values.fill("1e-4, 3e-4, -1")
    values.press("Enter")
    expect(page.locator("#h-values-0")).to_contain_text("-1")
    assert layout_faults(page) == []
    photograph(page, "sweep-form-problem")
    values.fill("1e-5 to 1e-3")
    values.press("Enter")
    page.get_by_label("Spread").select_option("log")
    page.get_by_role("button", name="Add a key").click()
    page.get_by_label("Key", exact=True).nth(1).select_option("rollout.truncated")
    page.get_by_label("Values", exact=True).nth(1).fill("train, mask")
    page.get_by_label("Trials", exact=True).fill("6")
    page.get_by_label("Trials", exact=True).press("Enter")
    expect(page.locator(".derived")).to_contain_text("18")
    page.get_by_label("Train together").check()
    expect(page.locator("#h-together")).to_contain_text("share a process")
    page.evaluate(AXE.read_text())
    assert page.evaluate(LOOK) == []
    assert layout_faults(page) == []
    photograph(page, "sweep-form")
    page.get_by_role("button", name="Launch sweep").click()
    expect(page.get_by_role("heading", name="No trial yet")).to_be_visible()
    photograph(page, "sweep-waits")
    made = Sweep.objects.get()
    assert made.together
    assert (made.wanted, made.seeds, [axis["path"] for axis in made.axes]) == (6, 3, ["optim.lr", "rollout.truncated"])


def test_a_change_of_a_field_does_not_press_the_last_button_again(open_page, as_researcher, run):
    """The choice leaves the focus on the button, as a click does in Safari. An earlier version then added another key."""
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.pk}/sweep")
    page.wait_for_load_state()
    keys = page.get_by_label("Key", exact=True)
    page.get_by_role("button", name="Add a key").click()
    expect(keys).to_have_count(2)
    with page.expect_response(lambda response: response.request.method == "POST") as sent:
        keys.nth(1).select_option("rollout.truncated")
    assert "rollout.truncated" in sent.value.request.post_data and "&action=" not in sent.value.request.post_data
    expect(page.get_by_text("Truncated: the run had train")).to_be_visible()
    expect(keys).to_have_count(2)


def is_loaded_again_as_it_was_left(page: Page) -> None:
    """A sweep that is under way is loaded again every few seconds. The order of its trials and the open table stay."""
    page.locator("#trials-table").get_by_role("button", name="Trial").click()
    first = page.locator("#trials-table tbody tr").first.locator("td").first
    expect(first).to_have_text("16")
    page.evaluate("() => (document.getElementById('standing').dataset.old = 'yes')")
    expect(page.locator("#standing:not([data-old])")).to_be_visible()
    expect(first).to_have_text("16")
    expect(page.locator("#trials-table th").first).to_have_attribute("aria-sort", "descending")
    expect(page.locator("#contour-table")).to_be_visible()


def test_trials_are_compared_by_mean_and_interval_and_more_are_added(open_page, as_researcher, team, run):
    axes: list[dict[str, Any]] = [
        {"path": "optim.lr", "low": 1e-5, "high": 1e-2, "scale": "log"},
        {"path": "rollout.truncated", "values": ["train", "mask"]},
        {"path": "model.lora.rank", "low": 4, "high": 64, "scale": "log"},
    ]
    choice = checks.DatasetChoice(id=run.data.dataset_id)
    wish = Wish("policy", run.config, choice, axes, trials=16, at_once=16, source=run, experiment="rates")
    sweep = sweeping.launch(team.researcher, wish)
    rounds.advance(sweep.pk)
    draw = random.Random(3)  # noqa: S311 - a picture, not a secret

    def worth(values, seed):
        if values["optim.lr"] > 3e-3 and seed == 2:
            return None
        near = 1 - abs(4 + math.log10(values["optim.lr"])) / 3
        return 0.3 + 0.4 * near + 0.05 * (values["rollout.truncated"] == "mask") + draw.gauss(0, 0.02)

    come_to(sweep, worth)
    page = open_page(as_researcher)
    page.goto(f"/experiments/sweeps/{sweep.pk}")
    expect(page.get_by_role("status").first).to_contain_text("16 of 16 trials launched")
    expect(page.locator("#trials-table tbody tr")).to_have_count(16)
    expect(page.locator(".parallel polyline")).to_have_count(10)
    expect(page.locator("section[aria-labelledby=weights]")).to_contain_text("optim.lr")
    expect(page.locator(".contour-dot")).to_have_count(10)
    page.get_by_label("Horizontal axis").select_option("model.lora.rank")
    page.wait_for_url("**x=model.lora.rank**")
    expect(page.get_by_label("Vertical axis")).to_have_value("optim.lr")
    page.get_by_text("The same as a table").press("Enter")
    expect(page.locator("#contour-table tbody tr")).to_have_count(10)
    page.evaluate(AXE.read_text())
    assert page.evaluate(LOOK) == []
    assert layout_faults(page) == []
    photograph(page, "sweep")
    is_loaded_again_as_it_was_left(page)
    page.get_by_role("button", name="Add trials").click()
    page.get_by_label("Trials to add").fill("2")
    page.get_by_role("dialog").get_by_role("button", name="Add trials").click()
    expect(page.get_by_role("status").first).to_contain_text("16 of 18 trials launched")
    failed = page.get_by_role("button", name="Resume failed runs")
    failed.click()
    expect(page.get_by_text("failed runs wait in the line again")).to_be_visible()
    expect(failed).to_have_count(0)
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("status").first).to_be_visible()
    sweep.refresh_from_db()
    assert sweep.state in ("stopping", "stopped")
    page.get_by_role("link", name="Sweep again").click()
    expect(page.get_by_label("Values", exact=True)).to_have_count(3)
    expect(page.get_by_label("Values", exact=True).first).to_have_value("1e-05 to 0.01")
    expect(page.get_by_text("Truncated: the config of the sweep has train")).to_be_visible()
    expect(page.locator(".derived")).to_contain_text("54")
    assert layout_faults(page) == []
    photograph(page, "sweep-again")
    page.goto("/experiments/sweeps")
    assert layout_faults(page) == []
    photograph(page, "sweeps")


def test_a_sweep_of_many_keys_stays_within_the_window(open_page, as_researcher, team, run):
    keys = {
        "optim.lr": 1e-4,
        "optim.beta1": 0.9,
        "optim.grad_clip": 1.0,
        "optim.weight_decay": 0.1,
        "rollout.temperature": 0.7,
    }
    axes: list[dict[str, Any]] = [{"path": key, "values": [value, value / 2]} for key, value in keys.items()]
    choice = checks.DatasetChoice(id=run.data.dataset_id)
    wish = Wish("policy", run.config, choice, axes, trials=2, at_once=2, source=run, experiment="many keys")
    sweep = sweeping.launch(team.researcher, wish)
    rounds.advance(sweep.pk)
    page = open_page(as_researcher)
    page.goto(f"/experiments/sweeps/{sweep.pk}")
    expect(page.locator("#trials-table tbody tr")).to_have_count(2)
    assert layout_faults(page) == []
