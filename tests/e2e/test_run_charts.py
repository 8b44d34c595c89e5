"""Charts of a run, as a researcher sets them up: scales, outliers, expressions over metrics, and pinned charts."""

import json
import math
import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.team import browser
from tests.webapp.experiments.conftest import make_version
from webapp.experiments.charts import formulas
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launch
from webapp.experiments.metrics.points import LoggedPoint
from webapp.experiments.models import Artifact, CustomChart
from webapp.inference.models import RegisteredModel
from webapp.tracking import services as tracking

pytestmark = pytest.mark.browser
CASES = json.loads((Path(__file__).parents[1] / "webapp/experiments/charts/computed.json").read_text())
SPIKE = 17


@pytest.fixture
def trainer(server, team, process):
    """The values of a run of 40 steps. Its reward has an outlier at one step, and is 0 at two steps."""
    version = make_version(team.owner)
    RegisteredModel.objects.create(
        workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/models/smollm2"
    )
    choice = checks.DatasetChoice(id=version.dataset_id)
    trainer = process(launch.launch(team.researcher, recipe="policy", config={"steps": 60}, dataset=choice))
    for step in range(1, 41):
        reward = 900.0 if step == SPIKE else 0.0 if step in (5, 6) else 1 + math.sin(step / 6)
        tell(trainer, step, {"reward/mean": reward, "policy/kl": step / 40, "odd/a-b": float(step % 4)})
    return trainer


def tell(trainer, step, values):
    trainer.post(trainer.event("metrics", step, values=values))


def look(page, name: str) -> None:
    """Saves pictures for a person to look at, if they are asked for."""
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{folder}/{name}-{scheme}.png")


def scale(chart):
    return chart.evaluate("(node) => [node.chart.plot.scales.y.min, node.chart.plot.scales.y.max]")


