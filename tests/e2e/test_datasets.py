"""From a file on a person's disk to a page of examples, in a browser."""

import json

import pytest
from playwright.sync_api import expect

from tests.e2e.importing import import_file
from webapp.datasets.ingest import services
from webapp.datasets.models import ImportJob

pytestmark = pytest.mark.browser


def test_a_file_is_shown_before_it_has_a_name_then_imported_and_read_page_by_page(open_page, as_researcher, tmp_path):
    rows = [{"prompt": f"Question {i}", "chosen": "Yes.", "rejected": "No."} for i in range(70)]
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    page = open_page(as_researcher)
    page.goto("/datasets/import")
    page.set_input_files("#id_file", file)
    expect(page.locator("#preview h2")).to_have_text("TRL preference")
    expect(page.locator("#preview")).to_contain_text("Question 4")
    expect(page.locator("#id_name")).to_have_value("questions")

    page.fill("#id_name", "Questions")
    page.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_url("**/imports/*")
    services.run_import(ImportJob.objects.get().pk)  # the work of a worker
    page.get_by_role("link", name="Open the dataset").click()
    shown = page.locator("tbody tr[data-href]")
    expect(shown).to_have_count(50)
    page.get_by_text("Load more").click()
    expect(shown).to_have_count(70)
    page.locator("summary", has_text="Train on it").click()
    offer = page.locator(".train-menu").get_by_role("link", name="Reward model")
    expect(offer).to_contain_text("pairs")
    offer.click()
    expect(page.locator("#f-dataset option:checked")).to_contain_text("Questions")


def test_a_waiting_import_is_cancelled_also_by_a_press_during_which_its_card_is_drawn_anew(
    open_page, as_researcher, tmp_path
):
    file = tmp_path / "questions.jsonl"
    file.write_text('{"prompt": "Why?", "chosen": "So.", "rejected": "No."}\n')
    page = open_page(as_researcher)
    page.goto("/datasets/import")
    page.fill("#id_name", "Questions")
    page.set_input_files("#id_file", file)
    expect(page.locator("#id_name")).to_have_value("Questions")  # what a person wrote stays
    page.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_url("**/imports/*")
    other = page.context.new_page()
    other.goto(page.url)
    page.bring_to_front()
    page.get_by_role("button", name="Cancel").hover()
    page.mouse.down()
    with page.expect_response("**/imports/*"):
        pass
    page.wait_for_timeout(500)  # until it is drawn
    page.mouse.up()
    expect(page.get_by_text("The import was cancelled. Nothing was imported.")).to_be_visible()
    other.bring_to_front()
    expect(other.get_by_text("The import was cancelled. Nothing was imported.")).to_be_visible()
    asked = []
    other.on("request", lambda request: asked.append(request.url))
    other.wait_for_timeout(4_500)
    assert not asked  # it has ended
    assert ImportJob.objects.get().state == ImportJob.State.CANCELLED


def test_a_long_text_of_an_example_is_folded_and_opens_by_key(open_page, as_researcher, tmp_path):
    long = "\n\n".join(f"Paragraph {i} with [a link](https://example.org/{i})." for i in range(300))
    file = tmp_path / "long.jsonl"
    file.write_text(json.dumps({"prompt": long, "chosen": "Yes.", "rejected": "No."}) + "\n")
    page = open_page(as_researcher)
    import_file(page, file, "TRL preference", "Long texts")
    page.locator("tbody tr[data-href] a").first.click()
    prompt = page.locator(".prose", has_text="Paragraph 299")
    expect(page.get_by_role("button", name="Show all")).to_have_count(1)  # short texts have none
    folded = prompt.bounding_box()
    assert folded is not None and folded["height"] < 1000
    page.get_by_role("button", name="Show all").press("Enter")
    expect(page.get_by_role("button", name="Show less")).to_have_attribute("aria-expanded", "true")
    opened = prompt.bounding_box()
    assert opened is not None and opened["height"] > 5 * folded["height"]
    page.get_by_role("button", name="Show less").click()
    expect(page.get_by_role("button", name="Show all")).to_be_in_viewport()
