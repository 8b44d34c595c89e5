"""Searching the texts of a run on its page of rollouts."""

import random

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.seed import content
from tests.e2e.test_run_page import look, run, step_events  # noqa: F401 - a fixture
from webapp.experiments.models import Rollout
from webapp.experiments.rollouts import indexing, searching

pytestmark = pytest.mark.browser


def test_words_are_found_in_the_whole_run_and_each_response_says_where_it_has_them(
    open_page,
    as_researcher,
    run,  # noqa: F811
    process,
):
    trainer = process(run)
    for step in range(1, 4):
        trainer.post(*step_events(trainer, step))
    note = {"criterion_id": "c1", "met": False, "source": "judge", "note": "It never mentions the Tagus river."}
    criterion = {"text": "Names a river", "points": 3, "kind": "hard", "verdict": note}
    rare = content(2, "train", 0, 7, "Where to go?", 0.5, random.Random(0))  # noqa: S311
    rare |= {"response": "Walk to the castle tomorrow. 然后去河边喝咖啡。", "criteria": [criterion]}
    trainer.post(trainer.event("rollouts", 2, rollouts=[rare]))
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/rollouts")
    page.locator(".response").first.wait_for()
    search = page.get_by_role("searchbox", name="Search the texts")
    search.fill("tagus castle")
    search.press("Enter")
    expect(page.locator(".response")).to_have_count(1)
    expect(page.get_by_role("heading", name="Step 2 · Prompt 1")).to_be_visible()
    expect(page.locator(".passages li")).to_have_text(
        [
            "Response: Walk to the castle tomorrow. 然后去河边喝咖啡。",
            "On “Names a river”: It never mentions the Tagus river.",
        ]
    )
    expect(page.locator(".passages mark")).to_have_text(["castle", "Tagus"])
    look(page, "search")
    assert not layout_faults(page)
    page.reload()  # the address holds the search
    expect(page.locator(".response")).to_have_count(1)
    search.fill("to")
    search.press("Enter")
    expect(page.locator(".passages mark").first).to_have_text("to")
    marked = page.locator(".passages mark").evaluate_all(
        "marks => marks.map((each) => each.nextSibling.textContent[0])"
    )
    assert set(marked) == {" "}, "whole words: nothing is marked in 'tomorrow'"
    search.fill("河边喝")
    search.press("Enter")
    expect(page.locator(".passages mark")).to_have_text(["河边喝"])
    look(page, "search-chinese")
    search.fill("nowhere")
    search.press("Enter")
    expect(page.get_by_text("No response of this run fits the filter.")).to_be_visible()
    look(page, "search-none")
    page.get_by_role("button", name="Show all").click()
    expect(search).to_have_value("")
    expect(page.locator(".response").nth(1)).to_be_visible()


def test_a_search_says_how_many_rollouts_are_not_indexed_yet(
    open_page,
    as_researcher,
    run,  # noqa: F811
    process,
    monkeypatch,
):
    monkeypatch.setattr(searching, "READ", 2)
    trainer = process(run)
    for step in range(1, 4):
        trainer.post(*step_events(trainer, step))
    indexing.index(run.pk)
    indexed = Rollout.objects.filter(run=run).count()
    for step in range(4, 6):
        trainer.post(*step_events(trainer, step))
    waiting = Rollout.objects.filter(run=run).count() - indexed - 2
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/rollouts?text=the&step=all")
    told = page.get_by_text(f"{waiting} rollouts are not searched yet")
    expect(told).to_be_visible()
    expect(told).to_contain_text(f"{indexed} are indexed so far")
    look(page, "search-waiting")
    assert not layout_faults(page)
    indexing.index(run.pk)
    page.reload()
    page.locator(".response").first.wait_for()
    expect(told).to_be_hidden()


def test_a_word_in_turns_that_lie_apart_leads_to_them(open_page, as_researcher, run, process):  # noqa: F811
    trainer = process(run)
    trainer.post(*step_events(trainer, 1))
    turns = [{"number": 0, "author": "policy", "text": "I look around.", "tokens": 4}]
    turns += [{"number": 1, "author": "env", "text": "A rusty lantern hangs here.", "tokens": 5}]
    record = content(2, "train", 0, 0, "Where to go?", 0.5, random.Random(0)) | {"turns_apart": 2, "response": "Done."}  # noqa: S311
    trainer.post(
        trainer.event("turns", 2, group=0, index=0, turns=turns), trainer.event("rollouts", 2, rollouts=[record])
    )
    indexing.index(run.pk)
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/rollouts?text=lantern&step=all")
    expect(page.locator(".response")).to_have_count(1)
    look(page, "search-apart")
    page.get_by_role("link", name="find “lantern”").click()
    expect(page.locator("#episode-told")).to_have_text("1 of 1")
    expect(page.get_by_text("A rusty lantern hangs here.").first).to_be_visible()
    assert not layout_faults(page)
