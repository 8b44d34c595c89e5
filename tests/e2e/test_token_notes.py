"""Notes on tokens of a response: by pointer and by keyboard, in two tabs, and after the response was sampled again."""

import os
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.test_accessibility import AXE, LOOK
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from webapp.experiments.models import TokenNote
from webapp.experiments.notes import services
from webapp.experiments.notes.services import TokenSpan

pytestmark = pytest.mark.browser

TOKENS = ["The", " sky", " is", " green", "."]


def response(index: int, tokens: list[str]) -> dict:
    plain = {"example_key": "sky", "group": 0, "index": index, "prompt": "What colour is the sky?"}
    recorded = {"tokens": tokens, "logprobs": [-0.1] * len(tokens)}
    return plain | recorded | {"response": "".join(tokens), "finish_reason": "stop", "reward": 0.5}


@pytest.fixture
def answered(run, process):  # noqa: F811
    trainer = process(run)
    trainer.post(trainer.event("rollouts", 3, rollouts=[response(0, TOKENS), response(1, ["Blue"])]))
    run.trainer = trainer
    return run


def written(team, run, **span) -> TokenNote:  # noqa: F811
    place: dict[str, Any] = {"step": 3, "phase": "train", "group": 0, "index": 0, "start": 3, "end": 4}
    return services.write(
        team.researcher, run, TokenSpan(**place | span), "It is **not** <img src=x onerror=alert(1)>."
    )


def test_a_note_is_written_by_keyboard_alone(open_page, as_researcher, answered):
    page = open_page(as_researcher)
    page.goto(f"/runs/{answered.id}/rollouts")
    first = page.locator(".response").first
    first.get_by_role("button", name="Note on tokens of response 1").press("Enter")
    text = page.locator(".response").first.locator(".response-text")
    text.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    words = page.get_by_label("Note on “sky is green”")
    expect(words).to_be_focused()
    page.keyboard.type("Wrong **colour**")
    page.keyboard.press("Control+Enter")
    note = page.locator(".token-note")
    expect(note).to_contain_text("Rosa")
    expect(note.locator("strong")).to_have_text("colour")
    expect(page.locator(".has-note")).to_have_text([" sky", " is", " green"])
    page.get_by_text("Notes on responses of this run").click()
    expect(page.get_by_role("link", name="Step 3: “sky is green”")).to_be_visible()
    stored = TokenNote.objects.get()
    assert (stored.start, stored.end, stored.quote) == (1, 4, " sky is green")


def test_a_note_is_written_on_what_the_pointer_selects(open_page, as_researcher, answered):
    page = open_page(as_researcher)
    page.goto(f"/runs/{answered.id}/rollouts?tint=logprob")
    text = page.locator(".response").first.locator(".response-text")
    text.scroll_into_view_if_needed()
    start, end = (text.locator(f"[data-token='{i}']").bounding_box() for i in (2, 3))
    page.mouse.move(start["x"] + 6, start["y"] + start["height"] / 2)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] - 6, end["y"] + end["height"] / 2, steps=4)
    page.mouse.up()
    page.get_by_text("Note on the chosen tokens").click()
    words = page.get_by_label("Note on “is green”")
    words.fill("Wrong")
    save = page.get_by_role("button", name="Save the note")
    save.dblclick()  # a second press makes no second note
    expect(page.locator(".token-note")).to_have_count(1)
    expect(page.locator(".has-note")).to_have_text([" is", " green"])
    assert TokenNote.objects.count() == 1


def test_a_link_leads_to_the_note_which_can_be_changed_and_deleted(open_page, as_researcher, team, answered):
    note = written(team, answered)
    page = open_page(as_researcher)
    page.goto(f"/runs/{answered.id}/notes/{note.pk}")
    shown = page.locator(f"#note-{note.pk}")
    expect(shown).to_be_focused()
    # a message of the first connection draws the notes again, and takes an open question away
    page.wait_for_selector('#connection[data-state="live"]')
    expect(shown.locator("strong")).to_have_text("not")
    expect(shown.locator("img")).to_have_count(0)
    shown.get_by_role("button", name="Edit").click()
    words = page.get_by_label("Note on “green”")
    words.fill("Changed")
    page.get_by_role("button", name="Save the change").click()
    expect(shown).to_contain_text("Changed")
    expect(shown).to_contain_text("· changed")
    shown.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Keep it").click()
    assert TokenNote.objects.exists()
    shown.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete this note").click()
    expect(shown).to_have_count(0)
    expect(page.locator(".has-note")).to_have_count(0)


