"""From a bar of a histogram to a file: explore, filter, derive, export, in a browser and by keyboard."""

import zipfile

import pytest
from playwright.sync_api import expect

from trainer.contracts import Example, jsonlines
from webapp.datasets.curation import runner
from webapp.datasets.models import CurationJob, Dataset
from webapp.datasets.versions import services

pytestmark = pytest.mark.browser


@pytest.fixture
def dataset(team):
    made = Dataset.objects.create(workspace=team.workspace, name="Pairs")
    records = (
        Example.model_validate(
            {
                "key": f"k{i:02}",
                "prompt": [{"role": "user", "content": ["What is $\\vec{x}$?", "为什么？", "لماذا؟"][i % 3]}],
                "responses": [{"id": "a", "text": "x" * 40}, {"id": "b", "text": "y" * (20 if i % 4 else 90)}],
                "preferences": [{"a": "a", "b": "b", "strength": -2}],
            }
        )
        for i in range(24)
    )
    services.new_version(team.researcher, made, records, None, {"from": "import", "file": "pairs.jsonl"})
    return made


def work():
    runner.run(CurationJob.objects.latest("id").pk)  # the work of a worker


def test_a_bar_narrows_a_version_is_derived_and_exported(open_page, as_researcher, dataset):
    page = open_page(as_researcher)
    page.goto(f"/datasets/{dataset.pk}")
    expect(page.locator("tbody tr[data-href]")).to_have_count(24)
    page.locator('[data-spread="ratio"] .bar[data-range="2..3"] .hit').click()
    page.wait_for_url("**ratio=2..3")
    expect(page.locator(".chosen")).to_contain_text("6 examples")
    expect(page.locator("tbody tr[data-href]")).to_have_count(6)

    page.locator("summary", has_text="Views").click()
    page.fill('input[name="name"]', "Too long")
    page.keyboard.press("Enter")
    page.wait_for_load_state()
    expect(page.locator(".toolbar .count")).to_have_text("1")

    page.get_by_role("link", name="Derive a version").click()
    page.get_by_role("link", name="Remove what matches").click()
    expect(page.locator(".stats")).to_contain_text("18")
    expect(page.locator("tbody tr[data-href]")).to_have_count(6)
    page.fill('input[name="note"]', "the long ones go")
    page.get_by_role("button", name="Create the version").click()
    page.wait_for_url("**/curations/*")
    work()
    page.get_by_role("link", name="Open version 2").click()
    expect(page.locator(".stats")).to_contain_text("18")

    page.get_by_role("link", name="Versions", exact=True).click()
    expect(page.locator("#v2")).to_contain_text("the long ones go")
    page.locator("#v2").get_by_role("link", name="What changed").click()
    expect(page.locator(".segments [aria-current]")).to_contain_text("Removed 6")

    page.get_by_role("link", name="Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="TRL preference as JSONL").click()
    with zipfile.ZipFile(download.value.path()) as archive:  # one file for each split
        files = [archive.read(name).decode() for name in archive.namelist() if name.endswith(".jsonl")]
    rows = [row for file in files for row in jsonlines.rows(file)]
    assert len(rows) == 18 and rows[0]["prompt"][0]["content"]


def test_explore_is_walked_without_a_mouse(open_page, as_researcher, dataset):
    page = open_page(as_researcher)
    page.goto(f"/datasets/{dataset.pk}")
    first = page.locator('[data-spread="ratio"] .bar').first
    first.focus()
    expect(page.locator('[data-spread="ratio"] output')).to_contain_text("0 to 0.25")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator('[data-spread="ratio"] output')).to_contain_text("18")
    page.keyboard.press("Enter")
    page.wait_for_url("**ratio=0.5..0.67")
    page.keyboard.press("/")
    page.keyboard.type("为什么")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=**")
    expect(page.locator("tbody tr[data-href]")).to_have_count(6)
    page.locator("tbody tr[data-href]").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/examples/*")
    here = page.url
    page.keyboard.press("j")
    page.wait_for_url(lambda url: url != here)


def test_formulas_are_drawn_and_nothing_is_wider_than_a_phone(open_page, as_researcher, dataset):
    page = open_page(as_researcher)
    example = dataset.examples.get(key="k00")
    page.goto(f"/examples/{example.pk}")
    expect(page.locator(".katex").first).to_be_visible()
    assert page.locator(".katex svg").first.bounding_box()["width"] > 3  # the arrow, whose size is set by a style
    page.set_viewport_size({"width": 390, "height": 844})
    base = f"/datasets/{dataset.pk}/versions"
    for path in (f"/datasets/{dataset.pk}", base, f"{base}/1/curate", f"{base}/1/export", f"/examples/{example.pk}"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
