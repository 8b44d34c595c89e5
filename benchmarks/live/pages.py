"""The page of a run in Chromium: how soon a step is painted, how soon a long run can be looked at, and how much memory a page holds after
hours.
"""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import aiohttp
from playwright.sync_api import Page, sync_playwright

from benchmarks.live.ours import Ours
from benchmarks.live.sizes import Sizes
from tests.chromium import FLAGS, LIKE_PEOPLES

SHOWN = "reward/mean"
BETWEEN_S = 0.5  # seconds between steps that viewers see
METRICS = 20  # of a step
STEP_S = 2.0  # of the run whose page is open for hours
PATIENCE_MS = 180_000  # a machine that does other things, too, may take a while
AT_ONCE = 100  # steps that are told together there: hours must pass in a minute
WATCH = """
window.painted = [];
const now = document.querySelector("#chart-reward-mean .chart-now");
let waits = false;
new MutationObserver(() => {
  if (waits) return;
  waits = true;
  requestAnimationFrame(() => setTimeout(() => {  // behind the frame
    waits = false;
    window.painted.push([parseFloat(now.textContent), performance.timeOrigin + performance.now()]);
  }));
}).observe(now, { childList: true, characterData: true, subtree: true });
"""
# a page of this many metrics draws a chart when it comes into view
DRAWN = """() => {
  const chart = document.querySelector("[id^='chart-'][id$='group0-metric0']");
  chart?.scrollIntoView();
  return Boolean(chart?.querySelector("canvas"));
}"""


@contextmanager
def opened(ours: Ours) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=LIKE_PEOPLES, args=FLAGS)
        context = browser.new_context(base_url=ours.address, viewport={"width": 1280, "height": 900})
        context.add_cookies([{"name": "sessionid", "value": ours.session, "url": ours.address}])
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        yield page
        browser.close()


def painted(ours: Ours, sizes: Sizes) -> tuple[list[float], list[float]]:
    """Milliseconds from before a step is sent to its frame on a page, and to each of the viewers, who share the machine."""
    sender = ours.run()
    sender.send(range(1, 3), METRICS, SHOWN)
    sent: dict[int, float] = {}
    with opened(ours) as page, watching(ours, sender.pk, sizes.viewers) as viewers:
        page.goto(f"/runs/{sender.pk}")
        page.locator("#chart-reward-mean canvas").wait_for()
        page.wait_for_selector('#connection[data-state="live"]')
        page.evaluate(WATCH)
        for step in range(3, 3 + sizes.steps):
            sent[step] = time.time()
            sender.send(range(step, step + 1), METRICS, SHOWN)
            page.wait_for_timeout(1000 * max(0.0, sent[step] + BETWEEN_S - time.time()))
        page.wait_for_timeout(3000)
        frames = shown(sent, [(step, at / 1000) for step, at in page.evaluate("window.painted")])
    missing = sent.keys() - frames.keys()
    assert not missing, f"steps that were never painted: {sorted(missing)}"  # noqa: S101
    return (
        [1000 * (frames[step] - at) for step, at in sent.items()],
        [1000 * (at - sent[step]) for step, at in viewers if step in sent],
    )


def shown(steps: Iterable[int], frames: Iterable[tuple[float, float]]) -> dict[int, float]:
    """Step -> the first of the frames (step, when) that showed it or a later one: a busy page paints several steps at once."""
    seen = list(frames)
    return {step: min(ats) for step in steps if (ats := [at for painted, at in seen if painted >= step])}


@contextmanager
def watching(ours: Ours, run: int, count: int) -> Iterator[list[tuple[int, float]]]:
    """(step, when) of every step that a viewer receives; all viewers run in their own process. The list is complete after the block."""
    asked = {"address": ours.address, "session": ours.session, "run": run, "viewers": count}
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.live.pages", json.dumps(asked)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stdout.readline() == b"all hear\n"  # noqa: S101
    heard: list[tuple[int, float]] = []
    yield heard
    out, _ = process.communicate(b"over\n", timeout=60)
    heard += [(step, at) for step, at in json.loads(out)]


async def _viewers(address: str, session: str, run: int, viewers: int) -> None:
    heard: list[tuple[int, float]] = []
    headers = {"Cookie": f"sessionid={session}", "Origin": address}

    async def listen(socket: aiohttp.ClientWebSocketResponse) -> None:
        async for message in socket:
            at = time.time()
            told = json.loads(message.data)
            heard.extend((each["step"], at) for each in told.get("items", [told]) if each.get("type") == "metrics")

    async with aiohttp.ClientSession(address, headers=headers, cookie_jar=aiohttp.DummyCookieJar()) as client:
        sockets = [
            await client.ws_connect(f"/ws/runs/{run}", timeout=aiohttp.ClientWSTimeout(60)) for _ in range(viewers)
        ]
        tasks = [asyncio.create_task(listen(socket)) for socket in sockets]
        print("all hear", flush=True)
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        threading.Thread(
            target=lambda: (sys.stdin.readline(), loop.call_soon_threadsafe(over.set)), daemon=True
        ).start()
        await over.wait()
        for task in tasks:
            task.cancel()
    print(json.dumps(heard))


def long_run(ours: Ours, sizes: Sizes) -> list[float]:
    """Seconds from the click to the charts of the first screen, for a run of many long series; each time in a new page."""
    sender = ours.run()
    sender.send(range(1), 1)
    ours.fill_levels(sender.pk, sizes)
    took = []
    for _ in range(sizes.rounds):
        with opened(ours) as page:
            page.goto("/healthz")  # a browser that is open already
            started = time.perf_counter()
            page.goto(f"/runs/{sender.pk}", wait_until="commit")
            page.wait_for_function(DRAWN)
            took.append(time.perf_counter() - started)
    return took


def held(ours: Ours, sizes: Sizes) -> list[tuple[float, float]]:
    """(hours of the run, MB of the page's heap) at a tenth of the time, halfway, and its end."""
    sender = ours.run()
    sender.send(range(1, 3), METRICS, SHOWN)
    steps, found = int(sizes.hours * 3600 / STEP_S), []
    with opened(ours) as page:
        page.goto(f"/runs/{sender.pk}")
        page.locator("#chart-reward-mean canvas").wait_for()
        console = page.context.new_cdp_session(page)
        marks = [steps // 10, steps // 2, steps]
        for first in range(3, steps + 3, AT_ONCE):
            last = min(first + AT_ONCE, steps + 3)
            sender.send(range(first, last), METRICS, SHOWN)
            page.wait_for_timeout(50)
            if marks and last >= marks[0]:
                marks.pop(0)
                page.wait_for_timeout(2000)
                console.send("HeapProfiler.collectGarbage")
                heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
                found.append((last * STEP_S / 3600, heap))
    return found


if __name__ == "__main__":
    asyncio.run(_viewers(**json.loads(sys.argv[1])))
