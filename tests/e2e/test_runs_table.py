"""The table of runs, as a researcher uses it: a query with completion, columns, keys, a change of many runs and its undo, a view."""

import os
import re
from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.seed import seed_run
from tests.e2e.test_accessibility import AXE, LOOK, in_both_themes
from tests.webapp.experiments.conftest import make_version
from webapp.datasets.models import Dataset
from webapp.experiments.launch import checks, services
from webapp.experiments.metrics import facts, series
from webapp.experiments.metrics.points import LoggedPoint
from webapp.experiments.models import MetricPoint, Point, Rollout, Run, RunTag
from webapp.experiments.table import columns, comparing
from webapp.experiments.table import services as table
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.browser
DRAWN = "async () => { for (let i = 0; i < 5; i++) await new Promise(requestAnimationFrame); }"


@pytest.fixture
def runs(server, team) -> list[Run]:
    version = make_version(team.owner)
    RegisteredModel.objects.create(
        workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/models/smollm2"
    )
    choice = checks.DatasetChoice(id=version.dataset_id)
    made = []
    for place, lr in enumerate((1e-4, 3e-5, 1e-5)):
        for seed in (0, 1):
            config = {"steps": 60, "seed": seed, "optim": {"lr": lr}}
            run = services.launch(
                team.researcher, recipe="policy", config=config, dataset=choice, name=f"lr {lr:g}, seed {seed}"
            )
            seed_run(run, steps=20 + 10 * place, state="finished", seed=2 * place + seed, brief=True)
            points = Point.objects.filter(run=run, value__isnull=False).order_by("step")
            told = [LoggedPoint(each.key, each.step, each.time, each.value) for each in points]
            facts.keep_metrics(team.workspace.pk, run, series.of_points(told))
            made.append(run)
    table.set_tags(team.researcher, made[0], ["ablation", "paper"])
    table.write_notes(team.researcher, made[0], "Collapsed after step **15**; see the log.")
    return made


def photograph(page, name: str) -> None:
    """Saves pictures, light and dark, in the folder that LOOK names."""
    if folder := os.environ.get("LOOK"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(150)
            page.screenshot(path=Path(folder) / f"{name}-{scheme}.png", full_page=True)
        page.emulate_media(color_scheme="light")


def test_a_query_is_completed_and_what_is_wrong_is_marked(open_page, as_researcher, runs):
    page = open_page(as_researcher)
    page.goto("/experiments")
    assert layout_faults(page) == []
    photograph(page, "runs")
    page.keyboard.press("/")
    query = page.get_by_role("combobox", name="Query")
    expect(query).to_be_focused()
    query.press_sequentially("config.optim.l")
    option = page.get_by_role("option", name="config.optim.lr", exact=False).first
    expect(option).to_be_visible()
    photograph(page, "runs-completion")
    query.press("ArrowDown")
    query.press("Enter")
    query.press_sequentially("<2e-5 stat:done")
    query.press("Enter")
    expect(page.locator("mark")).to_have_text("stat")
    photograph(page, "runs-problem")
    query.fill("config.optim.lr<2e-5")
    query.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator("[data-count]")).to_have_text("2 runs")


def test_columns_are_chosen_sorted_and_kept_as_a_view(open_page, as_researcher, runs):
    page = open_page(as_researcher)
    page.goto("/experiments")
    page.get_by_role("button", name="Columns").click()
    search = page.get_by_role("searchbox", name="Search columns")
    search.fill("optim.lr")
    page.get_by_role("checkbox", name="optim.lr").first.check()
    search.fill("max(reward/mean")
    page.get_by_role("checkbox", name="max(reward/mean)").check()
    photograph(page, "runs-columns")
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_role("link", name="optim.lr").click()
    head = page.get_by_role("columnheader", name="optim.lr")
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(page.locator("tbody tr").first).to_contain_text("lr 0.0001")
    page.locator("summary", has_text="Views").click()
    page.get_by_role("button", name="Save this view").click()
    page.get_by_label("Name", exact=True).fill("By rate")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("summary", has_text="By rate")).to_be_visible()
    expect(page.get_by_role("columnheader", name="max(reward/mean)")).to_be_visible()
    page.locator("summary", has_text="By rate").click()
    page.get_by_role("button", name="Open “By rate” first").click()
    expect(page.get_by_text("opens first")).to_be_attached()
    page.get_by_role("link", name="Experiments", exact=True).click()
    expect(page.locator("summary", has_text="By rate")).to_be_visible()


