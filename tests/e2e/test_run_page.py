"""The run page, as a researcher sees it: curves, rollouts and log change without a reload, also after a lost connection.

`watch` is the part that does not depend on how the run was launched; the full-stack test uses it with a run that really trains.
"""

import os
import random
import re

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.seed import PROMPTS, content, seed_run
from tests.team import browser
from tests.webapp.experiments.conftest import make_version
from trainer.contracts import Preference, Response
from webapp.experiments.launch import checks
from webapp.experiments.launch import services as launch
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.browser


@pytest.fixture
def run(server, team):
    version = make_version(team.owner)
    RegisteredModel.objects.create(
        workspace=team.workspace, name="smollm2-135m-instruct", source="local", path="/models/smollm2"
    )
    choice = checks.DatasetChoice(id=version.dataset_id)
    return launch.launch(team.researcher, recipe="policy", config={"steps": 20}, dataset=choice)


def step_events(process, step: int) -> list[dict]:
    """The records that a trainer sends about one step."""
    rng = random.Random(step)  # noqa: S311 - a picture, not a secret
    values = {"reward/mean": 0.3 + step / 50, "reward/std": 0.1, "policy/ratio_raw": 1.0, "scaffold/ratio": 0.5}
    histogram = {"edges": [0.5, 0.9, 1.1, 1.5], "counts": [3, 90, 7]}
    rollouts = [content(step, "train", 0, index, PROMPTS[0], step / 20, rng) for index in range(2)]
    return [
        process.event("metrics", step, values=values, histograms={"policy/ratio_raw": histogram}),
        process.event("rollouts", step, rollouts=rollouts),
        process.event("log", step, level="info", message=f"step {step} done"),
        process.event("progress", step, phase="rollouts", done=step, total=20, eta_s=60.0),
    ]


def watch(page, run_id: int, advance) -> None:
    """Follows a run on its page. `advance()` returns after the run has reported one more step or several."""
    page.goto(f"/runs/{run_id}")
    page.wait_for_selector('#connection[data-state="live"]')
    advance()
    reward = page.locator("#chart-reward-mean")
    reward.locator("canvas").wait_for()
    before = reward.locator(".chart-now").inner_text()
    page.evaluate("window.notReloaded = true")
    advance()
    expect(reward.locator(".chart-now")).not_to_have_text(before)
    assert page.evaluate("window.notReloaded")


def test_curves_move_without_a_reload_and_survive_a_lost_connection(open_page, as_researcher, run, process, server):
    trainer = process(run)
    steps = iter(range(1, 20))
    page = open_page(as_researcher)
    watch(page, run.id, lambda: trainer.post(*step_events(trainer, next(steps))))
    page.locator('[data-bind="step"]', has_text="2").wait_for()
    expect(page.locator("#chart-reward-mean .chart-now")).to_have_text("0.340")

    server.stop()
    page.wait_for_selector('#connection[data-state="lost"]')
    server.start()
    # may be sent before the page is connected again: it must not be lost
    trainer.post(*step_events(trainer, next(steps)))
    page.wait_for_selector('#connection[data-state="live"]')
    expect(page.locator("#chart-reward-mean .chart-now")).to_have_text("0.360")
    assert page.evaluate("window.notReloaded")


def test_a_page_without_a_network_says_so_and_catches_up(open_page, as_researcher, run, process):
    """A socket notices minutes later that the network is gone. In an earlier version, the page said "Live" until then."""
    trainer = process(run)
    steps = iter(range(1, 20))
    page = open_page(as_researcher)
    watch(page, run.id, lambda: trainer.post(*step_events(trainer, next(steps))))
    page.wait_for_selector('#connection[data-state="live"]')
    page.evaluate("""() => {
      window.there = WebSocket;
      window.WebSocket = class extends EventTarget { readyState = 3; close() {} }; // no new connection
      dispatchEvent(new Event("offline"));
    }""")
    page.wait_for_selector('#connection[data-state="lost"]')
    trainer.post(*step_events(trainer, last := next(steps)))
    page.evaluate("window.WebSocket = window.there; dispatchEvent(new Event('online'))")
    page.wait_for_selector('#connection[data-state="live"]')
    page.locator('[data-bind="step"]', has_text=str(last)).wait_for()
    assert page.evaluate("window.notReloaded")


