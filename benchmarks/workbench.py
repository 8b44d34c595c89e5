"""Measures the time that an annotator waits for the next task: `python -m benchmarks.workbench [--tasks N]`.

Starts a Postgres, a Redis and the web server, creates a project of N (60) pairs of long answers with code and formulas, and
judges them in Chromium by keyboard: a digit, then Ctrl+Enter. Measured in the browser, from the time stamp of the key
press to the frame in which the next task can be worked on: on this machine, and with 150 ms added to every request, as
to a server on another continent. Also from the request for the page to the first task.
"""

import argparse
import json
import statistics

from playwright.sync_api import Browser, Page, expect

from benchmarks.in_chromium import served
from benchmarks.machine import describe

FAR_MS = 150
PARAGRAPH = "A list holds what was said in its order, and so a reader who comes late can still follow. " * 6
ANSWER = "\n\n".join(
    [PARAGRAPH, "```python\n" + "total = sum(values)\n" * 30 + "```", r"\[ e^{i\pi} + 1 = 0 \]", PARAGRAPH]
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workbench", description=__doc__)
    parser.add_argument("--tasks", type=int, default=60)
    options = parser.parse_args()
    with served() as (address, browser):
        near, opened = judge(browser, address, options.tasks, 0)
        far, opened_far = judge(browser, address, options.tasks, FAR_MS)
    print(describe())
    print(f"{'from the key press to the next task':44}{'median ms':>10}{'p95 ms':>10}{'page open ms':>14}")
    for name, took, open_ms in (("on this machine", near, opened), (f"{FAR_MS} ms away", far, opened_far)):
        print(f"{name:44}{statistics.median(took):10.0f}{p95(took):10.0f}{open_ms:14.0f}")
    rows = {"workbench_next_p95": p95(near), "workbench_next_p95_far": p95(far), "workbench_open": opened}
    print(json.dumps({n: {"ours": round(v, 1), "peer": None, "unit": "ms", "ratio": None} for n, v in rows.items()}))


def p95(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(0.95 * len(values)))]


def judge(browser: Browser, address: str, tasks: int, delay_ms: int) -> tuple[list[float], float]:
    """(milliseconds of each task but the last two, milliseconds until the first); a project of its own."""
    project, session = prepare(f"{delay_ms} ms away", tasks)
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 800})
    context.add_cookies([{"name": "sessionid", "value": session, "url": address}])
    page = context.new_page()
    if delay_ms:
        network = {"offline": False, "latency": delay_ms, "downloadThroughput": -1, "uploadThroughput": -1}
        context.new_cdp_session(page).send("Network.emulateNetworkConditions", network)
    page.goto(f"/projects/{project}/work")
    for number in range(tasks - 2):  # while a next task is in hand
        expect(page.locator("#work-prompt")).to_contain_text(f"Question {number}:")
        page.keyboard.press("2")
        page.wait_for_timeout(delay_ms * 3 + 50)  # somebody who reads at least that long
        page.keyboard.press("Control+Enter")
    expect(page.locator("#work-prompt")).to_contain_text(f"Question {tasks - 2}:")
    page.wait_for_timeout(200)
    took, opened = durations(page, "work:next"), durations(page, "work:open")
    context.close()
    return took, opened[0]


def durations(page: Page, name: str) -> list[float]:
    found: list[float] = page.evaluate(f"performance.getEntriesByName('{name}').map((entry) => entry.duration)")
    return found


def prepare(name: str, tasks: int) -> tuple[int, str]:
    """(id of an open project, session of its annotator)."""
    import django
    from django.apps import apps

    if not apps.ready:
        django.setup()
    from tests.e2e.workbench import make_project
    from tests.team import browser, make_team
    from webapp.accounts.models import Membership

    if not Membership.objects.exists():
        make_team()
    owner, annotator = (Membership.objects.get(user__email=f"{who}@example.org") for who in ("ada", "anna"))
    responses = [{"id": side, "text": f"{side}\n\n{ANSWER}"} for side in ("good", "bad")]
    project = make_project(owner, annotator, name=name, tasks=tasks, record=lambda number: {"responses": responses})
    return project.pk, browser(annotator).cookies["sessionid"].value


if __name__ == "__main__":
    main()
