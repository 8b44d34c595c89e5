"""Templates can be read and compared line by line."""

from pathlib import Path

TEMPLATES = Path(__file__).parents[2] / "templates"
LONGEST = 160
STILL_LONG = 27
"""Lines that nobody has broken yet. The number may only fall."""


def long_lines() -> list[str]:
    """Lines over the limit, but those that are one tag of Django's: such a tag may not be broken."""
    found = []
    for path in sorted(TEMPLATES.rglob("*.html")):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            text = line.strip()
            one_tag = text.startswith(("{%", "{#")) and text.endswith(("%}", "#}")) and text.count("{%") <= 1
            if len(line) > LONGEST and not one_tag:
                found.append(f"{path.relative_to(TEMPLATES)}:{number}: {len(line)} characters")
    return found


def test_no_line_is_longer_than_a_screen_is_wide() -> None:
    found = long_lines()
    assert len(found) <= STILL_LONG, "\n".join(found)