def test_a_page_whose_session_ended_says_that_it_gets_no_news_until_somebody_signs_in(
    open_page, as_researcher, run, process, server, team
):
    trainer = process(run)
    steps = iter(range(1, 20))
    page = open_page(as_researcher)
    watch(page, run.id, lambda: trainer.post(*step_events(trainer, next(steps))))
    page.wait_for_selector('#connection[data-state="live"]')
    server.stop()  # as during an upgrade, or while the computer sleeps
    page.wait_for_selector('#connection[data-state="lost"]')
    Session.objects.all().delete()
    server.start()
    connection = page.locator("#connection")
    expect(connection).to_have_text("No live updates")
    expect(connection).to_have_attribute("title", re.compile("^You are signed out"))
    cookie = browser(team.researcher).cookies["sessionid"].value
    page.context.add_cookies([{"name": "sessionid", "value": cookie, "url": server.url}])
    trainer.post(*step_events(trainer, last := next(steps)))
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # back from the tab of the sign-in
    expect(connection).to_have_text("Live")
    page.locator('[data-bind="step"]', has_text=str(last)).wait_for()
    assert page.evaluate("window.notReloaded")


def test_a_list_whose_session_ended_asks_on_each_visit_without_a_word_of_live(open_page, as_researcher, run, server):
    page = open_page(as_researcher)
    page.goto("/runs")
    connection = page.locator("#connection")
    expect(connection).to_have_text("Live")
    server.stop()
    expect(connection).to_have_text("Reconnecting…")
    Session.objects.all().delete()
    page.evaluate("""() => {
      window.said = [];
      const element = document.getElementById("connection");
      const say = () => said.push(element.textContent.trim());
      new MutationObserver(say).observe(element, { subtree: true, childList: true, characterData: true, attributes: true });
    }""")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    server.start()
    expect(connection).to_have_text("No live updates")
    with page.expect_websocket(lambda socket: socket.url.endswith("/ws/workspace")) as opened:
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # back to the tab, still signed out
    if not opened.value.is_closed():
        opened.value.wait_for_event("close")
    expect(connection).to_have_text("No live updates")
    assert "Live" not in page.evaluate("said")
    assert asked == [], "nothing is loaded for somebody who is signed out"


def test_an_asynchronous_run_shows_how_its_workers_keep_pace(open_page, as_researcher, run, process):
    trainer = process(run)
    workers = {"async/staleness": 1.0, "async/staleness_max": 2.0, "async/utilisation": 0.8, "async/dropped": 3.0}
    values = workers | {"async/dropped_groups": 0.0, "perf/wait_s": 0.5, "policy/log_ratio": 0.1}
    scores = {
        "eval/rubric_score": 0.4,
        "eval/rubric_score_clipped": 0.4,
        "eval/rubric_score_se": 0.05,
        "eval/excluded": 0.0,
    }
    trainer.post(trainer.event("metrics", 1, values=values | scores, histograms={}))
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    titles = page.locator("#async .chart-title")
    expect(titles).to_contain_text(["Age of the weights", "Workers busy", "Learner waits", "Left out"])
    expect(page.locator("#chart-policy-log-ratio")).to_be_attached()
    expect(page.locator("#other")).to_have_count(0)


