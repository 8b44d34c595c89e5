"""The form of a run, as a researcher fills it in: fields are found by their words."""

import os
import re

import pytest
from playwright.sync_api import expect

from tests.e2e.look import check_look
from tests.e2e.test_demo import change, enter
from tests.webapp.experiments.conftest import make_version
from tests.webapp.experiments.launch.test_expected import ran
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launching
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.browser


@pytest.fixture
def form(server, team, open_page, as_researcher):
    """The form of a new policy run."""
    make_version(team.owner)
    RegisteredModel.objects.create(
        workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/models/smollm2"
    )
    page = open_page(as_researcher)
    page.goto("/runs/new?recipe=policy")
    return page


def look(page, name: str) -> None:
    """Saves pictures for a person to look at, if they are asked for."""
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        for scheme in ("light", "dark"):
            for width in (1280, 390):
                page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                page.set_viewport_size({"width": width, "height": 900})
                page.screenshot(path=f"{folder}/{name}-{scheme}-{width}.png")
        page.set_viewport_size({"width": 1280, "height": 800})


def depth(found, inside: str) -> float:
    """How far below the top of `inside` the element is, wherever the page is scrolled to."""
    return found.evaluate(
        "(node, inside) => node.getBoundingClientRect().top - node.closest(inside).getBoundingClientRect().top", inside
    )


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
    check_look(form)
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


def test_a_preset_fills_fields_marks_them_and_is_undone_and_nothing_jumps(form):
    steps, below = form.locator("#f-steps"), form.locator("section.group-run")
    before = steps.input_value()
    change(form, "f-rollout-temperature", lambda field: enter(field, "0.9"))
    place = depth(below, "form")
    with form.expect_response(lambda response: response.request.method == "POST"):
        form.get_by_role("button", name="Quick look").click()
    said = form.locator(".run-presets [role=status]")
    expect(said).to_contain_text("Changed 6 fields: ")
    expect(steps).to_have_value("5")
    expect(form.locator(".field", has=steps).locator(".was")).to_have_text(f"was {before}")
    expect(form.get_by_role("button", name="Quick look")).to_have_attribute("aria-pressed", "true")
    assert depth(below, "form") == place, "nothing moves"
    look(form, "preset")
    check_look(form)
    with form.expect_response(lambda response: response.request.method == "POST"):
        form.get_by_role("button", name="Undo").click()
    expect(steps).to_have_value(before)
    expect(form.locator("#f-rollout-temperature")).to_have_value("0.9")
    expect(said).to_contain_text("Choose one")


def test_the_time_follows_the_fields_and_nothing_jumps_when_it_comes(form, team):
    time = form.locator(".is-expected").first
    expect(time).to_contain_text("no run of this recipe has trained this model here yet")
    launch = depth(form.locator(".launch"), ".card")
    choice = checks.DatasetChoice(name="demo")
    run = launching.launch(team.researcher, recipe="policy", config={"steps": 40}, dataset=choice)
    ran(run, step_s=30.0, evaluation_s=20.0)
    change(form, "f-seed", lambda field: enter(field, "1"))
    expect(time).to_contain_text("about 20 min")
    expect(time.get_by_role("link", name=f"run {run.pk}")).to_be_visible()
    assert depth(form.locator(".launch"), ".card") == launch
    change(form, "f-steps", lambda field: enter(field, "400"))
    expect(time).to_contain_text("about 4 hours")
    look(form, "time")


def test_an_abandoned_check_writes_no_error_and_one_that_fails_does(form):
    written, held = [], []
    form.on("console", lambda message: written.append(message.text) if message.type == "error" else None)
    form.route("**/runs/new*", lambda route: route.continue_() if held else held.append(route))
    with form.expect_event("requestfailed") as abandoned:
        with form.expect_request("**/runs/new*"):
            enter(form.locator("#f-seed"), "1")
        change(form, "f-seed", lambda field: enter(field, "2"))
    assert abandoned.value.failure == "net::ERR_ABORTED"
    expect(form.locator("#f-seed")).to_have_value("2")
    assert written == []
    form.unroute("**/runs/new*")
    form.route("**/runs/new*", lambda route: route.abort())
    enter(form.locator("#f-seed"), "3")
    expect(form.locator(".toast")).to_be_visible()
    assert any(text.startswith("htmx:sendError") for text in written)