def test_many_are_chosen_by_keys_tagged_and_taken_back(open_page, as_researcher, runs):
    page = open_page(as_researcher)
    page.goto("/experiments")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_role("button", name="Compare")).to_be_hidden()
    photograph(page, "run-chosen")
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("again with changes")
    page.goto("/experiments")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("[data-chosen]")).to_have_text("2 runs chosen")
    expect(page.get_by_role("button", name="Run again")).to_be_hidden()
    photograph(page, "runs-chosen")
    page.keyboard.press("s")
    expect(page.locator("tbody tr").nth(1).locator("[data-star]")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("t")
    page.locator("#word-input").fill("night")
    page.locator("#word-input").press("Enter")
    undo = page.get_by_role("button", name="Undo")
    expect(undo).to_be_visible()
    expect(page.locator(".chip", has_text="night")).to_have_count(2)
    photograph(page, "runs-tagged")
    undo.click()
    expect(page.get_by_text("Undone for 2 runs")).to_be_visible()
    assert not RunTag.objects.filter(name="night").exists()
    page.locator("[data-choose-page]").check()
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_role("heading", name="No run matches")).to_be_visible()
    assert Run.objects.filter(archived_at__isnull=False).count() == 6


def test_a_late_answer_about_a_tag_leaves_the_next_question_open(open_page, as_researcher, runs):
    """In an earlier version, the answer closed the dialog and loaded the page again although a group was being written by then."""
    page, held = open_page(as_researcher), []
    page.route("**/table/actions", lambda route: route.continue_() if held else held.append(route))
    page.goto("/experiments")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("t")
    with page.expect_request("**/table/actions"):
        page.locator("#word-input").fill("night")
        page.locator("#word-input").press("Enter")
    page.locator("#word-input").press("Escape")
    page.get_by_role("button", name="Group", exact=True).first.click()
    page.locator("#word-input").fill("autumn")
    with page.expect_response("**/table/actions"):
        held[0].continue_()
    expect(page.locator("#word-dialog h2")).to_have_text("Group the chosen runs")
    expect(page.locator("#word-input")).to_have_value("autumn")
    page.locator("#word-input").press("Enter")
    expect(page.locator(".chip", has_text="night")).to_have_count(
        1
    )  # the page is loaded again when nothing is being asked
    assert Run.objects.filter(group="autumn", tags__name="night").count() == 1


def test_notes_and_tags_stand_on_the_run(open_page, as_researcher, runs):
    page = open_page(as_researcher)
    page.goto(f"/runs/{runs[0].pk}")
    expect(page.locator(".run-labels strong")).to_have_text("15")
    photograph(page, "run-labels")
    page.get_by_text("Change tags and notes").click()
    page.get_by_role("textbox", name="Tags").fill("paper, best")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".run-labels .chip")).to_have_text(["best", "paper"])


def test_seeds_are_folded_and_chosen_together(open_page, as_researcher, runs):
    page = open_page(as_researcher)
    page.goto("/experiments")
    page.get_by_role("checkbox", name="Fold seeds").check()
    expect(page.locator("tr.is-folded")).to_have_count(3)
    page.goto(
        "/experiments?fold=seeds&columns=state,eval/rubric_score,config.optim.lr,config.seed,took&sort=-eval/rubric_score"
    )
    expect(page.locator("tbody tr").first).to_contain_text("2 seeds")
    photograph(page, "runs-folded")
    page.locator("tbody tr").first.get_by_role("checkbox").check()
    expect(page.locator("[data-chosen]")).to_have_text("2 runs chosen")
    page.locator("tbody tr").first.get_by_role("link").first.click()
    expect(page.locator("tbody tr")).to_have_count(2)


