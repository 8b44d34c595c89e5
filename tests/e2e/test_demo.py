"""A newcomer's first use in a real browser, through every real service, on a model that is small enough to be fast."""

import re
from collections.abc import Iterable

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.look import unfold
from tests.e2e.test_run_page import watch
from tests.e2e.tiny import import_examples, make_model
from tests.stack import ROOT, Stack
from trainer.contracts import jsonlines

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.slow]

LONG_MS = 180_000  # time for Ray to start a process that imports torch, on a busy machine
NUMBERS = {
    "steps": 2000,  # more steps than the test waits for: the test presses Stop
    "rollout.prompts_per_step": 2,
    "rollout.group_size": 4,
    "rollout.max_new_tokens": 16,
    "evaluation.every": 2,
    "evaluation.max_examples": 4,
}


@pytest.fixture(scope="module")
def demo_prompts(stack: Stack) -> str:
    """The name of the dataset that `make run` loads too."""
    rows = jsonlines.rows((ROOT / "demo" / "prompts.jsonl").read_text())
    with stack.api() as api:
        import_examples(api, stack, "Demo prompts", rows)
    return "Demo prompts"


def test_a_newcomer_launches_the_demo_watches_it_move_and_stops_it(page: Page, stack: Stack, demo_prompts: str):
    register_model(page, "newcomer", str(make_model(stack)))
    run_id = launch(page, demo_prompts, "newcomer", NUMBERS.items())
    watch(page, run_id, lambda: wait_for_a_step(page))
    expect(page.locator("[data-bind=result]").first).to_contain_text("→", timeout=LONG_MS)
    read_a_rollout(page)
    stop(page)


def register_model(page: Page, name: str, directory: str) -> None:
    page.goto("/models")
    page.get_by_role("link", name="Register a model").first.click()
    page.locator("#id_name").fill(name)
    page.locator("#id_path").fill(directory)
    page.get_by_role("button", name="Register", exact=True).click()
    expect(page.locator("h1")).to_have_text(name)


def launch(page: Page, dataset: str, model: str, numbers: Iterable[tuple[str, int]]) -> int:
    """Fills in the form of a new run and launches it; the run's id."""
    page.goto("/experiments")
    page.get_by_role("link", name=re.compile("New run|Set up the first run")).first.click()
    card = page.locator("#recipe-policy")
    card.get_by_role("link", name=re.compile("Set up")).click()
    version = page.locator("#f-dataset option", has_text=dataset).first.get_attribute("value")
    change(page, "f-dataset", lambda field: field.select_option(version))
    change(page, "f-model-name", lambda field: field.select_option(model))
    for path, value in numbers:
        change(page, f"f-{path.replace('.', '-')}", lambda field, value=value: enter(field, str(value)))
    page.locator(".launch").click()
    page.wait_for_url(re.compile(r"/runs/\d+$"))
    return int(page.url.rsplit("/", 1)[1])


def change(page: Page, field: str, act) -> None:
    """Changes a field. Every change sends the form to the server for checks; the next change may come after the answer is drawn."""
    with page.expect_response(lambda response: response.request.method == "POST") as checked:
        act(unfold(page, field))
    assert checked.value.ok
    expect(page.locator("#run-form")).not_to_have_class(re.compile("htmx-request"))


def enter(field, value: str) -> None:
    field.fill(value)
    field.press("Tab")


def wait_for_a_step(page: Page) -> None:
    """Waits until the page shows a new step, which it hears of over its websocket."""
    step = page.locator("[data-bind=step]").first
    expect(step).not_to_have_text(step.inner_text(), timeout=LONG_MS)


def read_a_rollout(page: Page) -> None:
    """Reads the responses of a step and what each criterion found, and then sees the news of a later step on the same page."""
    page.get_by_role("link", name="Rollouts", exact=True).click()
    shown = page.locator("#step-shown")
    expect(shown).to_have_text(re.compile(r"^\d+$"))
    group = page.locator(".group").first
    expect(group.locator(".prompt-text")).not_to_be_empty()
    criterion = group.locator(".response").first.locator(".criterion").first
    expect(criterion.locator(".criterion-word")).to_have_text(re.compile("^(met|not met)$"))
    expect(criterion.locator(".criterion-points")).to_have_text(re.compile(r"^[+−]\d"))
    before = shown.inner_text()
    page.locator("#rollout-news").click()
    expect(shown).not_to_have_text(before)
    expect(page.locator(".response").first).to_be_visible()


def stop(page: Page) -> None:
    page.get_by_role("button", name="Stop", exact=True).click()
    state = page.locator(".run-status [data-bind=state]").first
    expect(state).to_have_text("Stopped", timeout=LONG_MS)
    expect(page.locator("form[action$='/resume'] button")).to_be_visible()