def test_a_reward_model_shows_where_it_is_right_and_whether_it_knows(open_page, as_researcher, server, team, process):
    answers = tuple(Response(id=name, text=f"Answer {name}") for name in "ab")
    judged = (Preference(a="a", b="b", strength=-2, rater="r"),)
    version = make_version(team.owner, "pairs", responses=answers, preferences=judged)
    RegisteredModel.objects.create(workspace=team.workspace, name="smollm2", source="local", path="/models/smollm2")
    choice = checks.DatasetChoice(id=version.dataset_id)
    config = {"steps": 20, "model": {"name": "smollm2"}}
    run = launch.launch(team.researcher, recipe="reward_model", config=config, dataset=choice)
    trainer, edges = process(run), [0.5, 0.75, 1.0]
    sure = {"eval/confidence": [20, 40], "eval/confidence_right": [12, 36]}
    histograms = {key: {"edges": edges, "counts": counts} for key, counts in sure.items()}
    for step, share in ((0, 0.5), (10, 0.7), (20, 0.8)):
        values = {"eval/accuracy": share, "eval/ece": 0.2 - step / 200}
        for name in ("books", "tv"):
            ends = {"domain": share, "domain_low": share - 0.2, "domain_high": share + 0.1}
            values |= {f"eval/{key}/{name}": value for key, value in ends.items()}
        trainer.post(trainer.event("metrics", step, values=values, histograms=histograms))
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    shares = page.get_by_role("img", name="share of each bin")
    expect(shares).to_have_attribute(
        "aria-label", "How sure it is where it is right, share of each bin: 0.600 of 20 at 0.625, 0.900 of 40 at 0.875"
    )
    page.locator("#chart-accuracy-by-domain canvas").scroll_into_view_if_needed()
    drawn = page.evaluate(
        "document.querySelector('#chart-accuracy-by-domain').chart.plot.data.slice(3).map((ys) => ys.at(-1))"
    )
    assert drawn == pytest.approx([0.9, 0.6, 0.9, 0.6])  # the band of each line
    expect(page.locator("#other")).to_have_count(0)
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        page.screenshot(path=f"{folder}/reward.png", full_page=True)


def test_two_that_learn_in_turns_show_their_own_steps_alone(open_page, as_researcher, team, process):
    """A step shows only its own role's histogram, not one of an earlier turn of the other role. Counts have a separate chart."""
    answers = tuple(Response(id=name, text=f"Answer {name}") for name in "ab")
    version = make_version(
        team.owner, "pairs", responses=answers, preferences=(Preference(a="a", b="b", strength=-2, rater="r"),)
    )
    RegisteredModel.objects.create(workspace=team.workspace, name="smollm2", source="local", path="/models/smollm2")
    choice = checks.DatasetChoice(id=version.dataset_id)
    config = {"steps": 4, "turn_steps": 1, "model": {"name": "smollm2"}}
    trainer = process(launch.launch(team.researcher, recipe="alternating", config=config, dataset=choice))
    bars = {"edges": [0.5, 0.9, 1.1, 1.5], "counts": [3, 90, 7]}
    for step, role in ((1, "judge"), (2, "writer")):
        values = {"mean": 0.5, "form": 0.5, "outcome": 0.4, "form_excluded": 128.0}
        values = {f"{role}/reward/{key}": value for key, value in values.items()}
        trainer.post(trainer.event("metrics", step, values=values, histograms={f"{role}/policy/ratio_raw": bars}))
    page = open_page(as_researcher)
    page.goto(f"/runs/{trainer.run_id}")
    panes = page.locator(".histogram")
    writer, judge = panes.filter(has_text="writer, Raw"), panes.filter(has_text="judge, Raw")
    expect(writer.get_by_role("img")).to_have_attribute("aria-label", re.compile("100 values"))
    expect(judge).to_contain_text("Not measured at this step")
    page.get_by_label("Step of the histograms").fill("0")
    expect(judge.get_by_role("img")).to_be_visible()
    expect(writer.get_by_role("img")).to_be_hidden()
    expect(writer).to_contain_text("Not measured at this step")
    parts = page.locator("article.chart", has=page.get_by_role("heading", name="Parts of the reward, judge"))
    parts.scroll_into_view_if_needed()
    expect(parts.locator(".chart-key")).to_have_text(["form", "outcome"])
    lacking = page.get_by_role("heading", name="Lacking a part, judge")
    expect(lacking).to_be_visible()
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        page.screenshot(path=f"{folder}/in-turns.png", full_page=True)