def test_runs_are_compared_over_their_seeds(open_page, as_researcher, runs):
    page = open_page(as_researcher)
    page.goto(f"/runs/compare?ids={','.join(str(run.pk) for run in runs)}")
    rows = page.locator("#compare-finals tbody tr")
    expect(rows).to_have_count(3)
    expect(page.locator("#compare-charts .chart canvas").first).to_be_visible()
    expect(page.locator("#compare-differences")).to_have_text("2 config fields differ")
    rows.nth(0).get_by_role("button", name="Set as baseline").click()
    expect(rows.nth(0).get_by_role("button", name="Clear baseline")).to_be_visible()
    expect(page.get_by_role("columnheader", name="against the baseline").first).to_be_visible()
    expect(rows.nth(0).locator(".against").first).to_have_text("baseline")
    assert layout_faults(page) == []
    photograph(page, "compare")
    sideways = page.locator("#compare-finals").evaluate("node => node.scrollWidth - node.clientWidth")
    assert sideways <= 0, "a baseline makes the table wider than its place"
    page.get_by_role("checkbox", name="Log scale", exact=True).check()
    page.get_by_role("checkbox", name="Fold seeds").uncheck()
    page.get_by_role("button", name="Time").click()
    expect(page.locator("#compare-charts .chart-key").first).to_be_visible()
    expect(page.locator("#compare-scatter circle")).to_have_count(6)
    picture = page.locator("#compare-scatter svg").bounding_box()
    for text in page.locator(".scatter-text").all():  # no number is cut at the edge
        box = text.bounding_box()
        assert picture["x"] <= box["x"] and box["x"] + box["width"] <= picture["x"] + picture["width"] + 1
    rows.nth(1).get_by_role("checkbox").uncheck()
    expect(page.locator("#compare-scatter circle")).to_have_count(4)
    photograph(page, "compare-log-time")


def test_a_chart_beyond_the_metrics_with_values_has_its_title(open_page, as_researcher, runs, monkeypatch):
    monkeypatch.setattr(comparing, "MOST_KEYS", 2)
    page = open_page(as_researcher)
    page.goto(f"/runs/compare?ids={runs[0].pk},{runs[2].pk}")
    titles = page.locator("#compare-charts .chart-title")
    expect(titles).to_have_count(2)
    more = page.get_by_label("Add a metric")
    more.select_option("policy/kl")
    label = columns.metric_label("policy/kl", ["policy"])
    assert label != "policy/kl"
    expect(titles).to_have_count(3)
    expect(titles.last).to_contain_text(label)


def test_values_that_are_all_the_same_stand_in_the_middle(open_page, as_researcher, runs):
    page = open_page(as_researcher)
    page.goto(f"/runs/compare?ids={','.join(str(run.pk) for run in runs)}")
    rows = page.locator("#compare-finals tbody tr")
    for place in (1, 2):
        rows.nth(place).get_by_role("checkbox").uncheck()
    page.locator("#scatter-x").select_option("config.optim.lr")
    expect(page.locator("#compare-scatter circle")).to_have_count(2)
    box = page.locator("#compare-scatter svg").bounding_box()
    for point in page.locator("#compare-scatter circle").all():
        assert 0.4 < (point.bounding_box()["x"] - box["x"]) / box["width"] < 0.6
    expect(page.locator(".scatter-text")).to_have_count(4)  # one number across, two upward, and what is drawn across


def test_a_long_name_leaves_room_for_the_columns_beside_it(open_page, as_researcher, runs):
    Run.objects.filter(pk=runs[0].pk).update(name="a-run-with-a-name-of-one-word-" + "x" * 90)
    Dataset.objects.update(name="comparisons_" + "y" * 80)
    page = open_page(as_researcher)
    for address in ("/", "/experiments"):
        page.goto(address)
        expect(page.get_by_text("a-run-with-a-name").first).to_be_visible()
        assert page.locator("table .run-name").first.bounding_box()["width"] <= 26 * 16
        name = page.get_by_role("link", name="a-run-with-a-name").first
        assert name.bounding_box()["height"] < 48, "two lines; the title has the rest"
        expect(name).to_have_attribute("title", "a-run-with-a-name-of-one-word-" + "x" * 90)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 800})
            assert layout_faults(page) == [], (address, width)
        page.set_viewport_size({"width": 1280, "height": 800})