def test_outliers_are_clipped_with_a_mark_and_a_log_scale_says_what_has_no_place(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    chart = page.locator("#chart-reward-mean")
    chart.locator("canvas").wait_for()
    lacking = chart.locator(".chart-lacking")
    expect(lacking).to_be_hidden()
    assert scale(chart)[1] > 900
    height = chart.bounding_box()["height"]

    page.get_by_label("Clip outliers").check()
    expect(lacking).to_have_text("Not shown: 1 above")
    assert 2 <= scale(chart)[1] < 4
    page.get_by_label("Log scale").check()
    expect(lacking).to_have_text(re.compile("1 above.*2 at or below 0"))
    assert scale(chart)[0] > 0
    assert chart.bounding_box()["height"] == height  # nothing moves
    look(page, "log-and-clipped")

    page.reload()  # the address holds both
    expect(page.get_by_label("Log scale")).to_be_checked()
    expect(page.get_by_label("Clip outliers")).to_be_checked()
    expect(lacking).to_have_text(re.compile("1 above.*2 at or below 0"))
    page.get_by_label("Clip outliers").uncheck()
    expect(lacking).to_have_text("Not shown: 2 at or below 0")
    page.get_by_label("Log scale").uncheck()
    expect(lacking).to_be_hidden()
    assert "log" not in page.url and "clip" not in page.url


def test_a_run_of_another_program_has_its_charts_although_it_has_no_result(open_page, as_researcher, server, team):
    row = tracking.begin(team.researcher, tracking.experiment(team.researcher, "elsewhere"), "mlflow", name="x" * 120)
    tracking.log(row, [LoggedPoint("loss", step, timezone.now(), 1 / (step + 1)) for step in range(9)])
    page = open_page(as_researcher)
    page.goto(f"/runs/{row.run_id}")
    page.locator("#chart-key-loss canvas").wait_for()


def test_of_a_zoom_only_what_lies_in_it_counts_as_an_outlier(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}?clip=1&from=18&to=40")
    chart = page.locator("#chart-reward-mean")
    chart.locator("canvas").wait_for()
    expect(page.get_by_label("Clip outliers")).to_be_checked()
    expect(chart.locator(".chart-lacking")).to_be_hidden()


def test_the_middle_of_values_is_found_without_their_outliers(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    found = page.evaluate(
        """async () => {
            const { counted, middle, outside } = await import("/static/js/chartscale.js");
            const even = Array.from({ length: 100 }, (_, i) => i + 1);
            const spiked = even.with(40, 1e6).with(41, -1e6);
            const range = middle(spiked);
            const out = outside(even, [spiked], null, range, false);
            return { even: middle(even), few: middle([1, 2, 900]), flat: middle(even.map((_, i) => (i ? 3 : 900))), range,
                     spots: out.spots, told: counted(out), none: counted(outside(even, [even], null, null, false)),
                     log: middle(spiked.map(Math.abs), true)[1], zoomed: outside(even, [spiked], { min: 50, max: 60 }, range, false).above };
        }"""
    )
    assert found["even"] == [1, 100]
    assert (found["few"], found["flat"], found["none"]) == (None, None, "")
    low, high = found["range"]
    assert -60 < low < 1 and 100 <= high < 160
    assert found["spots"] == [{"line": 0, "x": 41, "above": True}, {"line": 0, "x": 42, "above": False}]
    assert (found["told"], found["zoomed"]) == ("Not shown: 1 above, 1 below", 0)
    assert 100 < found["log"] < 1e6


def test_the_browser_computes_expressions_as_the_server_does(open_page, as_researcher, trainer):
    """The server's test reads the same `computed.json`."""
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    cases = [case | {"program": formulas.parse(case["expression"]).steps} for case in CASES]
    found = page.evaluate(
        """async (cases) => {
            const { computed } = await import("/static/js/chartformula.js");
            return cases.map(({ program, values, gives }) => {
              const totals = {};
              return gives.map((_, i) => {
                const value = computed(program, (key) => values[key][i] ?? undefined, totals);
                return value === undefined ? "absent" : value;
              });
            });
        }""",
        cases,
    )
    for case, values in zip(cases, found, strict=True):
        for value, wanted in zip(values, case["gives"], strict=True):
            assert value == (pytest.approx(wanted) if isinstance(wanted, float | int) else wanted), case["expression"]


def test_keys_are_offered_where_one_may_stand(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    found = page.evaluate(
        """async () => {
            const { suggestions } = await import("/static/js/chartformula.js");
            const offer = (text, at = text.length) => suggestions(["a/b", "odd/a-b", "reward/mean"], () => "", text, at).map((each) => [each.text, each.start, each.end]);
            return [offer("").length, offer("2 * rew"), offer("rewxx + 1", 3), offer('1 + "odd'), offer("a/b "), offer("zzz")];
        }"""
    )
    assert found == [
        3,
        [["reward/mean", 4, 7]],
        [["reward/mean", 0, 5]],
        [['"odd/a-b"', 4, 8]],
        [],
        [],
    ]


def test_a_chart_of_expressions_is_made_grows_is_changed_and_comes_back_after_its_deletion(
    open_page, as_researcher, trainer
):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    page.wait_for_selector('#connection[data-state="live"]')
    page.get_by_role("button", name="New chart").click()
    dialog = page.get_by_role("dialog")
    field = dialog.get_by_role("combobox", name="Expression")
    expect(field).to_be_focused()
    page.keyboard.type("reward/mean - rew")
    expect(dialog.get_by_role("option", name="reward/mean")).to_be_visible()
    look(page, "chart-dialog")
    page.keyboard.press("Escape")
    field.fill("reward/mean - + 2 * policy/kl")
    problem = dialog.locator(".chart-line .error")
    expect(problem).to_have_text("At character 15: Write a number, a metric or “(” instead of “+”.")  # while one writes
    expect(field).to_be_focused()
    field.fill("reward/mean - policy/kll -")
    dialog.get_by_label("Title").focus()
    expect(problem).to_contain_text("At character 27: Write a number, a metric or “(” at the end.")
    field.fill("reward/mean - policy/kll")
    dialog.get_by_label("Title").focus()
    expect(problem).to_be_hidden()
    expect(dialog.locator(".chart-line")).to_contain_text("This run does not have policy/kll.")
    look(page, "chart-dialog-unknown")
    field.fill("reward/mean -")
    page.keyboard.press("Enter")
    expect(dialog.locator(".chart-line .error")).to_have_text(
        "At character 14: Write a number, a metric or “(” at the end."
    )
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(dialog.get_by_role("listbox")).to_be_hidden()
    look(page, "chart-dialog-wrong")
    field.fill("reward/mean / policy/kl")
    dialog.get_by_role("button", name="Add an expression").click()
    field.nth(1).fill('1 / "odd/a-b"')
    dialog.get_by_label("Title").fill("Reward by KL")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()

    chart = page.locator("article.chart", has=page.get_by_role("heading", name="Reward by KL"))
    chart.locator("canvas").wait_for()
    expect(page.locator("#charts > section > h2").first).to_have_text("Custom")
    expect(chart.locator(".chart-key")).to_have_text(["reward/mean / policy/kl", '1 / "odd/a-b"'])
    drawn = "(node) => node.chart.data.map((column) => column.at(-1) ?? null)"
    assert chart.evaluate(drawn)[0] == 40
    tell(trainer, 41, {"reward/mean": 3.0, "policy/kl": 1.5, "odd/a-b": 0.0})
    page.wait_for_function("() => document.querySelector('[id^=chart-custom]').chart.data[0].at(-1) === 41")
    assert chart.evaluate(drawn) == [41, 2, None]  # a division by 0 is a gap
    look(page, "custom-chart")

    chart.get_by_label("Download or change Reward by KL").click()
    chart.get_by_role("button", name="Edit").click()
    field.first.fill("reward/mean/policy/kl")
    page.keyboard.press("Enter")
    expect(chart.locator(".chart-foot")).to_have_text(
        "This run has no value of reward/mean/policy/kl. To divide, write spaces around the slash."
    )
    chart.get_by_label("Download or change Reward by KL").click()
    chart.get_by_role("button", name="Delete").click()
    expect(chart).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(chart).to_have_count(1)
    page.reload()
    expect(chart.locator("canvas")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    assert layout_faults(page) == []
    look(page, "custom-chart-phone")


def test_a_double_click_makes_one_chart(open_page, as_researcher, trainer):
    page, sent = open_page(as_researcher), []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.goto(f"/runs/{trainer.run_id}")
    page.get_by_role("button", name="New chart").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Title").fill("Once")
    dialog.get_by_role("combobox", name="Expression").fill("reward/mean * 2")
    dialog.get_by_role("button", name="Save").dblclick()
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("heading", name="Once")).to_have_count(1)
    assert [url.rsplit("/", 1)[1] for url in sent] == ["charts"]


def test_who_may_not_train_sees_custom_charts_and_pins_for_oneself(open_page, as_researcher, team, trainer):
    api = f"/api/v1/runs/{trainer.run_id}"
    for name in ("one", "two"):
        body = {"title": name, "expressions": ["reward/mean * 2"]}
        as_researcher.post(f"{api}/charts", body, content_type="application/json")
    page = open_page(browser(team.reviewer))
    page.goto(f"/runs/{trainer.run_id}")
    titles = page.locator("#custom-charts .chart-title")
    expect(titles).to_have_text(["one", "two"])
    expect(page.get_by_role("button", name="New chart")).to_have_count(0)
    page.locator("#custom-charts").get_by_label("Download or change two").click()
    expect(page.get_by_role("button", name="Edit")).to_have_count(0)
    page.keyboard.press("Escape")

    pin = page.get_by_role("button", name="Pin two", exact=True)
    pin.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#pinned-charts .chart-title")).to_have_text(["two"])
    expect(pin).to_be_focused()
    expect(pin).to_have_attribute("aria-pressed", "true")
    page.locator("#chart-reward-mean").get_by_role("button", name="Pin").click()
    expect(page.locator("#charts > section > h2").first).to_have_text("Pinned")
    expect(page.locator("#pinned-charts .chart-title")).to_have_count(2)
    expect(titles).to_have_text(["one"])
    page.reload()
    expect(page.locator("#pinned-charts .chart-title").first).to_have_text("two")
    page.locator("#pinned-charts #chart-reward-mean canvas").wait_for()
    look(page, "pinned")
    pin.click()
    expect(titles).to_have_text(["one", "two"])


def test_a_chart_is_a_picture_with_its_title_legend_axes_and_what_is_not_shown(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}?clip=1&smooth=0.5")
    chart = page.locator("#chart-reward-mean")
    expect(chart.locator(".chart-lacking")).to_have_text("Not shown: 1 above")
    files = {}
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for kind in ("SVG", "PNG"):
            chart.get_by_label("Download or change Reward").click()
            with page.expect_download() as saved:
                chart.get_by_role("button", name=f"Picture as {kind}").click()
            assert saved.value.suggested_filename == f"run-{trainer.run_id}-reward-mean.{kind.lower()}"
            files[theme, kind] = saved.value.path().read_bytes()
            if folder := os.environ.get("TOUCHSTONE_LOOK"):
                (Path(folder) / f"picture-{theme}.{kind.lower()}").write_bytes(files[theme, kind])
    root = ElementTree.fromstring(files["light", "SVG"])  # noqa: S314 - our own
    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Reward", "step", "Not shown: 1 above", "10", "2"} <= set(texts)
    lines = [each.get("d") for each in root.iter("{http://www.w3.org/2000/svg}path")]
    assert len([line for line in lines if line.count("L") == 39]) == 2  # the measured values, and their mean
    for (_, kind), content in files.items():
        assert content.startswith(b"\x89PNG" if kind == "PNG" else b"<svg")
        assert b"style" not in content or kind == "PNG"
    assert files["light", "SVG"] != files["dark", "SVG"]
    assert b"oklch" not in files["dark", "SVG"]


def test_the_picture_of_a_line_with_gaps_has_them_too(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    found = page.evaluate(
        """async () => {
            const { area, path } = await import("/static/js/chartpicture.js");
            const place = (x, y) => ({ left: x, top: y });
            const xs = [1, 2, 3, 4];
            return [path(xs, [1, null, 3, 4], place, false), path(xs, [1, undefined, 3, 4], place, false),
                    path(xs, [1, null, 3, 4], place, true), area(xs, [1, null, 3, 4], [2, 2, 4, 5], place)];
        }"""
    )
    assert found == ["M1 1M3 3L4 4", "M1 1L3 3L4 4", "M1 1L3 3L4 4", "M1 1L3 3L4 4L4 5L3 4L1 2Z"]


def test_charts_are_drawn_by_the_tokens_that_were_sampled_and_grow_with_them(open_page, as_researcher, trainer):
    for step in range(1, 41):
        tell(trainer, step, {"rollout/tokens": 1000.0, "rollout/responses": 8.0})
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    page.wait_for_selector('#connection[data-state="live"]')
    chart = page.locator("#chart-reward-mean")
    chart.locator("canvas").wait_for()
    page.get_by_role("button", name="Tokens", exact=True).click()
    ends = """(xs) => {
        const drawn = document.querySelector("#chart-reward-mean")?.chart.data?.[0];
        return drawn?.[0] === xs[0] && drawn.at(-1) === xs[1];
    }"""
    page.wait_for_function(ends, arg=[1000, 40000])
    assert "axis=tokens" in page.url
    look(page, "by-tokens")
    tell(trainer, 41, {"rollout/tokens": 500.0, "reward/mean": 1.0})
    page.wait_for_function(ends, arg=[1000, 40500])
    tell(trainer, 41, {"rollout/tokens": 700.0})  # a step that is reported twice counts once
    page.wait_for_function(ends, arg=[1000, 40700])
    page.get_by_role("button", name="Samples", exact=True).click()
    page.wait_for_function(ends, arg=[8, 320])
    page.reload()
    page.wait_for_function(ends, arg=[8, 320])
    expect(page.get_by_role("button", name="Samples", exact=True)).to_have_attribute("aria-pressed", "true")


def test_a_step_between_two_points_of_an_axis_lies_between_them(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    expect(page.get_by_role("button", name="Tokens", exact=True)).to_have_count(0)  # the run does not report tokens
    found = page.evaluate(
        """async () => {
            const { reached } = await import("/static/js/chartmeasures.js");
            const curve = { steps: [10, 20, 40], values: [100, 300, 400] };
            return [0, 10, 15, 20, 30, 40, 50].map((step) => reached(curve, step));
        }"""
    )
    assert found == [0, 100, 200, 300, 350, 400, 400]


def test_what_happened_in_the_run_is_marked_over_the_charts(open_page, as_researcher, trainer):
    for step in (10, 11, 30):
        Artifact.objects.create(
            run_id=trainer.run_id, step=step, role="checkpoint", path=f"checkpoints/{step}", bytes=1, files=[{}]
        )
    tell(trainer, 40, {"eval/rubric_score": 0.5})
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    marks = page.get_by_role("list", name="Checkpoints, evaluations and new weights").locator(".chart-mark")
    names = ["2 × checkpoint, steps 10 to 11: zoom in", "Checkpoint, step 30", "Evaluation, step 40"]
    expect(marks).to_have_count(3)
    assert [each.get_attribute("aria-label") for each in marks.all()] == names
    expect(marks.nth(2)).to_have_attribute("href", f"/runs/{trainer.run_id}/rollouts?phase=eval&step=40")
    look(page, "marks")
    marks.nth(0).focus()
    page.keyboard.press("Enter")
    expect(marks).to_have_count(2)
    expect(marks.nth(1)).to_have_attribute("aria-label", "Checkpoint, step 11")
    page.get_by_role("button", name="Reset zoom").click()
    expect(marks).to_have_count(3)
    page.set_viewport_size({"width": 390, "height": 844})
    assert layout_faults(page) == []
    look(page, "marks-phone")


def test_marks_that_lie_near_are_one_with_a_count(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    found = page.evaluate(
        """async () => {
            const { grouped, told } = await import("/static/js/chartmarks.js");
            const items = [40, 0, 10, 19, 20].map((left) => ({ left, step: left, kind: left === 10 ? "push" : "checkpoint" }));
            return grouped(items, 20).map((group) => [group.left, told(group.items)]);
        }"""
    )
    assert found == [
        [0, "2 × checkpoint, 1 × new weights for the sampler, steps 0 to 19"],
        [20, "Checkpoint, step 20"],
        [40, "Checkpoint, step 40"],
    ]


def test_a_chart_fills_the_window_and_goes_back_into_its_place(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    chart = page.locator("#chart-reward-mean")
    chart.locator("canvas").wait_for()
    before = chart.bounding_box()
    button = chart.get_by_role("button", name="Enlarge Reward")
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "true")
    large = chart.bounding_box()
    assert large["width"] > 1200 and large["height"] > 700 and large["y"] >= 0
    plot = "(node) => node.chart.plot.width > 1000 && node.chart.plot.height > 500"
    page.evaluate("async () => { for (let i = 0; i < 5; i++) await new Promise(requestAnimationFrame); }")
    assert chart.evaluate(plot)
    tell(trainer, 41, {"reward/mean": 1.5})  # it stays live
    expect(chart.locator(".chart-now")).to_have_text("1.500")
    look(page, "chart-large")
    page.keyboard.press("Escape")
    expect(button).to_have_attribute("aria-expanded", "false")
    expect(button).to_be_focused()
    assert chart.bounding_box() == before
    page.set_viewport_size({"width": 390, "height": 844})
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    assert layout_faults(page) == []
    button.click()
    expect(button).to_have_attribute("aria-expanded", "false")


def test_a_vertical_range_is_set_by_hand_and_the_address_holds_it(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    chart = page.locator("#chart-reward-mean")
    chart.locator("canvas").wait_for()
    chart.get_by_label("Download or change Reward").click()
    chart.get_by_role("button", name="Set the vertical range").click()
    low, high = chart.get_by_label("Lowest value"), chart.get_by_label("Highest value")
    expect(low).to_be_focused()
    low.fill("2")
    high.fill("1")
    high.press("Enter")
    assert high.evaluate("(node) => node.validationMessage") == "The highest value must be above the lowest."
    low.fill("-1")
    assert high.evaluate("(node) => node.validationMessage") == ""  # either end may have been wrong
    high.fill("2.5")
    low.press("Enter")
    expect(chart.locator(".chart-lacking")).to_have_text("Not shown: 1 above")
    assert scale(chart) == [-1, 2.5]
    assert "y=reward-mean%3A-1..2.5" in page.url
    look(page, "range-by-hand")
    page.get_by_label("Log scale").check()  # it has no place for -1
    expect(chart.locator(".chart-lacking")).to_have_text("Not shown: 1 above, 2 at or below 0")
    assert scale(chart)[0] > 0 and scale(chart)[1] == 2.5
    page.get_by_label("Log scale").uncheck()
    page.reload()
    expect(high).to_have_value("2.5")
    expect(chart.locator(".chart-lacking")).to_have_text("Not shown: 1 above")
    assert scale(chart) == [-1, 2.5]
    assert layout_faults(page) == []
    chart.get_by_role("button", name="Automatic").click()
    expect(low).to_be_hidden()
    expect(chart.get_by_label("Download or change Reward")).to_be_focused()
    expect(chart.locator(".chart-lacking")).to_be_hidden()
    assert "y=" not in page.url and scale(chart)[1] > 900


def test_a_custom_chart_has_a_vertical_range_for_everybody(open_page, as_researcher, team, trainer):
    page, their = open_page(as_researcher), open_page(browser(team.reviewer))
    page.goto(f"/runs/{trainer.run_id}")
    page.get_by_role("button", name="New chart").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Title").fill("Twice")
    dialog.get_by_role("combobox", name="Expression").fill("reward/mean * 2")
    dialog.get_by_label("from", exact=True).fill("3")
    dialog.get_by_label("to", exact=True).fill("1")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_have_text("The highest value must be above the lowest.")
    expect(dialog.get_by_label("to", exact=True)).to_be_focused()
    dialog.get_by_label("from", exact=True).fill("-1")
    look(page, "chart-dialog-range")
    assert layout_faults(page) == []
    dialog.get_by_role("button", name="Save").click()

    def chart(on):
        return on.locator("article.chart", has=on.get_by_role("heading", name="Twice"))

    expect(chart(page).locator(".chart-lacking")).to_contain_text("above")
    assert scale(chart(page)) == [-1, 1]
    their.goto(f"/runs/{trainer.run_id}")
    expect(chart(their).locator(".chart-lacking")).to_contain_text("above")
    assert scale(chart(their)) == [-1, 1]
    assert "y=" not in their.url

    def ranged(on):  # opens the fields
        chart(on).get_by_label("Download or change Twice").click()
        chart(on).get_by_role("button", name="Set the vertical range").click()
        return chart(on).get_by_label("Highest value")

    ranged(their)
    expect(chart(their).get_by_role("button", name="Save for everybody")).to_be_hidden()
    chart(their).get_by_role("button", name="Automatic").click()
    expect(chart(their).locator(".chart-lacking")).to_be_hidden()
    their.reload()
    expect(chart(their).locator("canvas")).to_be_visible()
    assert scale(chart(their))[1] > 900  # automatic in this look
    chart(their).get_by_role("button", name="As saved").click()
    expect(chart(their).locator(".chart-lacking")).to_contain_text("above")
    assert "y=" not in their.url

    ranged(page).fill("4")
    look(page, "range-for-everybody")
    chart(page).get_by_role("button", name="Save for everybody").click()
    expect(page.locator(".toast")).to_contain_text("Saved the range of “Twice” for everybody")
    expect(chart(page).get_by_label("Highest value")).to_be_hidden()
    assert scale(chart(page)) == [-1, 4]
    chart(page).get_by_label("Download or change Twice").click()
    chart(page).get_by_role("button", name="Edit").click()
    expect(dialog.get_by_label("to", exact=True)).to_have_value("4")
    dialog.get_by_role("button", name="Cancel").click()
    CustomChart.objects.update(title="Thrice", expressions=["reward/mean * 3"])  # by somebody else, meanwhile
    page.get_by_role("button", name="Undo").click()
    expect(chart(page).locator(".chart-lacking")).to_contain_text("above")
    page.reload()
    thrice = page.locator("article.chart", has=page.get_by_role("heading", name="Thrice"))
    expect(thrice.locator("canvas")).to_be_visible()
    assert scale(thrice) == [-1, 1]
    assert CustomChart.objects.get().expressions == ["reward/mean * 3"]


def walking(page, trainer):
    """The chart of the reward, and its cursor with the focus."""
    page.goto(f"/runs/{trainer.run_id}")
    chart = page.locator("#chart-reward-mean")
    chart.locator("canvas").wait_for()
    walk = chart.get_by_role("slider", name="Reward: values, with the arrow keys")
    walk.focus()
    return chart, walk


def test_the_arrow_keys_move_the_cursor_and_the_values_are_told(open_page, as_researcher, trainer):
    page = open_page(as_researcher)
    chart, walk = walking(page, trainer)
    expect(walk).to_have_attribute("aria-valuetext", re.compile("^step 40: "))
    walk.press("Home")
    walk.press("ArrowRight")
    expect(walk).to_have_attribute("aria-valuetext", re.compile(r"^step 2: 1\.327"))
    expect(walk).to_have_attribute("aria-valuenow", "2")
    tip = chart.locator(".chart-tip")
    expect(tip).to_contain_text("step 2")
    expect(tip).to_contain_text("1.327")
    look(page, "cursor-by-keyboard")
    walk.press("PageUp")
    expect(tip).to_contain_text("step 12")
    assert layout_faults(page) == []
    walk.press("Escape")
    expect(tip).to_be_hidden()
    walk.press("ArrowLeft")
    page.locator("h1").click()
    expect(tip).to_be_hidden()


def test_the_cursor_stays_at_its_step_while_a_run_thins_its_points(open_page, as_researcher, trainer):
    chart, walk = walking(open_page(as_researcher), trainer)
    for key in ("PageDown", "PageDown", "PageDown", "ArrowLeft"):
        walk.press(key)
    place = int(walk.get_attribute("aria-valuenow"))
    thinned = """(node, odd) => {
      const [chart, lines] = [node.chart, node.chart.wholly ?? node.chart.lines];
      chart.wholly = lines;
      const thin = ({ steps, values, times }) => {
        const kept = (those) => those.filter((_, i) => (steps[i] % 2 === 1) === odd);
        return Object.assign(Object.create(lines()[0].curve), { steps: kept(steps), values: kept(values), times: kept(times) });
      };
      chart.lines = () => lines().map((line) => ({ ...line, around: undefined, curve: thin(line.curve) }));
      chart.draw();
    }"""
    chart.evaluate(thinned, place % 2 == 1)
    expect(walk).to_have_attribute("aria-valuenow", str(place))
    expect(walk).to_have_attribute("aria-valuetext", re.compile(f"^step {place}: "))
    expect(chart.locator(".chart-tip")).to_contain_text(f"step {place}")
    chart.evaluate(thinned, place % 2 == 0)
    expect(walk).to_have_attribute("aria-valuenow", re.compile(f"^({place - 1}|{place + 1})$"))  # the point is gone