def test_the_first_chart_is_in_sight_before_anybody_scrolls(open_page, as_researcher, run):
    seed_run(run, steps=40, state="finished")
    page = open_page(as_researcher)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"/runs/{run.id}")
    expect(page.locator("#charts canvas").first).to_be_attached()
    expect(page.get_by_role("region", name="Time and machine")).to_contain_text("Steps 1 to 40")
    assert page.locator("#charts .chart").first.bounding_box()["y"] <= 730
    assert layout_faults(page) == []
    look(page, "run-head")


def test_no_name_of_a_headline_number_breaks_in_two_lines(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(f"/runs/{run.pk}")
    names = page.locator(".stats .stat > .label")
    expect(names.filter(has_text="Response length")).to_have_text("Response length")
    heights = {name.bounding_box()["height"] for name in names.all()}
    assert max(heights) < 1.5 * min(heights)


def test_rollouts_appear_announce_themselves_and_can_be_filtered(open_page, as_researcher, run, process):
    trainer = process(run)
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/rollouts")
    page.get_by_text("No rollouts yet").wait_for()
    page.wait_for_selector('#connection[data-state="live"]')
    trainer.post(*step_events(trainer, 1))
    page.locator(".response").nth(1).wait_for()
    assert page.locator(".criterion-word").first.inner_text() in ("met", "not met")
    page.get_by_text("weights of step 11, from token 10 on 12").first.wait_for()

    trainer.post(*step_events(trainer, 2))
    page.get_by_text("1 new step: show the newest").wait_for()
    assert page.locator("#step-shown").inner_text() == "1"  # the step on the page does not change
    page.locator("#rollout-news").click()
    expect(page.locator("#step-shown")).to_have_text("2")
    page.keyboard.press(",")
    expect(page.locator("#step-shown")).to_have_text("1")

    page.locator("#tint").select_option("logprob")
    page.locator(".t-logprob").first.wait_for()
    page.locator("#verdict").select_option("missing")
    page.get_by_text("No response of this step fits the filter").wait_for()
    page.reload()  # the address holds the filter
    page.get_by_text("No response of this step fits the filter").wait_for()


def test_a_very_long_response_keeps_its_verdicts_in_sight_and_opens_in_place(open_page, as_researcher, run):
    seed_run(run, steps=2)
    first = run.rollouts.filter(step=2, phase="train", group=0, index=0)
    row = first.get()
    first.update(content={**row.content, "response": "لا شيء جديد هنا. " * 2_000})
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/rollouts")
    text = page.locator(".response-text").first
    text.wait_for()
    expect(text).to_have_css("unicode-bidi", "plaintext")
    expect(text).to_have_attribute("aria-expanded", "false")  # it is measured when it is drawn
    assert text.bounding_box()["height"] < 500
    text.focus()
    page.keyboard.press("Enter")
    expect(text).to_have_attribute("aria-expanded", "true")
    assert text.bounding_box()["height"] > 1_000


def test_a_response_in_several_turns_tells_who_wrote_what(open_page, as_researcher, run, process):
    """The response is in the form in which `rollout_records` writes an attempt with an environment."""
    said = [("policy", ["I", " add", " 2", " and", " 2", "."]), ("env", ["\n", "result", ":", " 4", "\n"])]
    said += [("policy", ["The", " answer", " is", " 4", "."]), ("env", ["done"])]
    turns = [{"author": who, "text": "".join(tokens), "tokens": len(tokens)} for who, tokens in said]
    policys = [who == "policy" for who, tokens in said for _ in tokens]
    row, other = (content(1, "train", 0, place, PROMPTS[0], 0.5, random.Random(place)) for place in range(2))  # noqa: S311
    traced = {
        key: [value if mine else None for mine in policys] for key, value in (("logprobs", -0.2), ("ratios", 1.0))
    }
    row |= {"tokens": [token for _, tokens in said for token in tokens], "turns": turns, "finish_reason": "env"}
    row |= {"response": turns[2]["text"], "mask": [float(mine) for mine in policys], **traced}
    row |= {"stretches": [{"version": 3, "start": 0, "end": 6}, {"version": 3, "start": 11, "end": 16}]}
    trainer = process(run)
    trainer.post(trainer.event("rollouts", 1, rollouts=[row, other]))
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/rollouts")
    first, plain = page.locator(".response").nth(0), page.locator(".response").nth(1)
    expect(first.locator(".said-author")).to_have_text(["Policy", "Environment", "Policy", "Environment"])
    expect(first.locator(".said.is-env")).to_contain_text(["result: 4", "done"])
    expect(first).to_contain_text(
        "17 tokens, 6 of them the environment's · weights of step 3 · ended by the environment"
    )
    expect(plain.locator(".said")).to_have_count(0)
    look(page, "turns")
    for tint in ("logprob", "ratio", "mask"):
        page.locator("#tint").select_option(tint)
        expect(first.locator(f".t-{tint}")).to_have_count(11)
        expect(first.locator(".said.is-env .by-env")).to_have_count(6)
        expect(page.locator("#tint-legend")).to_contain_text("by the environment: read, not learnt")
    look(page, "turns-tinted")
    assert not layout_faults(page)


def look(page, name: str) -> None:
    """Takes pictures for a person to look at, if TOUCHSTONE_LOOK names a folder."""
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=f"{folder}/{name}-{scheme}.png", full_page=True)