def test_two_tabs_hear_of_each_other_and_neither_overwrites(open_page, as_researcher, team, answered):
    note = written(team, answered)
    one, two = open_page(as_researcher), open_page(as_researcher)
    for page in (one, two):
        page.goto(f"/runs/{answered.id}/rollouts")
        page.wait_for_selector('#connection[data-state="live"]')
        page.locator(".token-note").get_by_role("button", name="Edit").click()
    one.get_by_label("Note on “green”").fill("From the first tab")
    two.get_by_label("Note on “green”").fill("From the second tab")
    one.get_by_role("button", name="Save the change").click()
    expect(one.locator(".token-note")).to_contain_text("From the first tab")
    expect(two.get_by_label("Note on “green”")).to_have_value("From the second tab")  # the open text of a note stays
    two.get_by_role("button", name="Save the change").click()
    expect(two.get_by_role("alert").filter(has_text="changed meanwhile")).to_contain_text("From the first tab")
    two.get_by_role("button", name="Save the change").click()
    expect(one.locator(".token-note")).to_contain_text("From the second tab")  # and the first tab shows it
    note.refresh_from_db()
    assert note.revision == 3


def test_a_note_says_that_its_response_was_sampled_again(open_page, as_researcher, team, answered):
    written(team, answered)
    trainer = answered.trainer
    trainer.post(trainer.event("rollouts", 3, rollouts=[response(0, ["The", " sky", " is", " blue", "."])]))
    page = open_page(as_researcher)
    page.goto(f"/runs/{answered.id}/rollouts")
    note = page.locator(".token-note")
    expect(note).to_contain_text("“green”")
    expect(note).to_contain_text("Other tokens are at this place now")
    expect(page.locator(".has-note")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_how_it_looks(open_page, as_researcher, team, answered, theme):
    written(team, answered)
    written(team, answered, start=0, end=2)
    page = open_page(as_researcher, color_scheme=theme, reduced_motion="reduce")
    page.goto(f"/runs/{answered.id}/rollouts?tint=logprob")
    page.locator(".token-note").nth(1).wait_for()
    page.locator(".token-note").first.get_by_role("button", name="Edit").click()
    page.evaluate(AXE.read_text())
    assert page.evaluate(LOOK) + layout_faults(page) == []
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        page.screenshot(path=f"{folder}/notes-{theme}.png", full_page=True)


def test_a_note_that_is_too_long_is_kept_whole_and_refused(open_page, as_researcher, answered):
    page = open_page(as_researcher)
    page.goto(f"/runs/{answered.id}/rollouts")
    page.locator(".response").first.get_by_role("button", name="Note on tokens of response 1").press("Enter")
    page.locator(".response").first.locator(".response-text").focus()
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Enter")
    words = page.locator(".note-form textarea")
    words.focus()
    page.keyboard.insert_text("x" * 4_001)  # as a browser pastes
    page.keyboard.press("Control+Enter")
    said = "This text has 4,001 characters. Shorten it to 4,000 or fewer."
    expect(words).to_have_js_property("validationMessage", said)
    expect(words).to_have_value("x" * 4_001)
    page.keyboard.press("Backspace")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".token-note")).to_have_count(1)
    assert len(TokenNote.objects.get().text) == 4_000


def test_notes_of_a_run_that_are_too_long_are_kept_whole_and_refused(open_page, as_researcher, answered):
    page = open_page(as_researcher)
    page.goto(f"/runs/{answered.id}")
    page.get_by_text("Add tags and notes").click()
    notes = page.get_by_label("Notes", exact=True)
    notes.focus()
    page.keyboard.insert_text("x" * 20_001)
    page.locator(".run-labels").get_by_role("button", name="Save").click()
    said = "This text has 20,001 characters. Shorten it to 20,000 or fewer."
    expect(notes).to_have_js_property("validationMessage", said)
    expect(notes).to_have_value("x" * 20_001)
