"""The strip above the charts shows how the last steps spent their time. It is complete even if curves leave steps out."""

import os

import pytest
from playwright.sync_api import expect

from tests.e2e.test_run_page import run  # noqa: F401  the fixture

pytestmark = pytest.mark.browser


def spent(step: int) -> dict[str, float]:
    values = {
        "perf/step_s": 10.0,
        "perf/rollout_s": 6.0,
        "perf/reward_s": 1.0,
        "perf/learner_s": 3.0,
        "perf/cores": 1.5,
        "perf/machine_cores": 2.0,
        "perf/gpu_busy": 0.75,
        "perf/disk_written": 12.5,
        "perf/network_received": 0.5,
    }
    return values | ({"perf/evaluation_s": 10.0} if step % 10 == 0 else {})


def test_the_strip_shows_the_last_steps_and_grows_with_each(open_page, as_researcher, run, process):  # noqa: F811
    trainer = process(run)
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")
    health = page.get_by_role("region", name="Time and machine")
    expect(health).to_contain_text("After the first step")
    below = page.locator("#charts").bounding_box()["y"]
    trainer.post(*(trainer.event("metrics", step, values=spent(step), histograms={}) for step in range(1, 6)))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/metrics?" in request.url else None)
    page.reload()
    expect(health).to_contain_text("Steps 1 to 5")
    assert asked == [], "the curve of a short run has every step"
    for hundred in range(13):
        steps = range(100 * hundred + 1, 100 * hundred + 101)
        trainer.post(*(trainer.event("metrics", step, values=spent(step), histograms={}) for step in steps))
    page.reload()
    strip = health.get_by_role("img")
    # 120 steps of 10 s, and twelve evaluations of 10 s
    expect(strip).to_have_attribute("aria-label", "Share of the time of the last 120 steps: "
        "Sampling 55%, Rewards 9.1%, Training 27%, Evaluation 9.1%")  # fmt: skip
    expect(health).to_contain_text("Steps 1,181 to 1,300")
    expect(health.locator("dd")).to_have_text(["10 s", "1.50 of 2", "75%", "12.50 MiB/s", "512 KiB/s"])
    assert page.locator("#charts").bounding_box()["y"] == pytest.approx(below, abs=1)
    trainer.post(trainer.event("metrics", 1301, values=spent(1301) | {"perf/step_s": 12.5}, histograms={}))
    expect(health).to_contain_text("Steps 1,182 to 1,301")
    expect(health.locator("dd").first).to_have_text("12.50 s")
    assert (
        strip.locator("g").last.locator("title").text_content()
        == "Step 1,301, 10 s: Sampling 6 s, Rewards 1 s, Training 3 s"
    )
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        for theme in ("light", "dark"):
            page.evaluate("(theme) => (document.documentElement.dataset.theme = theme)", theme)
            page.screenshot(path=f"{folder}/health-{theme}.png")