def test_a_comparison_says_that_it_reads_and_shows_all_at_once(open_page, as_researcher, runs):
    Run.objects.filter(pk=runs[0].pk).update(name="a-run-with-a-name-of-one-word-" + "x" * 90)
    page = open_page(as_researcher)
    held = []
    page.route("**/api/v1/runs/table/compare?*", lambda route: held.append(route))
    page.goto(f"/runs/compare?ids={runs[0].pk},{runs[2].pk}")
    expect(page.get_by_role("status").filter(has_text="Reading the runs")).to_be_visible()
    expect(page.get_by_role("heading", name="Config")).to_be_hidden()
    held[0].continue_()
    config = page.locator("#compare-config")
    expect(config).to_be_visible()
    expect(page.get_by_text("Reading the runs")).to_be_hidden()
    head = config.get_by_role("columnheader", name="a-run-with-a-name")
    assert head.locator(".run-head").bounding_box()["width"] <= 14 * 16
    assert config.get_by_role("rowheader", name="optim.lr").bounding_box()["height"] < 48, "a path stays in one line"
    assert layout_faults(page) == []


def first_column(page, chart) -> str:
    """Its name in the file of a chart."""
    chart.get_by_label("Download or change").click()
    with page.expect_download() as told:
        chart.get_by_role("button", name="Data as CSV").click()
    return told.value.path().read_text().splitlines()[0].split(",")[0].strip('"')


def test_curves_are_compared_by_the_tokens_that_the_runs_had_used(open_page, as_researcher, runs):
    small, large, silent = runs[0], runs[2], runs[4]
    MetricPoint.objects.bulk_create(
        MetricPoint(run=run, key="rollout/tokens", step=step, value=tokens, time=timezone.now())
        for run, tokens in ((small, 100.0), (large, 400.0))
        for step in range(1, 21)
    )
    for run in (small, large):
        told = [LoggedPoint("rollout/tokens", step, timezone.now(), 100.0) for step in range(1, 21)]
        facts.keep_metrics(run.experiment.workspace_id, run, series.of_points(told))
    page = open_page(as_researcher)
    page.goto(f"/runs/compare?ids={small.pk},{large.pk},{silent.pk}")
    chart = page.locator("#compare-charts .chart").first
    chart.locator("canvas").wait_for()
    expect(page.get_by_role("button", name="Samples", exact=True)).to_have_count(0)  # no run tells them
    page.get_by_role("button", name="Tokens", exact=True).click()
    expect(page.locator("#compare-lacking")).to_have_text("Not drawn: 1 run that does not say how many tokens it used.")
    ends = "(node) => node.chart.shown.map(({ curve }) => Math.round(curve.steps.at(-1)))"
    page.evaluate(DRAWN)
    assert chart.evaluate(ends) == [2000, 8000]  # 20 steps of 100, and 20 steps of 400 tokens
    assert first_column(page, chart) == "tokens"
    page.reload()  # the address holds it
    expect(page.get_by_role("button", name="Tokens", exact=True)).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#compare-lacking")).to_contain_text("Not drawn")
    page.get_by_role("button", name="Steps", exact=True).click()
    expect(page.locator("#compare-lacking")).to_be_empty()
    assert first_column(page, chart) == "step"
    page.get_by_role("button", name="Time", exact=True).click()
    assert first_column(page, chart) == "seconds"


def test_a_comparison_that_cannot_be_read_says_so_in_its_place(open_page, as_researcher, runs):
    page = open_page(as_researcher)
    page.route("**/api/v1/runs/table/compare?*", lambda route: route.fulfill(status=200, body="no JSON"))
    page.goto(f"/runs/compare?ids={runs[0].pk},{runs[2].pk}")
    expect(page.locator("#compare-finals")).to_contain_text("The comparison could not be loaded")


