"""From preferences of people to a better model, on the real stack with a model that is small enough to be fast.

With PICTURES=FOLDER the test saves a picture of each page and uses the demo's model, so that answers are English. `make pictures` makes the
pictures of docs/from-opinions.md in this way.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.test_demo import LONG_MS, change, enter
from tests.e2e.tiny import eventually, import_examples, make_model
from tests.stack import ROOT, Stack

pytestmark = [pytest.mark.stack, pytest.mark.browser, pytest.mark.slow]

COLOURS = {
    "apple": "red or green",
    "pear": "green",
    "plum": "purple",
    "fig": "purple",
    "lime": "green",
    "date": "brown",
    "kiwi": "brown outside and green inside",
    "mango": "orange",
    "peach": "pink and yellow",
    "grape": "green or purple",
    "melon": "green or yellow",
    "lemon": "yellow",
}
OPINION = {"verdict": "compared", "strength": -2, "reasons": [{"text": "It says so in one word."}]}

PICTURES = os.environ.get("PICTURES", "")
BASE = "smollm2-135m-instruct" if PICTURES else "base"
LONGEST = 32 if PICTURES else 12
STEPS = 6 if PICTURES else 2
SMALL = {
    "steps": STEPS,
    "rollout.prompts_per_step": 2,
    "rollout.group_size": 4 if PICTURES else 2,
    "rollout.max_new_tokens": LONGEST,
    "evaluation.max_examples": 2,
}


def pairs(name: str) -> list[dict]:
    """A short and a long answer to each prompt, which nobody has compared yet."""
    return [
        {
            "key": f"{name}-{fruit}",
            "prompt": [{"role": "user", "content": f"What colour is {'an' if fruit == 'apple' else 'a'} {fruit}?"}],
            "responses": [
                {"id": "long", "text": f"People say many things about the {fruit}; it depends on whom one asks."},
                {"id": "short", "text": f"{colour.capitalize()}."},
            ],
            "split": "train" if place < 9 else "heldout",
        }
        for place, (fruit, colour) in enumerate(COLOURS.items())
    ]


@pytest.fixture(scope="module")
def api(stack: Stack) -> Iterator[httpx.Client]:
    with stack.api() as client:
        made = client.post("models", json={"name": BASE, "source": "local", "path": str(base_model(stack))})
        assert made.status_code == 201, made.text
        import_examples(client, stack, "Fruit", pairs("fruit"))
        yield client


def base_model(stack: Stack) -> Path:
    if not PICTURES:
        return make_model(stack)
    directory = stack.var / "models" / BASE
    subprocess.run(
        [sys.executable, "-m", "trainer", "models", "prepare", "--dir", str(directory)], cwd=ROOT, check=True
    )
    return directory


def picture(page: Page, name: str, top: str = "", room: str = "1rem") -> None:
    """Saves a picture. `top` selects the element at its top, with `room` above it."""
    if PICTURES:
        if top:
            scroll = "(node, room) => { node.style.scrollMarginTop = room; node.scrollIntoView(); }"
            page.locator(top).first.evaluate(scroll, room)
        page.wait_for_timeout(600)  # curves and letters are drawn
        page.screenshot(path=Path(PICTURES) / f"{name}.png")


def project(api: httpx.Client, stack: Stack) -> int:
    """An open project with a task for each pair."""
    dataset = api.get("datasets").json()["items"][0]["id"]
    body = {"name": "Which is better?", "kind": "pairwise", "dataset": {"id": dataset}, "overlap": 1, "open": True}
    made = api.post("projects", json=body)
    assert made.status_code == 201, made.text
    address = f"projects/{made.json()['id']}"
    eventually(lambda: api.get(address).json(), lambda row: row["tasks_made"], stack)
    return made.json()["id"]


def judge(api: httpx.Client, project_id: int) -> None:
    """Answers as a person who likes short answers, on either side."""
    queue = api.post(f"projects/{project_id}/claim", json={"hold": 1}).json()
    while queue["items"]:
        task = queue["items"][0]
        first = task["view"]["responses"][0]["text"]
        strength = 2 if first.startswith("People say") else -2
        body = {"content": OPINION | {"strength": strength}, "revision": 0, "seconds": 5, "hold": 1}
        answered = api.post(f"assignments/{task['id']}/submit", json=body)
        assert answered.status_code == 200, answered.text
        queue = answered.json()["queue"]


def run_over(page: Page, api: httpx.Client, stack: Stack) -> dict:
    """The run of the page, after it has finished."""
    run_id = int(re.search(r"/runs/(\d+)", page.url)[1])
    run = eventually(
        lambda: api.get(f"runs/{run_id}").json(),
        lambda row: row["state"] in ("finished", "failed", "stopped"),
        stack,
        3600 if PICTURES else 300,
    )
    assert run["state"] == "finished", run["state_reason"]
    expect(page.locator(".run-status [data-bind=state]").first).to_have_text("Finished", timeout=LONG_MS)
    return run


def test_what_people_prefer_becomes_a_reward_a_policy_and_a_comparison(page: Page, stack: Stack, api: httpx.Client):
    project_id = project(api, stack)
    judge(api, project_id)

    page.goto(f"/projects/{project_id}/answers")
    picture(page, "answers")
    page.get_by_role("button", name="Train a reward model").click()  # the second part: one click
    page.wait_for_url(re.compile(r"/runs/\d+$"))
    trained = run_over(page, api, stack)
    picture(page, "reward-model")
    [output] = trained["outputs"]
    assert api.get(f"models/{output['id']}").json()["role"] == "reward_model"

    page.goto("/runs/new?recipe=policy")
    version = page.locator("#f-dataset option", has_text="Fruit").first.get_attribute("value")
    change(page, "f-dataset", lambda field: field.select_option(version))
    change(page, "f-model-name", lambda field: field.select_option(BASE))
    change(page, "f-rewards-0-kind", lambda field: field.select_option("reward_model"))
    change(page, "f-rewards-0-model", lambda field: field.select_option(output["name"]))
    # the group is open because it has a problem: there are no rubrics to show
    scaffold = page.locator("details.group-scaffold[open]")
    expect(scaffold.locator(".error")).to_contain_text("switch it off")
    with page.expect_response(lambda response: response.request.method == "POST"):
        scaffold.locator("[name='scaffold.__on']").uncheck()
    for path, value in SMALL.items():
        change(page, f"f-{path.replace('.', '-')}", lambda field, value=value: enter(field, str(value)))
    assert page.locator("#run-form .error").all_inner_texts() == []
    picture(page, "reward-in-the-form", top="#g-rewards")
    page.locator(".launch").click()
    page.wait_for_url(re.compile(r"/runs/\d+$"))
    learnt = run_over(page, api, stack)
    points = api.get(f"runs/{learnt['id']}/metrics", params={"key": "reward/reward_model"}).json()["points"]
    assert [point["step"] for point in points] == list(range(1, STEPS + 1))
    page.goto(f"/runs/{learnt['id']}/rollouts")
    expect(page.locator(".response").first).to_be_visible()
    picture(page, "rollouts", top=".group", room="11rem")  # below the filters, which stay at the top

    [policy] = learnt["outputs"]
    page.goto(f"/models/{policy['id']}")
    page.locator("#content").get_by_role("link", name="Try it").click()
    expect(page.locator(".try-answer")).to_have_count(2)
    page.get_by_role("textbox", name="Prompt").fill("What colour is a cherry?")
    page.get_by_label("Longest answer").fill(str(LONGEST))
    page.keyboard.press("Control+Enter")
    for column in page.locator(".try-answer").all():
        column.get_by_text(re.compile(r"\d+ tokens ·")).wait_for(timeout=LONG_MS)
    page.get_by_label("Name of the project").fill("Cherries")
    page.get_by_role("button", name="Send A and B").click()
    page.get_by_text("Sent to Cherries, 1 task").wait_for()
    picture(page, "try-it", top=".try-answer")
