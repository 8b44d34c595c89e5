"""Takes the pictures of docs/tour.md: `make tour`.

It starts the product in a folder of its own, with the demo's data and model, and makes what the tour shows: a sweep of two learning rates with two
seeds each, a report on it, and answers of a person, from which a reward model learns. Then it photographs each page.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
from playwright.sync_api import Page, sync_playwright

from scripts.screenshot import SETTLED
from tests.chromium import FLAGS, HOW_TO_GET_IT, LIKE_PEOPLES
from tests.stack import ROOT, Stack

PICTURES = ROOT / "docs" / "images" / "tour"
SETTLE_MS = 1000  # charts are drawn after their values have come
SIZE = {"width": 1280, "height": 800}
AS_PEOPLE_DO = {"OMP_NUM_THREADS": None, "MAX_RUNNING_RUNS": None}
MODEL = "smollm2-135m-instruct"
METRIC = "eval/rubric_score"
PROJECT = "Which answer is better?"
OVER = ("finished", "stopped", "failed")
UNDER_WAY = ("running", "stopping")
SWEEP: dict[str, Any] = {
    "name": "Which learning rate?",
    "experiment": "Tour",
    "recipe": "policy",
    "dataset": "Demo prompts",
    "method": "grid",
    "axes": [{"path": "optim.lr", "values": [2e-4, 1e-3]}],
    "seeds": 2,
    "at_once": 4,
    "config": {
        "model": {"name": MODEL},
        "steps": 8,
        "rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 32, "temperature": 0.8},
        "optim": {"schedule": "linear", "minibatch_size": 8, "micro_batch_tokens": 512},
        "evaluation": {"every": 2, "max_examples": 8, "temperature": 0.8},
        "checkpoint": {"every": 4},
    },
}
JUDGE = {
    "recipe": "reward_model",
    "name": "From comparisons",
    "experiment": "Tour",
    "model": MODEL,
    "config": {"steps": 12},
}
REPORT = f"""Do eight steps tell two learning rates apart? Each line is the mean of two seeds, its band reaches from the lower to the higher one.

```chart
metric: {METRIC}, reward/mean
query: sweep:{{sweep}}
band: range
title: Held out, and in training
```

```runs
query: sweep:{{sweep}}
columns: state, {METRIC}, config.optim.lr
title: Last values
```
"""


@dataclass(frozen=True)
class TourPages:
    """The subjects of the tour's pages, by number."""

    sweep: int
    runs: list[int]
    best: int
    report: int
    answers: int
    """The version of a dataset that people's answers made."""


def main() -> None:
    if LIKE_PEOPLES is None:
        sys.exit(f"tour: {HOW_TO_GET_IT}")
    stack = Stack("--no-demo", env=AS_PEOPLE_DO)
    try:
        stack.wait_until_up()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=LIKE_PEOPLES, args=FLAGS)
            context = browser.new_context(
                base_url=stack.url,
                viewport={"width": SIZE["width"], "height": SIZE["height"]},
                color_scheme="light",
                reduced_motion="reduce",
            )
            page = context.new_page()
            page.set_default_timeout(120_000)
            begin(stack)
            page.goto(stack.manage("demo", "--link"))
            with stack.api() as api:
                sweep = made(api.post("sweeps", json=SWEEP))["id"]
                waiting(page, api)
                photograph(page, finish(api, sweep))
            browser.close()
    finally:
        stack.stop()
    for picture in sorted(PICTURES.glob("*.png")):
        print(f"{picture.relative_to(ROOT)}: {picture.stat().st_size / 1024:.0f} kB")


def begin(stack: Stack) -> None:
    """The demo's data, projects and model, without its run."""
    stack.manage("demo", "--data")
    folder = stack.var / "models" / MODEL
    subprocess.run([sys.executable, "-m", "trainer", "models", "prepare", "--dir", str(folder)], cwd=ROOT, check=True)
    with stack.api() as api:
        made(api.post("models", json={"name": MODEL, "source": "local", "path": str(folder)}))


def made(answer: httpx.Response) -> dict[str, Any]:
    if answer.is_error:
        raise SystemExit(f"tour: {answer.request.method} {answer.request.url.path}: {answer.text}")
    found: dict[str, Any] = answer.json()
    return found