def test_the_prompts_on_which_two_runs_differ_most_lead_to_their_responses(open_page, as_researcher, runs):
    first, second = runs[0], runs[2]
    for run, rewards in ((first, {"a": 0.2, "b": 0.5}), (second, {"a": 0.9, "b": 0.4})):
        Rollout.objects.bulk_create(
            Rollout(
                run=run, step=60, phase="eval", group=group, index=0, example_key=key, reward=reward,
                content={"prompt": f"Question {key}", "response": "Yes.", "criteria": [], "parts": []},
            )
            for group, (key, reward) in enumerate(rewards.items())
        )  # fmt: skip
    Rollout.objects.filter(run=runs[1]).delete()
    page = open_page(as_researcher)
    page.goto(f"/runs/compare?ids={first.pk},{runs[1].pk},{second.pk}")  # the first two differ only by their seed
    expect(page.locator("#prompts-second")).to_have_value(str(second.pk))
    expect(page.locator("#prompts-told")).to_contain_text(
        "2 prompts in both, at steps 60 and 60 · mean difference +0.300"
    )
    rows = page.locator("#prompts-table tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("Question a")
    expect(rows.first).to_contain_text("+0.700")
    expect(rows.nth(1)).to_contain_text("−0.100")
    page.evaluate(AXE.read_text())
    assert page.evaluate(LOOK) == [] and layout_faults(page) == []
    photograph(page, "compare-prompts")
    page.locator("#prompts-second").select_option(str(runs[1].pk))
    expect(page.locator("#prompts-told")).to_have_text(f"{runs[1]} has no evaluation with responses yet.")
    expect(rows).to_have_count(0)
    page.locator("#prompts-second").select_option(str(second.pk))
    rows.first.get_by_role("link").nth(1).click()
    page.wait_for_url(f"**/runs/{second.pk}/prompt?key=a&phase=eval**")
    expect(page.get_by_text("Question a").first).to_be_visible()


def test_the_pages_are_read_by_everybody(open_page, as_researcher, runs):
    page = open_page(as_researcher)
    ids = ",".join(str(run.pk) for run in runs)
    found = []
    for address in ("/experiments", "/experiments?fold=seeds", f"/runs/compare?ids={ids}&baseline={runs[0].pk}"):
        found += in_both_themes(page, address)
    assert found == []


def test_many_are_paused_and_resumed(open_page, as_researcher, runs):
    Run.objects.filter(pk__in=[run.pk for run in runs[:2]]).update(state="queued", ended_at=None)
    page = open_page(as_researcher)
    page.goto("/experiments")
    page.get_by_label("Choose all runs of this page").check()
    page.get_by_role("button", name="Pause", exact=True).press("Enter")
    expect(page.get_by_text("Asked to pause: 2 runs")).to_be_visible()
    expect(page.locator("tbody").get_by_text("Paused")).to_have_count(2)
    page.get_by_role("button", name="Resume", exact=True).press("Enter")
    expect(page.get_by_text("Resumed 2 runs")).to_be_visible()
    assert Run.objects.filter(state="queued").count() == 2
    page.get_by_role("button", name="Resume", exact=True).press("Enter")
    expect(page.get_by_text("none of them is paused")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 800})
    assert layout_faults(page) == []


NEWEST = """() => {
  const charts = [...document.querySelectorAll("#compare-charts .chart")].map((each) => each.chart);
  const [line] = charts.find((each) => each.file === "compare-eval-rubric_score").shown;
  return [line.curve, ...line.around].map((each) => each.values.at(-1));
}"""
AXIS = """() => {
  const { plot } = [...document.querySelectorAll("#compare-charts .chart")].map((each) => each.chart).find((each) => each.file === "compare-eval-rubric_score");
  return plot.scales.y.max - plot.scales.y.min;
}"""