def test_the_log_follows_and_waits_while_paused(open_page, as_researcher, run, process):
    trainer = process(run)
    trainer.post(*step_events(trainer, 1))
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/log")
    page.get_by_text("step 1 done").wait_for()
    page.wait_for_selector('#connection[data-state="live"]')
    page.locator("#log-pause").click()
    trainer.post(*step_events(trainer, 2))
    page.get_by_text("1 new line").wait_for()
    assert page.get_by_text("step 2 done").count() == 0
    page.locator("#log-pause").click()
    page.get_by_text("step 2 done").wait_for()


def test_older_lines_are_loaded_once_and_a_failure_is_said(open_page, as_researcher, run, process):
    """In an earlier version, a second press drew the same lines twice, and nothing was said if the server did not answer."""
    trainer, held = process(run), []
    for first in range(0, 600, 100):
        trainer.post(
            *(trainer.event("log", level="info", message=f"line {n} of many") for n in range(first, first + 100))
        )
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}/log")
    lines, older = page.locator(".log-line"), page.get_by_role("button", name="Load older lines")
    page.get_by_text("line 599 of many").wait_for()
    page.locator("#log-search").fill("nothing like this")
    page.get_by_text("No line here has these words").wait_for()
    page.locator("#log-search").fill("")
    shown = lines.count()
    page.route("**/log?before_seq=*", lambda route: held.append(route))
    with page.expect_request("**/log?before_seq=*"):
        older.press("Enter")
    older.press("Enter")
    page.wait_for_timeout(100)
    assert len(held) == 1 and older.get_attribute("aria-busy") == "true"
    held[0].fulfill(status=503, json={"error": {"message": "The server is starting."}})
    page.get_by_text("The log could not be loaded: The server is starting.").wait_for()
    page.unroute("**/log?before_seq=*")
    older.press("Enter")
    page.get_by_text("line 0 of many").wait_for()
    assert lines.count() > shown and page.get_by_text("line 50 of many").count() == 1


