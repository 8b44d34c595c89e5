"""From a file of compared answers to a policy that people compare with its base model, each step in the browser: a reward model, a policy
that it rewards, *Try it*, twenty comparisons by two people, and the win rate.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests import fork_server
from tests.e2e.importing import import_file
from tests.e2e.test_demo import LONG_MS, change
from tests.e2e.test_second_round import launch_run, run_training
from tests.e2e.workbench import wait_until_sent
from tests.trainer.conftest import tiny_dir  # noqa: F401 - a fixture
from webapp.annotation.models import Answer, Project
from webapp.inference.models import RegisteredModel
from webapp.inference.serving import process

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAIRS = 10
ONCE: dict[str, Any] = {"steps": 1, "evaluation-every": 0, "evaluation-max_examples": 0}
POLICY: dict[str, Any] = {
    "rollout-prompts_per_step": 2,
    "rollout-group_size": 2,
    "rollout-max_new_tokens": 12,
    "optim-lr": 0.05,  # after one step the policy must write something different
}


@pytest.fixture
def tiny(server, team, settings, tiny_dir) -> Iterator[RegisteredModel]:  # noqa: F811
    """The base model. The processes that answer for it and for the policy end with the test."""
    settings.VAR = Path(tempfile.mkdtemp(prefix="ts-"))  # the path of a socket must be short
    settings.MODEL_COMMAND = [*fork_server.command(), "model-server"]
    yield RegisteredModel.objects.create(workspace=team.workspace, name="tiny", source="local", path=str(tiny_dir))
    for child in process._children:
        child.stdin.close()
        child.wait(30)
    process._children.clear()
    shutil.rmtree(settings.VAR)


def import_pairs(page: Page, folder: Path) -> None:
    rows = [
        {"prompt": f"Name a fruit, number {i}.", "chosen": f"An apple, {i}.", "rejected": f"What a question, {i}!"}
        for i in range(PAIRS)
    ]
    file = folder / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    import_file(page, file, "TRL preference", "Fruit")


def use_as(page: Page, model: RegisteredModel, recipe: str, role: str) -> None:
    page.goto(f"/models/{model.pk}")
    page.get_by_text({"Base": "Train it further", "Reward": "Reward a run"}[role]).click()
    page.locator(".family li", has_text=recipe).get_by_role("link", name=re.compile(f"^{role}:")).click()


def ask_and_send(page: Page) -> None:
    """Sends every prompt of the dataset, by keyboard."""
    for number in range(1, PAIRS + 1):
        page.get_by_text(f"{number} of {PAIRS}", exact=True).wait_for()
        page.locator("h1").click()  # keys do nothing while a person types
        page.keyboard.press("a")
        for column in page.locator(".try-answer").all():
            column.get_by_text(re.compile(r"\d+ tokens ·")).wait_for(timeout=LONG_MS)
        page.keyboard.press("s")
        page.get_by_text(f"Sent to Tried answers, {number} task").wait_for()
        page.keyboard.press("n")


def compare(chromium: Browser, url: str, link: str, name: str, key: str) -> None:
    """Joins, and prefers one model in every pair, by keyboard alone."""
    context = chromium.new_context(base_url=url, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto("/join/" + link.rsplit("/", 1)[1])
    page.get_by_label("Your name").fill(name)
    page.get_by_label("Email").fill(f"{name.lower()}@example.com")
    page.get_by_label("Password").fill("twelve letters")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Tried answers").click()
    before = ""
    for _ in range(PAIRS):
        prompt = page.locator("#work-prompt")
        expect(prompt).not_to_have_text(before)
        expect(page.locator("#work-widget")).not_to_have_attribute("inert", "")  # earlier keys would be lost
        before = prompt.inner_text()
        page.keyboard.press(key)
        expect(page.locator(".work-scale :checked")).to_have_count(1)
        page.keyboard.press("Control+Enter")
    page.get_by_text("Nothing waits for you").wait_for(timeout=LONG_MS)
    wait_until_sent(page)
    context.close()


def wins(model: str) -> int:
    """The number of answers that prefer this model, on either side."""
    found = 0
    for answer in Answer.objects.select_related("assignment__task__example"):
        responses = {each["id"]: each["origin"] for each in answer.assignment.task.example.content["responses"]}
        subject = answer.assignment.task.subject
        better = subject["b"] if answer.content["strength"] > 0 else subject["a"]
        found += responses[better] == model
    return found


def test_pairs_become_a_reward_a_policy_and_a_win_rate(
    open_page, chromium: Browser, as_researcher, tiny: RegisteredModel, server, tmp_path
):
    page = open_page(as_researcher)
    import_pairs(page, tmp_path)
    page.locator("summary", has_text="Train on it").click()
    page.locator(".train-item", has_text="Reward model").click()
    change(page, "f-model-name", lambda field: field.select_option("tiny"))
    reward = RegisteredModel.objects.get(artifact__run=run_training(launch_run(page, **ONCE, batch_size=2), server.url))

    use_as(page, reward, "Policy from rubrics", "Reward")
    expect(page.locator("#f-rewards-0-model")).to_have_value(reward.name)
    change(page, "f-model-name", lambda field: field.select_option("tiny"))
    expect(page.locator("[name='scaffold.__on']")).not_to_be_checked()  # it would show rubrics, which these data lack
    run = run_training(launch_run(page, **ONCE, **POLICY), server.url)
    assert run.slots.get(role="reward_model").model == reward
    policy = RegisteredModel.objects.get(artifact__run=run)

    page.goto(f"/models/{policy.pk}")
    page.locator("#content").get_by_role("link", name="Try it").click()
    expect(page.locator(".try-answer")).to_have_count(2)
    page.get_by_label("Longest answer").fill("24")
    page.get_by_label("Prompts of").select_option(label="Fruit v1")
    ask_and_send(page)
    project = Project.objects.get()
    page.goto(f"/projects/{project.pk}/people")
    page.get_by_role("button", name="Create a link").click()
    link = page.locator(".copyable .code").inner_text()
    for name, key in (("Nora", "1"), ("Omar", "7")):  # the first or the second answer
        compare(chromium, server.url, link, name, key)

    assert Answer.objects.count() == 2 * PAIRS
    page.goto(f"/projects/{project.pk}")
    cells = page.get_by_role("row").filter(has_text=policy.name).get_by_role("cell")
    expect(cells).to_have_count(6)  # the page asks for the win rates after it is loaded
    model, _, rate, interval, tasks, _ = cells.all()
    expect(rate).to_have_text(f"{wins(model.inner_text()) / (2 * PAIRS):.0%}")
    expect(interval).to_have_text(re.compile(r"\d+% to \d+%"))
    expect(tasks).to_have_text(str(PAIRS))