def test_the_band_of_a_mean_over_seeds_is_its_interval_or_the_seeds(open_page, as_researcher, runs):
    key = "eval/rubric_score"
    low, high = sorted(
        MetricPoint.objects.filter(run=run, key=key).order_by("step").values_list("value", flat=True).last()
        for run in runs[:2]
    )
    middle, half = (
        (low + high) / 2,
        12.7062 * (high - low) / 2,
    )  # t with 1 degree of freedom; s / sqrt(2) is half the distance
    page = open_page(as_researcher)
    page.goto(f"/runs/compare?ids={runs[0].pk},{runs[1].pk}")
    expect(page.locator("#compare-charts .chart canvas").nth(5)).to_be_visible()
    band = page.get_by_label("Band")
    expect(band.locator("option:checked")).to_have_text("lowest to highest seed")  # of two, the interval tells nothing
    expect(page.get_by_text("With two seeds, the 95% interval is 13 times the distance between them.")).to_be_visible()
    assert page.evaluate(NEWEST) == pytest.approx([middle, low, high], rel=1e-4)
    report = page.get_by_role("link", name="Begin a report")
    assert "band=range" in report.get_attribute("href")
    band.select_option(label="95% interval of the mean over seeds (Student's t)")
    page.evaluate(DRAWN)
    assert "band" not in report.get_attribute("href")
    page.reload()
    expect(page.locator("#compare-charts .chart canvas").nth(5)).to_be_visible()
    expect(band.locator("option:checked")).to_have_text("95% interval of the mean over seeds (Student's t)")
    assert page.evaluate(NEWEST) == pytest.approx([middle, middle - half, middle + half], rel=1e-4)
    tall = page.evaluate(AXIS)
    photograph(page, "compare-band-interval")
    band.select_option(label="lowest to highest seed")
    page.evaluate(DRAWN)
    assert page.evaluate(NEWEST) == pytest.approx([middle, low, high], rel=1e-4)  # the answer has six digits
    assert page.evaluate(AXIS) == pytest.approx(tall), "the axis follows the seeds, whatever the band is"
    photograph(page, "compare-band-range")
    assert layout_faults(page) == []
    page.get_by_label("Fold seeds").uncheck()
    expect(band).to_be_hidden()
    page.goto(report.evaluate("(link) => link.href"))
    expect(page.get_by_label("Text", exact=True)).to_have_value(re.compile("band: range"))


def test_a_seed_that_was_launched_again_is_one_seed_in_the_curves(open_page, as_researcher, runs):
    page = open_page(as_researcher)
    page.goto("/experiments")
    xs, held = [0], {1: [1.0], 2: [3.0], 3: [6.0], 4: [8.0]}
    found = page.evaluate(
        """async ([xs, held]) => {
          const { line, quantile } = await import("/static/js/familylines.js");
          const grid = { xs, held: new Map(Object.entries(held).map(([id, values]) => [Number(id), values])) };
          const of = (seeds, band) => line(grid, seeds.map((seed, i) => ({ id: i + 1, seed })), band);
          const ends = (found) => [found.curve, ...(found.around ?? [])].map((each) => each.values[0] ?? null);
          return { twice: ends(of([0, 0, 1, 1], "range")), same: ends(of([0, 0, 0, 0])), alone: ends(of([null, null], "range")),
            t: [1, 2, 5, 10, 30, 1000].map(quantile) };
        }""",
        [xs, held],
    )
    assert found["twice"] == [4.5, 2, 7] and found["same"] == [4.5] and found["alone"] == [2, 1, 3]
    assert found["t"] == pytest.approx([12.7062, 4.3027, 2.5706, 2.2281, 2.0423, 1.9623], rel=2e-3)