def waiting(page: Page, api: httpx.Client) -> None:
    """The line, while the first run has the machine."""
    until(api, "runs", lambda runs: any(run["progress"]["step"] >= 2 for run in runs["items"]))
    take(page, "line", "/experiments/line", "main tbody tr")


def finish(api: httpx.Client, sweep: int) -> TourPages:
    """Answers the demo's comparisons, trains on them, waits for all runs, and writes the report."""
    version = answer(api)
    dataset = {"id": version["dataset"], "version": version["version"]}
    asked = {**JUDGE, "dataset": dataset}
    judge = made(api.post("runs", json=asked))["id"]
    until(api, f"sweeps/{sweep}", lambda found: found["state"] not in UNDER_WAY)
    until(api, f"runs/{judge}", lambda run: run["state"] in OVER)
    trial = made(api.get(f"sweeps/{sweep}"))["best"]
    if trial is None:
        raise SystemExit("tour: no trial of the sweep has a value; see its page")
    report = made(api.post("reports", json={"title": "Which learning rate?", "body": REPORT.format(sweep=sweep)}))
    runs = made(api.get("runs/table", params={"q": f"sweep:{sweep}"}))["items"]
    return TourPages(
        sweep, [row["run"]["id"] for row in runs], trial["runs"][0]["run"], report["id"], version["version_id"]
    )


def answer(api: httpx.Client) -> dict[str, Any]:
    """Answers ten tasks as a person who likes short answers, gold tasks among them. Returns what was published."""
    project = next(row for row in made(api.get("projects"))["items"] if row["name"] == PROJECT)["id"]
    queue = made(api.post(f"projects/{project}/claim", json={"hold": 1}))
    for _ in range(10):
        task = queue["items"][0]
        first, second = (response["text"] for response in task["view"]["responses"])
        content = {"verdict": "compared", "strength": 2 if len(first) < len(second) else -2}
        sent = {"content": content, "revision": 0, "seconds": 20, "hold": 1}
        queue = made(api.post(f"assignments/{task['id']}/submit", json=sent))["queue"]
    return made(api.post(f"projects/{project}/publish", json={"what": "answers"}))


def until(api: httpx.Client, path: str, reached: Callable[[dict[str, Any]], bool], timeout_s: float = 7200) -> None:
    deadline = time.monotonic() + timeout_s
    while not reached(made(api.get(path))):
        if time.monotonic() > deadline:
            raise SystemExit(f"tour: waited for two hours for {path}")
        time.sleep(1)


def photograph(page: Page, shown: TourPages) -> None:
    """Each picture of the tour for which no run need be under way."""
    address, drawn = f"/runs/{shown.best}", "#charts:not([aria-busy]) canvas"
    take(page, "home", "/", "main h1")
    take(page, "form", f"{address}/fork", "#run-form")
    take(page, "sweep", f"/experiments/sweeps/{shown.sweep}", "main svg")
    take(page, "table", f"/experiments?q=sweep:{shown.sweep}", "tbody tr")
    take(page, "run", address, drawn)
    step_in_time(page)
    take(page, "rollouts", f"{address}/rollouts", ".response")
    numbers = ",".join(map(str, shown.runs))
    take(page, "compare", f"/runs/compare?ids={numbers}", "#compare-charts canvas")
    take(page, "report", f"/reports/{shown.report}", ".chart canvas")
    take(page, "lineage", f"/lineage/version/{shown.answers}/graph", "main svg")
    take(page, "costs", "/costs", "main h1")


def step_in_time(page: Page) -> None:
    """The newest step as a flame, below the strip of all steps."""
    health = page.get_by_role("region", name="Time and machine")
    health.get_by_role("slider", name="Step whose time is shown").focus()
    page.keyboard.press("Enter")
    health.locator(".flame-span").first.wait_for()
    health.evaluate("(node) => { node.style.scrollMarginTop = '1rem'; node.scrollIntoView(); }")
    save(page, "step")


def take(page: Page, name: str, address: str, drawn: str) -> None:
    """The picture `name` of the page at this address, once an element that `drawn` selects is there."""
    page.goto(address)
    page.locator(drawn).first.wait_for()
    save(page, name)


def save(page: Page, name: str) -> None:
    page.evaluate(SETTLED)
    page.wait_for_timeout(SETTLE_MS)
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
