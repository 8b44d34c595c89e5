"""An episode far larger than a post: `python -m benchmarks.episodes [--megabytes N]`.

Starts a Postgres, a Redis and the web server. Makes an episode of N (127) megabytes: a policy that calls tools, and long results. Sends it as a
training process does, in posts of at most four megabytes, and opens its page in Chromium. The first paint is counted from the request for the
page, as the browser measures it; a second time says when the turns can be read. Then a turn is opened in the middle, and a word is looked
for that stands in the last turn alone.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import httpx
from playwright.sync_api import Page

from benchmarks.in_chromium import served
from benchmarks.machine import describe
from benchmarks.rollouts import reader_and_run

LENGTH = 60_000  # characters of a result
WORD = "needle"
DRAWN = "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.episodes", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=127)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with served() as (address, browser):
        path, session, turns, characters, stored = _stored(address, options.megabytes)
        context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 900})
        context.add_cookies([{"name": "sessionid", "value": session, "url": address}])
        page = context.new_page()
        page.goto("/experiments")  # scripts and styles are there, as for anybody who comes from the run
        times = [_opened(page, path, turns) for _ in range(options.rounds)]
        nodes = page.evaluate("document.querySelectorAll('*').length")
    print(describe())
    print(f"an episode of {turns:,} turns and {characters / 1e6:,.0f} MB of text, stored in {stored:,.1f} s")
    print(f"{'':44}{'median ms':>10}{'worst ms':>10}")
    medians = {}
    for name in times[0]:
        values = [each[name] for each in times]
        medians[name] = statistics.median(values)
        print(f"{name:44}{medians[name]:10.0f}{max(values):10.0f}")
    print(f"elements on the page after a jump to the middle: {nodes:,}")
    row = {"ours": round(medians["first paint"], 1), "peer": None, "unit": "ms", "ratio": None}
    print(json.dumps({"episode_first_paint": row}))


def _opened(page: Page, path: str, turns: int) -> dict[str, float]:
    page.goto(path)
    page.wait_for_selector(".turn")
    readable = page.evaluate(DRAWN)
    found = {"first paint": page.evaluate(PAINT), "the first turns can be read": readable}

    def opens() -> None:
        page.fill("#episode-jump input", str(turns // 2))
        page.press("#episode-jump input", "Enter")
        page.wait_for_selector(f'[data-turn="{turns // 2 - 1}"]')
        page.click(f'[data-turn="{turns // 2 - 1}"] > .turn-head')
        page.wait_for_selector(".turn-body")

    def finds() -> None:
        page.fill("#episode-search input", WORD)
        page.press("#episode-search input", "Enter")
        page.wait_for_selector("mark")

    found["a turn in the middle is opened"] = _took(opens)
    found["a word of the last turn is found"] = _took(finds)
    return found


def _took(act: Callable[[], None]) -> float:
    started = time.perf_counter()
    act()
    return 1000 * (time.perf_counter() - started)


def _stored(address: str, megabytes: int) -> tuple[str, str, int, int, float]:
    """(address of the page, session of its reader, turns, characters, seconds that storing took)."""
    import django
    from django.apps import apps

    if not apps.ready:
        django.setup()
    from trainer.contracts import RolloutRecord
    from trainer.monitors import large_records
    from webapp.experiments.lifecycle import tokens
    from webapp.experiments.models import Rollout, Run

    reader, run = reader_and_run()
    Run.objects.filter(pk=run.pk).update(state="running", token_digest=tokens.digest(run))
    turns = _turns(megabytes)
    plain = {"example_key": "e0", "group": 0, "index": 0, "prompt": "Find it.", "response": "Done.", "reward": 1.0}
    record = RolloutRecord.model_validate(plain | {"finish_reason": "env", "turns": turns})
    events, lighter = large_records.split(record, 2_000_000)
    sent: list[dict[str, Any]] = [each.model_dump(mode="json") for each in events]
    sent.append({"kind": "rollouts", "rollouts": [lighter.model_dump(mode="json")]})
    where = f"{address}/api/v1/ingest/runs/{run.pk}/events"
    started = time.perf_counter()
    with httpx.Client(
        headers={"Authorization": f"Bearer {tokens.run_token(run)}"}, timeout=60, trust_env=False
    ) as client:
        for seq, data in enumerate(sent, 1):
            event = {"seq": seq, "time": "2026-11-29T12:00:00Z", "step": 1, "data": data}
            reply = client.post(where, json={"attempt": 1, "events": [event]})
            assert reply.status_code == 200, reply.text  # noqa: S101
    took = time.perf_counter() - started
    rollout = Rollout.objects.get(run=run)
    characters = sum(len(turn["text"]) for turn in turns)
    path = f"/runs/{run.pk}/rollouts/{rollout.pk}/episode"
    return path, reader.cookies["sessionid"].value, len(turns), characters, took


def _turns(megabytes: int) -> list[dict[str, Any]]:
    """Calls and their long results, of words that are drawn, so that the database cannot store them in almost no room."""
    draw = random.Random(3)  # noqa: S311
    words = ["".join(draw.choices("abcdefghijklmnop", k=draw.randint(2, 9))) for _ in range(4000)]
    found: list[dict[str, Any]] = []
    for number in range(megabytes * 1_000_000 // LENGTH):
        call = {"tool": "search", "call": f"c{number}"}
        said = " ".join(draw.choices(words, k=LENGTH // 6))[:LENGTH]
        found.append(
            {"author": "policy", "kind": "call", "text": json.dumps({"q": f"query {number}"}), "tokens": 12, **call}
        )
        found.append(
            {"author": "env", "kind": "result", "text": said, "tokens": LENGTH // 4, "seconds": draw.random(), **call}
        )
    found.append({"author": "policy", "text": f"I found the {WORD}.", "tokens": 6, "reward": 1.0})
    return found


if __name__ == "__main__":
    main()
