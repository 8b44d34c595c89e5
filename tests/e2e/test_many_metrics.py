"""A run with a thousand metrics. Each metric has a chart, whose curve is loaded when the chart is in view, and a search field finds it."""

import csv
import math
import os
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.webapp.experiments.conftest import make_version
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launch
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.browser
KEYS = [
    f"{part}/layer{layer:02}/head{head:02}"
    for part in ("attention", "gradient")
    for layer in range(20)
    for head in range(25)
]


@pytest.fixture
def run(server, team, process):
    version = make_version(team.owner)
    RegisteredModel.objects.create(
        workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/models/smollm2"
    )
    choice = checks.DatasetChoice(id=version.dataset_id)
    run = launch.launch(team.researcher, recipe="policy", config={"steps": 20}, dataset=choice)
    trainer = process(run)
    for step in range(1, 6):
        own = {"reward/mean": step / 10, "loose": 1.0 * step, "odd/a-b": 2.0, "odd/a/b": 3.0, "Odd/a": 4.0}
        own |= {"weights/p5": -1.0, "weights/p50": step / 10, "weights/p95": 1.0, "scores/p50": 0.5}
        values = {key: math.sin(place + step) for place, key in enumerate(KEYS)}
        trainer.post(trainer.event("metrics", step, values=own | values))
    return run


def chart(page, key: str):
    return page.locator(f"#chart-{'key-' if key in KEYS else ''}{key.replace('/', '-')}")


def test_a_thousand_metrics_are_drawn_as_they_come_into_view(open_page, as_researcher, run):
    page = open_page(as_researcher)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/curves" in request.url else None)
    page.goto(f"/runs/{run.id}")
    expect(page.locator("#charts .chart-group > h2").last).to_have_text("Other")
    expect(page.locator("#other-attention .chart")).to_have_count(500)
    expect(page.locator("#other-gradient .chart")).to_have_count(500)
    expect(chart(page, "reward/mean").locator("canvas")).to_be_visible()
    expect(chart(page, "reward/mean").locator(".chart-now")).to_have_text("0.500")  # not among the first 200
    assert page.locator("#charts canvas").count() < 100
    look(page, "metrics-top")

    far = chart(page, KEYS[-1])
    height = page.evaluate("document.documentElement.scrollHeight")
    before = len(asked)
    far.scroll_into_view_if_needed()
    expect(far.locator("canvas")).to_be_visible()
    expect(far.locator(".chart-now")).not_to_be_empty()
    assert before < len(asked) < 15
    assert page.evaluate("document.documentElement.scrollHeight") == height
    look(page, "metrics-end")
    assert not layout_faults(page)


def test_curves_in_view_are_asked_for_before_all_others(open_page, as_researcher, run):
    page = open_page(as_researcher)
    asked: list[list[str]] = []

    def note(request) -> None:
        if "/curves" in request.url:
            asked.append(parse_qs(urlsplit(request.url).query).get("key", []))

    page.on("request", note)
    page.goto(f"/runs/{run.id}")
    expect(chart(page, "reward/mean").locator("canvas")).to_be_visible()
    assert "reward/mean" in asked[0]
    assert all(0 < len(keys) <= 40 for keys in asked)  # none asks for everything
    with page.expect_request(lambda request: "/curves" in request.url and quote(KEYS[-1], "") in request.url):
        chart(page, KEYS[-1]).scroll_into_view_if_needed()


def test_the_page_of_a_run_names_every_module_that_it_loads(open_page, as_researcher, run):
    """So that the browser fetches them at once, and not one after another."""
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    expect(chart(page, "reward/mean").locator("canvas")).to_be_visible()
    found = page.evaluate(
        """() => {
            const named = [...document.querySelectorAll("link[rel=modulepreload], script[src]")].map((each) => each.href || each.src);
            const loaded = performance.getEntriesByType("resource").map((each) => each.name).filter((name) => name.endsWith(".js"));
            return { loaded: loaded.length, late: loaded.filter((name) => !named.includes(name)), unused: named.filter((name) => !loaded.includes(name)) };
        }"""
    )
    assert found["loaded"] > 40
    assert (found["late"], found["unused"]) == ([], [])


def test_keys_that_differ_in_one_sign_have_charts_of_their_own(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    charts = page.locator("#other-odd .chart")
    expect(charts).to_have_count(2)
    expect(page.locator("#other-_4f_dd .chart")).to_have_count(1)
    for place, key in enumerate(("odd/a-b", "odd/a/b")):
        expect(charts.nth(place).locator(".chart-title")).to_have_text(key)


def test_quantiles_that_a_program_sends_are_one_chart_with_a_band(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    charts = page.locator("#other-weights .chart")
    expect(charts).to_have_count(1)
    expect(charts.locator(".chart-title")).to_have_text("weights")
    charts.scroll_into_view_if_needed()
    expect(charts.locator("canvas")).to_be_visible()
    charts.hover()
    expect(charts.locator(".chart-tip")).to_contain_text("-1")
    expect(charts).to_contain_text("Middle 90% of its values: -1 to 1")
    expect(charts).not_to_contain_text("95% interval")
    alone = page.locator("#other-scores .chart")
    expect(alone.locator(".chart-title")).to_have_text("scores/p50")


def test_a_field_finds_metrics_by_their_keys_and_its_words_are_in_the_address(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    expect(page.locator("#other-gradient .chart")).to_have_count(500)
    page.get_by_label("Find a metric").fill("gradient layer19")
    shown = page.locator("#charts .chart:visible")
    expect(shown).to_have_count(25)
    expect(page.locator("#chart-found")).to_contain_text("25 of 1,0")
    expect(page.locator("#charts .chart-group:visible")).to_have_count(1)
    expect(shown.first.locator("canvas")).to_be_visible()
    look(page, "metrics-found")

    page.reload()
    expect(page.get_by_label("Find a metric")).to_have_value("gradient layer19")
    expect(shown).to_have_count(25)
    page.get_by_label("Find a metric").fill("no such")
    expect(shown).to_have_count(0)
    page.get_by_label("Find a metric").fill("")
    expect(page.locator("#other-attention .chart:visible")).to_have_count(500)
    assert "find" not in page.url


def test_the_table_of_all_metrics_has_those_that_nobody_looked_at(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    expect(page.locator("#other-gradient .chart")).to_have_count(500)
    with page.expect_download() as saved:
        page.get_by_role("button", name="All as CSV").click()
    head, *rows = csv.reader(saved.value.path().read_text().splitlines())
    assert set(KEYS) <= set(head) and len(rows) == 5
    assert all(len(row) == len(head) and "" not in row for row in rows)


def look(page, name: str) -> None:
    """Takes pictures for a person to look at, if TOUCHSTONE_LOOK names a folder."""
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{folder}/{name}-{scheme}.png")
