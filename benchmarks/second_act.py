"""From one's own comparisons to a model of them, through the pages: `python -m benchmarks.second_act [--answers 8]`.

Starts everything as `make run` does, in its own folder, with the demo; signs in with the printed link, in Chromium; ends
the demo's first run (with `--wait`, waits for its end); compares pairs of the demo's second project by keyboard, as the demo's own
rater did; and presses *Train a reward model* on the first page. Times of the run are the server's, from the click on.

A person reads for half a minute or longer where the script takes a second, so the table also shows what is left of ten minutes
for each answer.
"""

import argparse
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.machine import away, describe
from tests.chromium import FLAGS, HOW_TO_GET_IT, LIKE_PEOPLES
from tests.stack import ROOT, Stack

PROJECT = "Which answer is better?"
OVER = ("finished", "stopped", "failed")
PROMISE_S = 600.0
GOLD_EVERY = 8  # as demo/projects.json has it
AS_PEOPLE_DO = {"OMP_NUM_THREADS": None, "MAX_RUNNING_RUNS": None}
LONG_MS = 900_000.0


@dataclass(frozen=True)
class Times:
    """Seconds. Those of the run are since the click; None if the run had nothing to evaluate on."""

    answering: float
    first_point: float
    first_result: float | None
    model: float


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.second_act",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--answers", type=int, default=8, help="how many pairs are compared, 8 or more")
    parser.add_argument(
        "--wait", action="store_true", help="let the demo's run come to its end first (some 10 minutes)"
    )
    options = parser.parse_args()
    if LIKE_PEOPLES is None:
        away(HOW_TO_GET_IT)
    machine = describe()
    stack = Stack(env=AS_PEOPLE_DO)
    try:
        stack.wait_until_up()
        stack.wait_for(f"{'demo':<10}done", timeout_s=3600)
        with stack.api() as api, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=LIKE_PEOPLES, args=FLAGS)
            page = browser.new_context(base_url=stack.url, viewport={"width": 1280, "height": 800}).new_page()
            page.set_default_timeout(LONG_MS)
            page.goto(stack.manage("demo", "--link"))
            found = act(page, api, options.answers, options.wait)
            browser.close()
    finally:
        stack.stop()
    tell(machine, found, options.answers)


def act(page: Page, api: httpx.Client, answers: int, wait: bool) -> Times:
    first_run(page, api, wait)
    began = time.monotonic()
    compare(page, answers)
    answering = time.monotonic() - began
    page.goto("/")
    page.get_by_role("button", name=re.compile("^Train a reward model on")).click()
    page.wait_for_url(re.compile(r"/runs/\d+$"))
    run_id = int(page.url.rsplit("/", 1)[1])
    run = until(lambda: api.get(f"runs/{run_id}").json(), lambda row: row["state"] in OVER)
    if run["state"] != "finished":
        raise SystemExit(f"the run {run['state']}: {run['state_reason']}")
    expect(page.locator(".run-status [data-bind=state]").first).to_have_text("Finished", timeout=LONG_MS)

    def since(moment: str) -> float:
        return (datetime.fromisoformat(moment) - datetime.fromisoformat(run["created_at"])).total_seconds()

    points = api.get(f"runs/{run_id}/metrics", params={"key": "eval/accuracy"}).json()["points"]
    measured = [since(point["time"]) for point in points if point["step"] > 0]
    if not run["outputs"]:
        raise SystemExit("the run left no model")
    return Times(answering, since(run["first_metric_at"]), min(measured, default=None), since(run["ended_at"]))


def first_run(page: Page, api: httpx.Client, wait: bool) -> None:
    """End or await the demo's run: only one runs at once on so small a machine."""
    [run] = api.get("runs").json()["items"]
    page.goto(f"/runs/{run['id']}")
    if not wait:
        page.locator("form[action$='/stop'] button").click()
    until(lambda: api.get(f"runs/{run['id']}").json(), lambda row: row["state"] in OVER)


def compare(page: Page, answers: int) -> None:
    """Compare by keyboard: much better for the answer that the demo's rater preferred. Gold tasks come in between and do not count."""
    better = by_rater()
    page.goto("/projects")
    page.get_by_role("link", name=PROJECT).first.click()
    page.get_by_role("link", name="Annotate").first.click()
    prompt, before = page.locator("#work-prompt"), ""
    for _ in range(answers + 1 + answers // GOLD_EVERY):
        expect(prompt).not_to_have_text(before, timeout=LONG_MS)
        expect(page.locator("#work-widget")).not_to_have_attribute("inert", "", timeout=LONG_MS)
        before = prompt.inner_text()
        first, second = (page.locator(".work-card-body").nth(side).inner_text() for side in (0, 1))
        page.keyboard.press("1" if worth(first, better) > worth(second, better) else "7")
        expect(page.locator(".work-scale :checked")).to_have_count(1, timeout=LONG_MS)
        page.keyboard.press("Control+Enter")
    expect(page.locator("#work-main")).to_have_attribute("data-waiting", "0", timeout=LONG_MS)


def worth(shown: str, better: frozenset[str]) -> bool:
    """Whether the demo's rater preferred this answer, as the page shows it."""
    return plain(shown) in better


def by_rater() -> frozenset[str]:
    """The preferred answers of the demo's pairs."""
    found = set()
    for row in map(json.loads, filter(None, (ROOT / "demo" / "preferences.jsonl").read_text().split("\n"))):
        texts = {response["id"]: response["text"] for response in row["responses"]}
        for said in row["preferences"]:
            if said.get("strength"):
                found.add(plain(texts[said["b"] if said["strength"] > 0 else said["a"]]))
    return frozenset(found)


def plain(text: str) -> str:
    """Only letters and digits: a page changes white space and markup."""
    return "".join(filter(str.isalnum, text))


def until(read: Callable[[], dict[str, Any]], reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The result of `read` once `reached` is true for it. Raises SystemExit after an hour."""
    deadline = time.monotonic() + 3600
    while not reached(found := read()):
        if time.monotonic() > deadline:
            raise SystemExit(f"waited for an hour in vain: {found}")
        time.sleep(0.2)
    return found


def tell(machine: str, found: Times, answers: int) -> None:
    print(f"{machine}\n{answers} pairs compared at the keyboard by a script")
    rows = {
        "comparing them": found.answering,
        "from the click to the first point of a curve": found.first_point,
        "from the click to the first held-out result": found.first_result,
        "from the click to the model in the registry": found.model,
        f"left of ten minutes for each of {answers} comparisons": (PROMISE_S - found.model) / answers,
    }
    for name, seconds in rows.items():
        print(f"{name:54}{'-' if seconds is None else f'{seconds:.1f}':>10} s")
    print(json.dumps({"second_act": {"ours": round(found.model, 1), "peer": None, "unit": "s", "ratio": None}}))


if __name__ == "__main__":
    main()