def test_a_wrong_field_is_named_while_one_types_and_the_run_launches_once_it_is_right(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto("/runs/new?recipe=policy")
    page.locator("#f-rollout-group_size").fill("1")
    page.locator("#f-rollout-prompts_per_step").fill("6")
    page.locator("#f-steps").focus()
    page.get_by_text("a group of 1 gives every response the advantage 0").wait_for()
    assert page.locator("#f-rollout-prompts_per_step").input_value() == "6"
    page.locator("#f-rollout-group_size").fill("4")
    page.locator("#f-steps").focus()
    page.locator(".derived", has_text="24").wait_for()
    page.locator(".launch").click()
    page.wait_for_url(lambda url: url.split("/")[-1].isdecimal())
    assert page.get_by_text("Queued").first.is_visible()


def test_launch_is_heard_while_the_field_that_was_just_left_is_still_being_checked(open_page, as_researcher, run):
    """A press of the button leaves the field, which asks the server for a check. That must not move the button under the finger."""
    page = open_page(as_researcher)
    page.goto("/runs/new?recipe=policy")
    checks = []
    launches = "action=launch"
    page.route(
        "**/runs/new**",
        lambda route: route.continue_() if launches in (route.request.post_data or "") else checks.append(route),
    )
    page.locator("#f-steps").fill("3")
    page.locator(".launch").click()
    page.wait_for_url(lambda url: url.split("/")[-1].isdecimal())
    assert checks and page.get_by_text("Queued").first.is_visible()


def test_keys_of_the_config_are_read_on_a_phone(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"/runs/{run.id}/config")
    tall = (
        "(keys) => keys.map((key) => key.getBoundingClientRect().height / parseFloat(getComputedStyle(key).fontSize))"
    )
    heights = page.locator(".config-table code").evaluate_all(tall)
    assert len(heights) > 50 and max(heights) < 10, "broken after dots and underscores, never letter by letter"
    assert layout_faults(page) == []


def test_a_curve_stays_small_however_long_the_run(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    found = page.evaluate(
        """async () => {
            const { Curve, LIMIT } = await import("/static/js/series.js");
            const curve = new Curve();
            for (let i = 0; i < 50000; i++) curve.set(i, i === 31000 ? 99 : i % 7);
            curve.set(49999, -5);
            return { n: curve.length, limit: LIMIT, high: curve.summary().high, last: curve.values.at(-1), first: curve.steps[0],
                     sorted: curve.steps.every((s, i) => !i || s > curve.steps[i - 1]) };
        }"""
    )
    assert found["n"] <= found["limit"]
    assert (found["high"], found["last"], found["first"], found["sorted"]) == (99, -5, 0, True)


def test_a_curve_that_is_0_throughout_has_room_to_be_drawn(open_page, as_researcher, run):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    ranges = """async () => {
        const { comfortable } = await import("/static/js/chart.js");
        return [comfortable(0, 0), comfortable(2, 2), comfortable(null, null)];
    }"""
    assert page.evaluate(ranges) == [[0, 0.5], [1.8, 2.2], [0, 1]]


def test_of_fifty_domains_the_largest_are_drawn_with_the_sum_of_the_others_and_all_stand_in_the_table(
    open_page, as_researcher, run
):
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    label, sums, rows, heads, accuracy = page.evaluate(
        """async () => {
            const { annotate, drawn } = await import("/static/js/chartnotes.js");
            const { Curve } = await import("/static/js/series.js");
            const of = (value) => { const curve = new Curve(); curve.set(0, value); curve.set(8, value + 1); return curve; };
            const counts = [...Array(50).keys()].map((i) => { const curve = of(i); return { label: `d${i}`, curve, count: curve, around: [] }; });
            const lines = drawn(counts);
            const place = document.createElement("div");
            annotate(place, counts, false);
            const shares = counts.map((line) => ({ ...line, curve: of(0.5) }));
            return [lines.at(-1).label, lines.at(-1).curve.values, place.querySelectorAll("tbody tr").length,
                    place.querySelectorAll("th.num").length, drawn(shares).map((line) => line.label)];
        }"""
    )
    assert (label, sums) == ("44 others together", [sum(range(44)), sum(range(44)) + 44])
    assert (rows, heads) == (50, 1)
    assert accuracy == ["d49", "d48", "d47", "d46", "d45", "d44"]
