"""A researcher writes a report: it begins with a comparison, shows a wrong line in its place, is edited in two tabs, and has a chart that
grows with a run.
"""

import os
import re

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.seed import seed_run
from tests.e2e.test_accessibility import AXE, LOOK
from tests.e2e.test_runs_table import photograph
from tests.team import browser
from tests.webapp.experiments.conftest import make_version
from webapp.experiments.launch import checks, services
from webapp.experiments.models import MetricPoint, Run
from webapp.inference.models import RegisteredModel
from webapp.reports import services as reports
from webapp.reports.models import ReportPage

pytestmark = pytest.mark.browser
WORDS = """# not the title

Scaffolds **help**, as $r = 0.4$ says.

```chart
metric: eval/rubric_score, reward/mean
query: state:finished
title: Held out, and in training
```

Then the run that is under way:

```chart
metric: eval/rubric_score
runs: {live}, 999999
```
"""


@pytest.fixture
def lab(server, team) -> list[Run]:
    """Four runs: three are finished, and two of these differ only in their seed. One is still active."""
    version = make_version(team.owner)
    RegisteredModel.objects.create(
        workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/models/smollm2"
    )
    choice, made = checks.DatasetChoice(id=version.dataset_id), []
    for place, (rate, seed) in enumerate([(1e-5, 0), (1e-5, 1), (1e-4, 0), (1e-3, 0)]):
        config = {"steps": 60, "optim": {"lr": rate}, "seed": seed}
        run = services.launch(team.researcher, recipe="policy", config=config, dataset=choice, name=f"rate {rate:g}")
        made.append(
            seed_run(run, steps=60 if place < 3 else 30, state="finished" if place < 3 else "running", seed=place)
        )
    return made


MORE = """
```runs
query: is:any
columns: state, eval/rubric_score, config.optim.lr
title: Last values
```

```rollout
run: {done}
step: 60
prompt: 1
response: 2
```
"""


@pytest.fixture
def report(team, lab) -> ReportPage:
    return reports.create(team.researcher, "Scaffolds help", (WORDS + MORE).format(live=lab[3].pk, done=lab[0].pk))


def test_a_report_is_begun_from_a_comparison_and_a_wrong_line_is_told_in_its_place(open_page, as_researcher, lab):
    page = open_page(as_researcher)
    page.goto("/reports")
    assert layout_faults(page) == []
    photograph(page, "reports-none")
    page.goto(f"/runs/compare?ids={lab[0].pk},{lab[2].pk}")
    page.get_by_role("link", name="Begin a report").click()
    preview, text = page.locator("#report-preview"), page.get_by_label("Text", exact=True)
    expect(preview.locator(".chart canvas")).to_have_count(1)
    page.get_by_label("Title").fill("Scaffolds help")
    text.fill("## Seen\n\n```chart\nmetrc: eval/rubric_score\nquery: state:finished\n```")
    expect(preview.get_by_text("A block “chart” has no “metrc”. Did you mean metric?")).to_be_visible()
    preview.get_by_role("button", name="Line 4").click()
    assert page.evaluate("getSelection().toString()") == "metrc: eval/rubric_score"
    photograph(page, "reports-wrong-line")
    page.keyboard.type("metric: eval/rubric_score")
    expect(preview.locator(".chart canvas")).to_have_count(1)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="Scaffolds help", level=1)).to_be_visible()
    expect(page.locator(".chart-key")).to_have_count(2)


def test_a_band_over_runs_whose_seeds_are_not_known_is_named(open_page, team, lab):
    for run in lab[:2]:  # as of a program that logged one config twice
        Run.objects.filter(pk=run.pk).update(config={key: value for key, value in run.config.items() if key != "seed"})
    block = f"```chart\nmetric: eval/rubric_score\nruns: {lab[0].pk}, {lab[1].pk}\n```"
    page = open_page(browser(team.reviewer))
    page.goto(f"/reports/{reports.create(team.researcher, 'Logged twice', block).pk}")
    expect(page.locator(".chart canvas")).to_have_count(1)
    expect(page.get_by_text("band: 95% interval of the mean over seeds (Student's t)")).to_be_visible()
    ranged = reports.create(team.researcher, "By range", block.replace("runs:", "band: range\nruns:"))
    page.goto(f"/reports/{ranged.pk}")
    expect(page.locator(".chart canvas")).to_have_count(1)
    expect(page.get_by_text("band: lowest to highest seed")).to_be_visible()


def test_charts_are_drawn_with_bands_and_a_run_that_is_not_there_is_named(open_page, team, report):
    page = open_page(browser(team.reviewer))
    page.goto(f"/reports/{report.pk}")
    expect(page.locator(".chart canvas")).to_have_count(3)
    expect(page.get_by_text("Run 999999 is not here")).to_be_visible()
    expect(page.get_by_text("rate 0.001 · live: 1 of 1 run under way")).to_be_visible()
    expect(page.get_by_text("band: 95% interval of the mean over seeds (Student's t)")).to_have_count(1)
    expect(page.locator(".katex")).to_be_visible()
    expect(page.get_by_role("link", name="Edit")).to_have_count(0)
    assert layout_faults(page) == []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        photograph(page, f"report-{theme}")
    page.set_viewport_size({"width": 390, "height": 844})
    photograph(page, "report-phone")
    assert layout_faults(page) == []
    page.evaluate(AXE.read_text())
    assert page.evaluate(LOOK) == []


