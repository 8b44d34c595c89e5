"""Two people write criteria, and a policy is trained on them. A judge decides criteria that no program decides. Each step is in the
browser, on the real stack with a model that is small enough to be fast.
"""

import json
import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.chatserver import ChatServer
from tests.e2e.test_demo import change, enter
from tests.e2e.test_journeys import run_over
from tests.e2e.tiny import import_examples, make_model
from tests.stack import Stack
from tests.trainer.chat_beside import chat_server

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.slow]

NAME = "What must a good answer have?"
PROMPTS = ("How long does green tea keep?", "Is it safe to eat green potatoes?")
BOTH = "Says how long, in days or months."
OWN = {"Nora": "Warns of what makes it unsafe.", "Omar": "Names the right place to store it."}
SMALL = {
    "steps": 1,
    "rollout.prompts_per_step": 1,
    "rollout.group_size": 2,
    "rollout.max_new_tokens": 12,
    "evaluation.max_examples": 1,
}


@pytest.fixture(scope="module")
def judge() -> Iterator[ChatServer]:
    def answer(body: dict) -> str:
        asked = json.dumps(body["messages"])
        return json.dumps({"explanation": "A reader would know when to throw it away.", "met": BOTH in asked})

    with chat_server(answer=answer) as server:
        yield server


@pytest.fixture(scope="module")
def api(stack: Stack, judge: ChatServer) -> Iterator[httpx.Client]:
    with stack.api() as client:
        model = {"name": "kitchen", "source": "local", "path": str(make_model(stack))}
        assert client.post("models", json=model).status_code == 201
        rows = [
            {"key": f"k{i}", "prompt": [{"role": "user", "content": text}], "split": ("train", "heldout")[i]}
            for i, text in enumerate(PROMPTS)
        ]
        import_examples(client, stack, "Kitchen", rows)
        given = {"kind": "chat", "name": "cook", "url": judge.url, "model": "m", "retries": 0}
        made = client.post("endpoints", json=given)
        assert made.status_code == 201, made.text
        spec = {"name": "Cook", "spec": {"kind": "criterion"}, "endpoint": made.json()["id"]}
        assert client.post("judges", json=spec).status_code == 201
        yield client


def invited(page: Page) -> str:
    """Sets the project up like a person, and returns the link for two people."""
    page.goto("/projects/new")
    page.locator(".kind", has_text="Rubric authoring").click()
    page.get_by_label("Name", exact=True).fill(NAME)
    version = page.locator("option", has_text="Kitchen").first.get_attribute("value")
    page.get_by_label("Dataset version").select_option(version)
    page.get_by_label("People per task").fill("2")
    page.get_by_role("button", name="Create and open").click()
    page.get_by_role("link", name="Invite people").first.click()
    expect(page.get_by_label("People", exact=True)).to_have_value("2")
    page.get_by_role("button", name="Create a link").click()
    return page.locator(".copyable .code").inner_text()


def write_criteria(chromium: Browser, stack: Stack, link: str, name: str) -> None:
    """Joins, and writes the criteria of a good answer, by keyboard alone."""
    context = chromium.new_context(base_url=stack.url, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto(link)
    page.get_by_label("Your name").fill(name)
    page.get_by_label("Email").fill(f"{name.lower()}@example.com")
    page.get_by_label("Password").fill("twelve letters")
    page.keyboard.press("Enter")
    page.get_by_role("link", name=NAME).click()
    for number in range(len(PROMPTS)):
        expect(page.locator("#work-prompt")).to_contain_text(PROMPTS[number])
        page.keyboard.press("Enter")
        page.keyboard.type(BOTH)
        page.keyboard.press("Enter")
        page.keyboard.type(OWN[name])
        page.keyboard.press("Control+Enter")
    page.get_by_text("Nothing waits for you").wait_for()
    expect(page.locator("#work-main")).to_have_attribute("data-waiting", "0")
    context.close()


def settle(page: Page) -> None:
    """Keeps the criteria that only one of the two has written, by two keys for each row."""
    page.get_by_role("link", name="Overview", exact=True).click()
    expect(page.get_by_text("2 complete tasks wait for a decision")).to_be_visible()
    page.get_by_role("link", name="Settle disagreements").click()
    page.get_by_role("link", name="Start with the least agreement").click()
    for left in (2, 1):
        page.get_by_text(f"{left} to decide", exact=True).wait_for()
        for _ in OWN:
            row = page.locator("tr[aria-current=true]", has_text="to decide")
            row.wait_for()
            page.keyboard.press("k")
        page.keyboard.press("Control+Enter")
    page.wait_for_url("**/review")


def test_what_two_people_wrote_is_learned_from_a_judge_that_decides_it(
    page: Page, chromium: Browser, stack: Stack, api: httpx.Client
):
    link = invited(page)
    for name in OWN:
        write_criteria(chromium, stack, link, name)

    page.get_by_role("link", name="Answers", exact=True).click()
    page.get_by_role("button", name="Publish a frozen version").click()
    expect(page.get_by_text("Settle tasks under Review")).to_be_visible()
    settle(page)
    page.get_by_role("link", name="Answers", exact=True).click()
    page.get_by_role("button", name="Publish a frozen version").click()
    expect(page.locator("h2", has_text="Published as version 2 of Kitchen")).to_be_visible()

    page.locator("summary", has_text="Train on it").click()
    offered = page.locator(".train-item", has_text="Policy from rubrics")
    expect(offered).to_contain_text("with a criterion for a judge, 1 held out")
    offered.click()
    change(page, "f-model-name", lambda field: field.select_option("kitchen"))
    expect(page.locator("#g-data .error")).to_contain_text("6 criteria of 2 prompts have no verifier")
    change(page, "f-rewards-0-judge", lambda field: field.select_option("Cook v1"))
    expect(page.locator(".licence")).to_contain_text("Nobody has compared this judge with labels of people")
    for path, value in SMALL.items():
        change(page, f"f-{path.replace('.', '-')}", lambda field, value=value: enter(field, str(value)))
    assert page.locator("#run-form .error").all_inner_texts() == []
    page.locator(".launch").click()
    page.wait_for_url(re.compile(r"/runs/\d+$"))
    run = run_over(page, api, stack)
    (asked,) = api.get(f"runs/{run['id']}/judges").json()["items"]
    assert asked["calls"] > 0 and asked["failed"] == 0

    page.get_by_role("link", name="Rollouts", exact=True).click()
    shown = page.locator(".response").first
    met = shown.locator(".criterion", has_text=BOTH)
    expect(met).to_contain_text("met")
    expect(met).to_contain_text("A reader would know when to throw it away.")
    for text in OWN.values():
        expect(shown.locator(".criterion", has_text=text)).to_contain_text("not met")
