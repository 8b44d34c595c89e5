"""The pages of docs/, README.md, CONTRIBUTING.md and SECURITY.md have plain sentences, links that lead somewhere, and no line twice.

`PATTERNS` are the constructions that kept coming back while the pages were read aloud. Code, and *names of buttons and fields*, are left out.
`results/` is written by commands and is not read here.
"""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PATTERNS = {
    "whoever, whatever: say who or what": r"\b(?:[Ww]hoever|[Ww]homever|[Ww]hatever)\b",
    "goes on: say continues": r"\b(?:go|goes|went|going) on\b(?! to)",
    "anew, afresh: say again": r"\b(?:anew|afresh)\b",
    "of its own accord: say by itself": r"\bof (?:its|their) own accord\b",
    "comes along: say is included": r"\b(?:comes?|brings?) along\b",
    "`for` for a reason: say `because`": r", for (?:it|they|he|she|no|what|nobody)\b",
    "`What` begins a statement: name the thing": r"(?:^|[.;:] |\| )What [^.?|]*?(?:[.:;]|$| \|)",
    "`Where` begins a condition: say `If`": r"(?:^|[.;] |\| )Where [^.?|]*?,",
    "is no: say `is not a`, or that there is none": r"(?<!there )(?<!here )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|better\b|later\b)[a-z]",
    "levelled off: say `has reached a plateau`": r"\blevel(?:led|s) off\b",
}
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"^ *(`{3,}).*?^ *\1", re.DOTALL | re.MULTILINE)
LONG = 60  # a line with this many characters is not written twice by chance


@cache
def pages() -> tuple[Path, ...]:
    docs = sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent != ROOT / "docs" / "results")
    return *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")), *docs


def prose(text: str) -> str:
    """The text line by line without code blocks, `code`, addresses of links and *names*: each is blank or a full word in its place."""
    text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)
    text = re.sub(r"^(?: {4}|\t).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`\n]*`", "CODE", text)
    return re.sub(r"(?<!\*)\*[^*\n]+\*(?!\*)", "NAME", re.sub(r"\]\([^)\n]*\)", "]", text))


def lines_with(pattern: str, text: str) -> list[int]:
    return [number for number, line in enumerate(prose(text).splitlines(), 1) if re.search(pattern, line)]


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as links call them."""
    heads = (re.sub(r"[`*]|\]\([^)]*\)", "", head) for head in HEADING.findall(FENCE.sub("", page.read_text())))
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def broken(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    there = (page.parent / path) if path else page
    return not there.exists() or bool(anchor and there.suffix == ".md" and anchor not in anchors(there))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_page_has_such_a_sentence(pattern):
    wrong = [
        f"{page.relative_to(ROOT)}:{line}"
        for page in pages()
        for line in lines_with(PATTERNS[pattern], page.read_text())
    ]
    assert not wrong, "\n".join([pattern, *wrong])


@pytest.mark.parametrize(
    ("pattern", "wrong", "right"),
    [
        ("whoever, whatever: say who or what", "Whoever opens it works here.", "A person who opens it works here."),
        ("goes on: say continues", "A killed run goes on.", "Press *Go on*, or call `go on`; it goes on to the end."),
        ("anew, afresh: say again", "They are made anew.", "They are made again."),
        ("of its own accord: say by itself", "It starts of its own accord.", "It starts by itself."),
        ("comes along: say is included", "The model that comes along is small.", "The included model is small."),
        ("`for` for a reason: say `because`", "It waits, for it is full.", "It waits for its turn, for example."),
        ("`What` begins a statement: name the thing", "What is missing is counted.", "What is missing? See below."),
        (
            "`Where` begins a condition: say `If`",
            "Where a step fails, nothing stays.",
            "Where it is stored | the disk.",
        ),
        (
            "is no: say `is not a`, or that there is none",
            "A chart is no picture.",
            "There is no limit; it is no longer.",
        ),
        ("levelled off: say `has reached a plateau`", "The loss has levelled off.", "The loss has reached a plateau."),
    ],
)
def test_a_pattern_finds_its_sentence_and_leaves_its_mending(pattern, wrong, right):
    assert lines_with(PATTERNS[pattern], f"A page.\n{wrong}\n") == [2]
    assert not lines_with(PATTERNS[pattern], f"A page.\n{right}\n")


def test_code_and_names_are_not_read():
    text = "```\ngoes on\n```\n    goes on\nThe button *Go on* and `goes on`.\n"
    assert not lines_with(PATTERNS["goes on: say continues"], text)
    assert prose(text).count("\n") == text.count("\n")


def test_every_link_of_a_page_leads_somewhere():
    wrong = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in (*pages(), ROOT / "CHANGELOG.md")
        for link in LINK.findall(FENCE.sub("", page.read_text()))
        if not re.match(r"[a-z]+:", link) and broken(page, link)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_link_without_its_heading_or_its_page_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A page\n\n## `Two` words, and *more*\n")
    assert not broken(page, "#two-words-and-more") and not broken(page, "page.md#a-page")
    assert broken(page, "#three") and broken(page, "other.md")


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_of_a_page_stands_twice(page):
    lines = [line for line in prose(page.read_text()).splitlines() if len(line) > LONG and not line.startswith("|")]
    assert not {line for line in lines if lines.count(line) > 1}
