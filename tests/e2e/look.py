"""What a designer would see at once, asked of a page."""

from playwright.sync_api import Page

# What is hidden beyond a box that is lower than the letters is ink, of which no measure of the page tells.
LOW_LINES = """() => [...document.querySelectorAll("body *")].filter((node) => {
  const style = getComputedStyle(node);
  return ["hidden", "clip"].includes(style.overflowY) && node.clientHeight > 1
    && parseFloat(style.lineHeight) < 1.2 * parseFloat(style.fontSize)
    && [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
}).map((node) => `the tails of letters are cut: ${node.className}: ${node.textContent.trim()}`)"""


def faults(page: Page) -> list[str]:
    """Letters without their tails, and a page wider than its window."""
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return page.evaluate(LOW_LINES) + ["the page scrolls sideways"] * wide
