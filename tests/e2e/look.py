"""Faults of a page that a designer would see immediately."""

import os
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Locator, Page

# A box that is lower than its letters hides parts of them. No measure of the page shows that.
LOW_LINES = """() => [...document.querySelectorAll("body *")].filter((node) => {
  const style = getComputedStyle(node);
  return ["hidden", "clip"].includes(style.overflowY) && node.clientHeight > 1
    && parseFloat(style.lineHeight) < 1.2 * parseFloat(style.fontSize)
    && [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
}).map((node) => `the tails of letters are cut: ${node.className}: ${node.textContent.trim()}`)"""


def layout_faults(page: Page) -> list[str]:
    """Letters whose lower parts are cut off, and a page that is wider than its window."""
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return page.evaluate(LOW_LINES) + ["the page scrolls sideways"] * wide


def picture(shown: Page | Locator, name: str, **options: Any) -> None:
    """Saves a picture in the folder of TOUCHSTONE_LOOK, so that a person can look at it."""
    if folder := os.environ.get("TOUCHSTONE_LOOK"):
        shown.screenshot(path=Path(folder) / f"{name}.png", **options)


def on_screens(page: Page, name: str) -> None:
    """No faults in both themes and on a phone. Pictures of all are in the folder of TOUCHSTONE_LOOK, so that a person can look at them."""
    screens: list[tuple[Literal["light", "dark"], int]] = [("light", 1280), ("dark", 1280), ("light", 390)]
    for scheme, width in screens:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        assert layout_faults(page) == []
        picture(page, f"{name}-{scheme}-{width}", full_page=True)
    page.set_viewport_size({"width": 1280, "height": 900})


def check_look(page: Page) -> None:
    """Asserts that the page has no such fault in either theme, in a wide and in a narrow window. Leaves the wide window."""
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            assert layout_faults(page) == []
    page.set_viewport_size({"width": 1280, "height": 800})


def unfold(page: Page, field: str) -> Locator:
    """The input with this id, in an open section. If the section is folded, a click on its line opens it."""
    found = page.locator(f"#{field}")
    folded = page.locator("details:not([open])", has=found)
    while folded.count():
        folded.first.locator("> summary").click()
    return found
