"""Rollouts are sent to annotation from their page, and the page shows an episode as a tree."""

import os

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from tests.webapp.annotation.answers import annotators, answer, make_project
from webapp.annotation.models import Task

pytestmark = pytest.mark.browser


def plain(index: int, **fields) -> dict:
    found = {
        "example_key": "e0",
        "group": 0,
        "index": index,
        "prompt": "Find the shelf.",
        "response": f"answer {index}",
    }
    return found | {"finish_reason": "stop", "reward": index / 4} | fields


def look(page, name: str) -> None:
    """Saves pictures of the page in both themes in the folder of TOUCHSTONE_LOOK, so that a person can look at them."""
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.screenshot(path=f"{folder}/{name}-{theme}.png", full_page=True)


@pytest.fixture
def sampled(run, process):  # noqa: F811
    trainer = process(run)
    turns = []
    for number in range(120):
        call = {"tool": "search", "call": f"c{number}"}
        turns.append({"author": "policy", "kind": "call", "text": f'{{"q": "shelf {number}"}}', "tokens": 6, **call})
        said = {"author": "env", "kind": "result", "text": f"Shelf {number} is empty.", "tokens": 5, "seconds": 0.25}
        turns.append(said | call | ({"failed": True} if number == 1 else {}))
    turns.append({"author": "policy", "text": "There is **nothing**.", "tokens": 4, "reward": 0.5})
    episode = plain(0, group=1, turns=turns, response="There is nothing.", finish_reason="env")
    trainer.post(trainer.event("rollouts", 70, rollouts=[*(plain(index) for index in range(3)), episode]))
    return run


def test_a_group_is_sent_and_the_page_says_what_people_answered(open_page, as_researcher, sampled, team):
    project = make_project(team, "pairwise", n=1)
    page = open_page(as_researcher)
    page.goto(f"/runs/{sampled.id}/rollouts?step=70")
    page.get_by_role("link", name="Send this group to annotation").first.click()
    page.get_by_label("pairwise project").check()
    assert layout_faults(page) == []
    look(page, "annotate")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_text("1 example went to pairwise project.")).to_be_visible()
    expect(page.locator(".sent").first).to_contain_text("Asked in pairwise project with 1 other · 0 of 2 answered")
    task = Task.objects.filter(project=project).order_by("-id")[0]
    said = {"verdict": "compared", "strength": 2, "reasons": [], "dimensions": {}, "note": ""}
    answer(task, annotators(team, project, 1)[0], said)
    page.reload()
    expect(page.locator(".sent").first).to_contain_text("1 of 2 answered")
    expect(page.locator(".sent").first).to_contain_text("response-3 is better")
    assert layout_faults(page) == []
    look(page, "sent")


def test_an_episode_is_walked_opened_and_searched(open_page, as_researcher, sampled):
    page = open_page(as_researcher)
    page.goto(f"/runs/{sampled.id}/rollouts?step=70")
    page.get_by_role("link", name="Open the episode: 241 turns").click()
    expect(page.locator("#episode-turns > .turn")).to_have_count(50)
    first = page.locator('[data-turn="0"]')
    expect(first.locator('[data-turn="1"]')).to_contain_text("Result of search")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator('[data-turn="1"] > .turn-head')).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator('[data-turn="1"] > .turn-body')).to_have_text("Shelf 0 is empty.")
    page.get_by_role("searchbox").fill("shelf 99")
    page.keyboard.press("Enter")
    expect(page.locator("#episode-told")).to_have_text("1 of 2")
    expect(page.locator('[data-turn="198"] mark')).to_have_text("shelf 99")
    page.locator('[data-turn="198"] > .turn-head').focus()
    page.keyboard.press("n")
    expect(page.locator('[data-turn="199"] > .turn-head')).to_be_focused()
    assert layout_faults(page) == []
    look(page, "episode")
    page.get_by_label("Number of a turn").fill("241")
    page.keyboard.press("Enter")
    expect(page.locator('[data-turn="240"]')).to_contain_text("reward 0.500")
    expect(page.locator("#episode-later")).to_be_hidden()
    page.get_by_role("searchbox").fill("")
    page.keyboard.press("Enter")
    page.locator('[data-turn="240"] > .turn-head').click()
    said = page.locator('[data-turn="240"] > .turn-body')
    expect(said).to_have_text("There is **nothing**.")
    page.locator('[data-turn="240"] > .turn-head').press("f")
    expect(said.locator("strong")).to_have_text("nothing")
    page.reload()  # the address holds the turn and how its text is shown
    page.locator('[data-turn="240"] > .turn-head').click()
    expect(said.locator("strong")).to_have_text("nothing")
    assert layout_faults(page) == []


def test_the_page_holds_a_bounded_number_of_turns(open_page, as_researcher, sampled, process):
    sampled.refresh_from_db()
    trainer = process(sampled)
    many = [{"author": "policy", "text": f"turn {number}", "tokens": 2} for number in range(1000)]
    trainer.post(trainer.event("rollouts", 71, rollouts=[plain(0, turns=many)]))
    page = open_page(as_researcher)
    page.goto(f"/runs/{sampled.id}/rollouts?step=71")
    page.get_by_role("link", name="Open the episode: 1,000 turns").click()
    page.locator("#episode-later").dblclick()  # one page comes, not the same one twice
    expect(page.locator('[data-turn="199"]')).to_have_count(1)
    page.wait_for_load_state("networkidle")
    expect(page.locator(".turn")).to_have_count(200)
    for last in (299, 399, 499):
        page.locator("#episode-later").click()
        expect(page.locator(f'[data-turn="{last}"]')).to_be_attached()
        expect(page.locator(".turn")).to_have_count(300)
    page.locator("#episode-earlier").click()
    expect(page.locator('[data-turn="100"]')).to_be_attached()
    expect(page.locator('[data-turn="499"]')).to_have_count(0)
