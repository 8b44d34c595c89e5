"""A judge is made, tried and saved in a browser, against a chat server on this machine."""

import os

import pytest
from playwright.sync_api import expect

from tests.team import browser
from tests.webapp.datasets.conftest import import_rows  # noqa: F401  a fixture
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401  fixtures
from tests.webapp.judging.conftest import MET, examples  # noqa: F401  fixtures
from webapp.judging.models import JudgeVersion

pytestmark = pytest.mark.browser
SHOTS = os.environ.get("TOUCHSTONE_SHOTS")


@pytest.fixture
def page(open_page, team):
    return open_page(browser(team.researcher))


def look(page, name):
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)
        page.emulate_media(color_scheme="dark")
        page.screenshot(path=f"{SHOTS}/{name}-dark.png")
        page.emulate_media(color_scheme="light")


def test_a_judge_is_tried_and_saved(page, endpoint, examples, chat_server, eager):  # noqa: F811
    chat_server.answer = lambda body: f"I see.\n{MET}" if "kindly" in body["messages"][-1]["content"] else "Hm."
    page.goto("/judges")
    look(page, "empty")
    page.get_by_role("link", name="New judge").first.click()
    look(page, "kinds")
    page.get_by_role("link", name="Criterion Decides one criterion").click()
    page.get_by_label("Name").fill("Strict")
    page.get_by_text("e0").first.wait_for()
    assert page.locator("[name=examples]:checked").count() == 2

    prompt = page.get_by_label("Prompt")
    prompt.focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("\nRead it kindly: ")
    page.get_by_role("button", name="reference").click()
    assert prompt.input_value().endswith("Read it kindly: {{reference}}")

    page.get_by_role("button", name="Run on the chosen examples").click()
    page.locator("#trial [data-state=finished]").wait_for()
    expect(page.locator("#trial")).to_be_in_viewport()
    call = page.locator("#trial article").first
    assert "e0 · response x · criterion a" in call.inner_text()
    sides = call.locator(".sides > div")
    assert "Says yes." in sides.nth(0).inner_text()
    assert "I see." in sides.nth(1).inner_text()
    assert '"met": true' in sides.nth(2).inner_text()
    look(page, "tried")

    prompt.fill("{{criterion}} {{respnse}}")
    page.get_by_role("button", name="Run on the chosen examples").click()
    page.locator("#trial .callout", has_text="unknown variable {{respnse}}").wait_for()

    prompt.fill("{{response}}\nRead it kindly: {{criterion}}")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="Strict").wait_for()
    assert JudgeVersion.objects.get().spec["prompt"] == "{{response}}\nRead it kindly: {{criterion}}"


def test_the_effect_of_a_change_is_seen_down_to_the_raw_text(page, endpoint, examples, team, chat_server, eager):  # noqa: F811
    from webapp.judging.judges.services import create_judge, new_version

    chat_server.answer = lambda body: (
        MET.replace("true", "false") if "harsh" in body["messages"][-1]["content"] else MET
    )
    first = create_judge(team.researcher, name="Strict", spec={"kind": "criterion"}, endpoint=endpoint)
    harsh = {"kind": "criterion", "prompt": first.spec["prompt"] + "\nBe harsh."}
    new_version(team.researcher, first.judge, spec=harsh, endpoint=endpoint, note="Be harsh")

    page.goto(f"/judges/{first.judge_id}")
    page.get_by_role("link", name="Choose").click()
    page.locator("[name=examples]:checked").first.wait_for()
    page.get_by_role("button", name="Save").click()
    look(page, "judge")
    page.get_by_role("button", name="Compare").click()
    page.locator(".line.added", has_text="Be harsh.").wait_for()
    page.get_by_role("button", name="Run on 2 examples").click()
    page.get_by_text("8 of 8 verdicts changed (95% interval").wait_for()
    look(page, "compare")
    page.get_by_role("link", name="not met").first.click()
    page.get_by_text('"met": false').first.wait_for()
    look(page, "verdict")
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="v2").click()
    page.get_by_role("heading", name="Verdicts").wait_for()
    look(page, "version")
