"""The sizes of functions, files and lines; templates hold nothing that the content security policy blocks."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import sources

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path
    for folder in ("webapp", "workers", "trainer")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "migrations" not in path.parts and "static" not in path.parts
]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "webapp" / "static" / "js").rglob("*.js"))
LONGEST_FUNCTION, LONGEST_LOOP, LONGEST_FILE = 40, 150, 500
LONGEST_LINE = 160  # of a template


def test_functions_and_files_stay_short():
    long = []
    for path in SOURCES:
        text = path.read_text()
        where = path.relative_to(ROOT)
        limit = LONGEST_LOOP if where.parts[:2] == ("trainer", "loops") else LONGEST_FUNCTION
        if text.count("\n") > LONGEST_FILE:
            long.append(f"{where}: {text.count(chr(10))} lines")
        for line, name, lines in sources.read(path).functions:
            if lines > limit:  # without the docstring, which does not count
                long.append(f"{where}:{line} {name}: {lines} lines")
    assert long == []


INLINE = {
    "inline style": re.compile(r"<style\b|\sstyle\s*="),
    "inline script": re.compile(r"<script(?![^>]*\ssrc=)(?![^>]*application/json)"),
    "event attribute": re.compile(r"<[^>]+\son[a-z]+\s*="),
    "javascript: address": re.compile(r"javascript:", re.IGNORECASE),
    "other host": re.compile(r"""(?:src|href)\s*=\s*["'](?:https?:)?//(?!lucide)"""),
}


@pytest.mark.parametrize("rule", INLINE)
def test_templates_hold_nothing_that_the_csp_blocks(rule):
    texts = [(path, path.read_text()) for path in TEMPLATES]  # whole texts, because a tag has several lines
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
        for path, text in texts
        for match in INLINE[rule].finditer(text)
    ]
    assert found == []


def test_links_in_running_text_are_underlined_by_what_holds_them():
    """`.in-text a` underlines; the class on the link itself does nothing."""
    marked = re.compile(r"""<a\b[^>]*class=["'][^"']*\bin-text\b""")
    found = [str(path.relative_to(ROOT)) for path in TEMPLATES if marked.search(path.read_text())]
    assert found == []


def test_lines_of_templates_stay_short():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} characters"
        for path in TEMPLATES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > LONGEST_LINE
    ]
    assert found == []


def test_templates_have_the_one_format():
    """`make format` brings them into it: quotes and spaces of tags, names of blocks at their ends, blank lines between blocks."""
    djade = [str(Path(sys.executable).with_name("djade")), "--target-version", "5.2", "--check"]
    done = subprocess.run([*djade, *TEMPLATES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_scripts_evaluate_no_text():
    found = [str(p.relative_to(ROOT)) for p in SCRIPTS if re.search(r"\beval\(|new Function\(", p.read_text())]
    assert found == []


def test_one_module_opens_dialogs():
    """An answer of the server closes only the opening that asked for it, and `show` tells openings apart."""
    opening = [path.name for path in SCRIPTS if ".showModal(" in path.read_text()]
    assert opening == ["dialogs.js"]