def test_runs_are_grouped_and_unfold(open_page, as_researcher, runs):
    page = open_page(as_researcher)
    page.goto("/experiments?columns=state,reward/mean,config.seed")
    page.get_by_label("Group by").select_option("config.optim.lr")
    groups = page.locator("tr.is-group")
    expect(groups).to_have_count(3)
    expect(groups.first).to_contain_text("1e-05")
    unfold = groups.first.get_by_role("button", name="Runs of 1e-05")
    unfold.press("Enter")
    inside = page.locator("tr.is-in-group")
    expect(inside).to_have_count(2)
    expect(unfold).to_have_attribute("aria-expanded", "true")
    page.evaluate(AXE.read_text())
    assert page.evaluate(LOOK) == [] and layout_faults(page) == []
    photograph(page, "runs-groups")
    groups.first.get_by_role("checkbox").check()
    inside.first.get_by_role("checkbox").check()
    expect(page.locator("[data-chosen]")).to_have_text("2 runs chosen")  # a run counts once
    unfold.click()
    expect(inside.first).to_be_hidden()
    page.locator("summary", has_text="Views").click()
    page.get_by_role("button", name="Save this view").click()
    page.get_by_label("Name", exact=True).fill("By rate")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("summary", has_text="By rate")).to_be_visible()
    expect(page.get_by_label("Group by")).to_have_value("config.optim.lr")
    groups.first.get_by_role("link", name="1e-05").click()
    expect(page.locator("tr[data-run]")).to_have_count(2)
    expect(page.get_by_role("combobox", name="Query")).to_have_value("config.optim.lr=1e-05")


def test_a_run_that_is_unticked_in_its_group_is_not_changed(open_page, as_researcher, runs):
    page = open_page(as_researcher)
    page.goto("/experiments?group=config.optim.lr")
    groups, inside, told = page.locator("tr.is-group"), page.locator("tr.is-in-group"), page.locator("[data-chosen]")
    page.get_by_label("Choose all runs of this page").check()
    groups.first.get_by_role("button", name="Runs of 1e-05").click()
    box, boxes = groups.first.get_by_role("checkbox"), inside.get_by_role("checkbox")
    expect(boxes.nth(1)).to_be_checked()  # rows that come are as their group
    boxes.first.uncheck()
    expect(box).not_to_be_checked()
    expect(told).to_have_text("5 runs chosen")
    box.check()
    expect(boxes.first).to_be_checked()
    expect(told).to_have_text("6 runs chosen")
    box.uncheck()
    expect(boxes.nth(1)).not_to_be_checked()
    expect(told).to_have_text("4 runs chosen")
    box.check()
    boxes.first.uncheck()
    left = int(boxes.first.input_value())
    page.get_by_role("button", name="Archive").click()
    expect(page.get_by_text("Archived 5 runs")).to_be_visible()
    assert list(Run.objects.filter(archived_at=None).values_list("pk", flat=True)) == [left]


def test_the_boxes_of_a_run_in_several_groups_say_the_same(open_page, as_researcher, runs, team):
    table.set_tags(team.researcher, runs[1], ["paper"])
    page = open_page(as_researcher)
    page.goto("/experiments?group=tag&sort=tag")
    ablation, paper = (page.locator("tr.is-group").nth(place) for place in (0, 1))
    paper.get_by_role("button", name="Runs of paper").click()
    expect(page.locator("tr.is-in-group")).to_have_count(2)
    paper.get_by_role("checkbox").check()
    expect(ablation.get_by_role("checkbox")).to_be_checked()  # its only run is chosen
    ablation.get_by_role("checkbox").uncheck()
    expect(paper.get_by_role("checkbox")).not_to_be_checked()
    expect(page.locator("[data-chosen]")).to_have_text("1 run chosen")


def test_a_person_who_is_signed_out_is_told_so_when_a_group_unfolds(open_page, as_researcher, runs):
    page = open_page(as_researcher)
    page.goto("/experiments?group=config.optim.lr")
    page.context.clear_cookies()
    page.get_by_role("combobox", name="Query").fill("state:finished")
    unfold = page.get_by_role("button", name="Runs of 1e-05")
    unfold.click()
    expect(page.get_by_text("The runs of this group could not be loaded: You are signed out.")).to_be_visible()
    again = page.get_by_role("link", name="Sign in again")
    expect(again).to_have_attribute("href", "/sign-in?next=%2Fexperiments%3Fgroup%3Dconfig.optim.lr")
    with page.context.expect_page() as opened:
        again.click()
    expect(opened.value.get_by_label("Email")).to_be_visible()
    expect(page.get_by_role("combobox", name="Query")).to_have_value("state:finished")
    expect(unfold).to_have_attribute("aria-expanded", "false")
