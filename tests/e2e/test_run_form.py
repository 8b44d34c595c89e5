"""The form of a run, as a researcher fills it in: fields are found by their words."""

import os
import re

import pytest
from playwright.sync_api import expect

from tests.e2e.look import looked_at
from tests.e2e.test_demo import change, enter
from tests.webapp.experiments.conftest import make_version
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.browser


@pytest.fixture
def form(server, cast, open_page, as_researcher):
    """The form of a new policy run."""
    make_version(cast.owner)
    RegisteredModel.objects.create(
        workspace=cast.workspace, name="smollm2-135m-instruct", source="local", path="/models/smollm2"
    )
    page = open_page(as_researcher)
    page.goto("/runs/new?recipe=policy")
    return page


def look(page, name: str) -> None:
    """Saves pictures for a person to look at, if they are asked for."""
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        for scheme in ("light", "dark"):
            for width in (1280, 390):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 900})
                page.screenshot(path=f"{folder}/{name}-{scheme}-{width}.png")
        page.set_viewport_size({"width": 1280, "height": 800})


def fields(page) -> list[str]:
    """The labels of the fields that are seen."""
    seen = page.locator("#run-form .field:visible")
    return [text.split("\n")[0] for text in seen.locator("> label").all_inner_texts()]


def test_a_field_is_found_by_its_words_in_a_part_that_was_folded(form):
    find, told = form.get_by_role("searchbox", name="Find a field"), form.locator("#field-found")
    rate, folded = form.locator("#f-optim-lr"), form.locator("#g-optim")
    every = len(fields(form))
    assert folded.get_attribute("open") is None
    form.keyboard.press("/")
    expect(find).to_be_focused()
    form.keyboard.type("learning rate")
    expect(rate).to_be_visible()
    expect(told).to_have_text(re.compile(r"^\d+ fields? match"))
    find.fill("optim.lr")  # its name
    expect(rate).to_be_visible()
    expect(form.locator("#f-steps")).to_be_hidden()
    look(form, "found")
    looked_at(form)
    form.set_viewport_size({"width": 390, "height": 800})
    assert rate.bounding_box()["y"] < form.locator(".launch").bounding_box()["y"], "what is found is not below the rest"
    form.set_viewport_size({"width": 1280, "height": 800})

    find.press("Enter")  # goes to the first field that matches
    expect(rate).to_be_focused()
    change(form, "f-optim-lr", lambda field: enter(field, "0.0003"))  # draws the form again
    expect(form.locator("#f-steps")).to_be_hidden()
    find.press("Escape")
    expect(find).to_have_value("")
    expect(told).to_have_text("")
    expect(folded).not_to_have_attribute("open", "")  # it is as it was
    expect(rate).to_have_value("0.0003")
    assert len(fields(form)) == every


def test_the_search_says_what_matches_and_is_not_seen_and_what_to_do_if_nothing_does(form):
    find, told = form.get_by_role("searchbox", name="Find a field"), form.locator("#field-found")
    find.fill("no such field anywhere")
    expect(told).to_have_text("No field matches. Try one word of its label or help, or press Escape to see all fields.")
    assert fields(form) == []
    look(form, "none")
    find.press("Escape")
    with form.expect_response(lambda response: response.request.method == "POST"):
        form.locator("#g-scaffold > summary").click()
        form.locator("[name='scaffold.__on']").uncheck()
    find.fill("scaffold.")
    expect(told).to_have_text(re.compile(r"^Only \d+ fields in a part that is switched off"))
    expect(form.locator("[name='scaffold.__on']")).to_be_visible()


def test_a_link_to_a_problem_shows_a_field_that_the_search_has_hidden(form):
    change(form, "f-steps", lambda field: enter(field, "0"))
    find = form.get_by_role("searchbox", name="Find a field")
    find.fill("learning rate")
    expect(form.locator("#f-steps")).to_be_hidden()
    form.locator(".to-fix").first.click()
    expect(form.locator("#f-steps")).to_be_focused()
    expect(find).to_have_value("")
