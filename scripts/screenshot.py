"""Takes the README's picture from the running product: `make screenshot`, while `make run` runs in another terminal.

It signs in as the demo's owner, opens the demo run, and writes docs/images/run.png when its charts and fonts are drawn.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Error, Page, sync_playwright

from tests.chromium import FLAGS, HOW_TO_GET_IT, LIKE_PEOPLES

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "run.png"
OWNER = "demo@localhost"
SIZE = {"width": 1440, "height": 900}
# one frame lays out the last change, the next one draws it
SETTLED = """async () => {
    await document.fonts.ready;
    for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame);
}"""


def main() -> None:
    if LIKE_PEOPLES is None:
        sys.exit(f"screenshot: {HOW_TO_GET_IT}")
    link = sign_in_link()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=LIKE_PEOPLES, args=FLAGS)
        page = browser.new_page(
            viewport={"width": SIZE["width"], "height": SIZE["height"]}, color_scheme="light", reduced_motion="reduce"
        )
        try:
            take(page, link)
        except Error as error:  # a refused connection, or a wait that ran out
            sys.exit(f"screenshot: {error.message.splitlines()[0]}\nIs the product running? Start it with `make run`.")
        finally:
            browser.close()
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size / 1024:.0f} kB")


def sign_in_link() -> str:
    command = [sys.executable, "manage.py", "signin", OWNER]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if made.returncode:
        why = made.stderr.strip().splitlines() or ["manage.py signin failed"]
        # a message of ours may have several lines; the last line of a traceback is enough
        told = why[-1:] if why[0].startswith("Traceback") else why
        sys.exit("\n".join([f"screenshot: {told[0]}", *told[1:]]))
    return made.stdout.strip()


def take(page: Page, link: str) -> None:
    address = urlsplit(link)
    page.goto(link)
    page.wait_for_url(f"{address.scheme}://{address.netloc}/")
    run = demo_run(page, f"{address.scheme}://{address.netloc}")
    page.goto(f"{address.scheme}://{address.netloc}/runs/{run['id']}")
    page.locator("#connection[data-state=live]").wait_for(state="attached")
    page.locator("#charts:not([aria-busy])").wait_for()
    page.locator("#chart-reward-mean canvas").wait_for()
    page.evaluate(SETTLED)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURE)


def demo_run(page: Page, origin: str) -> dict[str, Any]:
    """The newest run with the demo's name that has something to show."""
    name = json.loads((ROOT / "demo" / "run.json").read_text())["name"]
    answer = page.request.get(f"{origin}/api/v1/runs?limit=100")
    named = [run for run in answer.json().get("items", []) if run["name"] == name]
    if not named:
        sys.exit(f"screenshot: there is no run named {name!r} yet; `make run` launches it")
    shown = [run for run in named if run["first_metric_at"]]
    if not shown:
        sys.exit(f"screenshot: run {named[0]['id']} ({named[0]['state']}) has no points yet; try again in a minute")
    found: dict[str, Any] = shown[0]
    return found


if __name__ == "__main__":
    main()