def test_a_chart_goes_on_while_its_run_does(open_page, team, report, lab):
    page = open_page(browser(team.reviewer))
    page.goto(f"/reports/{report.pk}")
    live = page.locator("[data-report-chart]").nth(1).locator(".chart-body")
    expect(live).to_have_attribute("aria-label", re.compile("at step 30"))
    MetricPoint.objects.create(run=lab[3], step=40, key="eval/rubric_score", value=0.9, time=timezone.now())
    expect(live).to_have_attribute("aria-label", re.compile("last 0.900 at step 40"))


def test_the_second_of_two_tabs_is_told_and_saves_on_top(open_page, as_researcher, report):
    first, second = open_page(as_researcher), open_page(as_researcher)
    for page in (first, second):
        page.goto(f"/reports/{report.pk}/edit")
    first.get_by_label("Title").fill("Scaffolds help a little")
    first.get_by_role("button", name="Save as version 2").click()
    expect(first.get_by_role("heading", name="Scaffolds help a little", level=1)).to_be_visible()
    second.get_by_label("Text", exact=True).press("Control+End")
    second.keyboard.type("\n\nWritten in the other tab.")
    second.get_by_role("button", name="Save as version 2").click()
    expect(second.get_by_role("heading", name="Saved by somebody else meanwhile")).to_be_visible()
    expect(second.get_by_label("Text", exact=True)).to_have_value(re.compile("Written in the other tab."))
    photograph(second, "report-meanwhile")
    second.set_viewport_size({"width": 390, "height": 844})
    photograph(second, "report-meanwhile-phone")
    assert layout_faults(second) == []
    second.get_by_role("button", name="Save as version 3").click()
    expect(second.get_by_text("Written in the other tab.")).to_be_visible()


def test_a_report_is_taken_along_as_one_file_and_printed_on_light_paper(open_page, team, report, tmp_path):
    page = open_page(browser(team.reviewer), color_scheme="dark")
    page.goto(f"/reports/{report.pk}")
    expect(page.locator(".chart canvas")).to_have_count(3)
    expect(page.locator(".report-rollout")).to_be_visible()
    expect(page.locator(".report-table tbody tr")).to_have_count(3)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".rail")).to_be_hidden()
    expect(page.get_by_role("link", name="History")).to_be_hidden()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate("document.querySelector('.chart canvas').clientWidth") <= 640
    # a browser prints no other backgrounds
    assert page.evaluate("getComputedStyle(document.querySelector('.chart-key .swatch')).printColorAdjust") == "exact"
    photograph(page, "report-print")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    if folder := os.environ.get("LOOK"):
        page.pdf(path=f"{folder}/report.pdf", prefer_css_page_size=True)
    page.locator("summary").filter(has_text="Export").click()
    with page.expect_download() as taken:
        page.get_by_role("link", name="One HTML file").click()
    taken.value.save_as(tmp_path / "report.html")
    asked: list[str] = []
    page.context.set_offline(True)
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "report.html").as_uri())
    expect(page.locator(".chart-svg")).to_have_count(3)
    expect(page.locator(".report-rollout")).to_be_visible()
    # the policy of the page lets its style in
    assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") == "832px"
    assert len(asked) == 1
    photograph(page, "report-file")
    page.set_viewport_size({"width": 390, "height": 844})
    photograph(page, "report-file-phone")
    assert layout_faults(page) == []


def test_an_older_version_is_looked_at_and_restored(open_page, as_researcher, team, report):
    reports.write(team.researcher, report, 1, "Scaffolds help", "Nothing is left.")
    page = open_page(as_researcher)
    page.goto(f"/reports/{report.pk}/versions")
    photograph(page, "report-history")
    assert layout_faults(page) == []
    page.locator("summary", has_text="v1").click()
    page.get_by_role("button", name="Restore version 1").click()
    expect(page.get_by_text("Then the run that is under way:")).to_be_visible()
    expect(page.get_by_text("Version 3, saved by")).to_be_visible()


def test_a_double_click_writes_one_report(open_page, as_researcher, lab):
    page = open_page(as_researcher)
    page.goto("/reports/new")
    page.get_by_label("Title").fill("Once")
    page.get_by_role("button", name="Save", exact=True).evaluate(
        "(button) => { button.click(); setTimeout(() => button.click(), 60); }"
    )
    expect(page.get_by_role("heading", name="Once")).to_be_visible()
    assert ReportPage.objects.filter(title="Once").count() == 1
