"""Cutting text into words, sentences, paragraphs, lines and list items: the conventions every verifier shares.

Words: runs of letters and digits; apostrophes, hyphens, decimal points and dots inside abbreviations join
(`don't`, `well-known`, `3.5`, `e.g.` are one word each). Chinese and Japanese are written without spaces, so each of
their characters counts as one word, as word processors do. Thai, Lao, Khmer and Burmese are not segmented: a run
between spaces is one word.

All patterns are free of nested repetition, and those that could restart inside a run are anchored by a look-behind,
so that the time stays linear in the length of the text.
"""

from itertools import pairwise

import regex

_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}ー"
_WORD = regex.compile(
    rf"[{_CJK}]"
    r"|(?<![\p{L}\p{N}.])\p{L}(?:\.\p{L})++(?![\p{L}\p{N}])"
    r"|\p{N}++(?:[.,:]\p{N}++)*+(?![\p{L}\p{N}'’-])"
    rf"|[[\p{{L}}\p{{M}}\p{{N}}_]--[{_CJK}]]++(?:['’\-‐‑][[\p{{L}}\p{{M}}\p{{N}}_]--[{_CJK}]]++)*+",
    regex.V1,
)
_BULLET = regex.compile(r"^[^\S\n]*(?:[-*+][^\S\n]+|[•‣◦][^\S\n]*)(?=\S)")
_RULE = regex.compile(r"^[\s*_-]*+$")
_STEP = regex.compile(
    r"^[^\S\n]*[*_]{0,3}(?:step[^\S\n]+(\d{1,4})[*_]{0,3}[.:)]|\(?(\d{1,4})[.)])[*_]{0,3}(?=\s)[^\S\n]*(?=\S)",
    regex.IGNORECASE,
)
_HEADING = regex.compile(r"^[^\S\n]{0,3}#{1,6}[^\S\n]")
_END = regex.compile(r"(?<![.!?…])([.!?…]++)([\"'”’»)\]*_]*+)(?=\s|$)|[。！？]++[”’』」）]*+")

_ALWAYS_SHORT = frozenset(
    [
        "mr",
        "mrs",
        "ms",
        "dr",
        "prof",
        "st",
        "vs",
        "e.g",
        "i.e",
        "cf",
        "gen",
        "col",
        "capt",
        "rev",
        "sen",
        "gov",
        "messrs",
        "mme",
    ]
)
_SHORT_BEFORE_DIGIT = frozenset(["no", "nos", "fig", "figs", "vol", "p", "pp", "ch", "eq", "sec"])
_SHORT_BEFORE_LOWER = frozenset(
    ["etc", "a.m", "p.m", "inc", "ltd", "co", "corp", "jr", "sr", "u.s", "u.k", "approx", "dept", "est", "ca", "al"]
)


def words(text: str) -> list[str]:
    """Words in order, as written."""
    return [found[0] for found in _WORD.finditer(text)]


def lines(text: str) -> list[str]:
    """Lines that hold more than white space."""
    return [line for line in text.splitlines() if line.strip()]


def paragraphs(text: str) -> list[str]:
    """Blocks of lines separated by blank lines."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip():
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return ["\n".join(block) for block in blocks if block]


def is_bullet(line: str) -> bool:
    """Whether a line is a markdown list item (`-`, `*`, `+`, `•`), at any depth; a horizontal rule such as `- - -` is not."""
    return bool(_BULLET.match(line)) and not _RULE.match(line)


def step_number(line: str) -> int | None:
    """The number of a numbered step: `1.`, `1)`, `(1)`, `**1.**`, `Step 1:`; None for any other line."""
    found = _STEP.match(line)
    return int(found[1] or found[2]) if found else None


def sentences(text: str) -> list[str]:
    """Sentences that hold at least one word.

    A sentence ends at `.`, `!`, `?`, `…` before white space (`。！？` anywhere), at a blank line, and at the end of a
    heading or list item. It does not end after a title (`Dr.`), an initial (`J. Smith`), `e.g.`, a decimal point, or
    after `etc.` or a closing quotation when a small letter follows. Not told apart: `Plan B. Then`.
    """
    return [sentence for block in _prose_blocks(text) for sentence in _split(block)]


def _prose_blocks(text: str) -> list[str]:
    """Text between blank lines, list items and headings, without list markers, wrapped lines joined."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        marker = _STEP.match(line) or (_BULLET.match(line) if is_bullet(line) else None)
        heading = _HEADING.match(line)
        if marker or heading or not line.strip():
            blocks.append([])
        blocks[-1].append(line[marker.end() :] if marker else line)
        if heading:
            blocks.append([])
    return [" ".join(block) for block in blocks]


def _split(block: str) -> list[str]:
    ends = [found.end() for found in _END.finditer(block) if _ends_sentence(block, found)]
    pieces = [block[start:end].strip() for start, end in pairwise([0, *ends, len(block)])]
    return [piece for piece in pieces if _WORD.search(piece)]


def _ends_sentence(block: str, found: "regex.Match[str]") -> bool:
    marks, closers = found[1], found[2]
    if marks is None:
        return True
    # A look at 80 characters is enough for any abbreviation and keeps the whole pass linear.
    following = block[found.end() : found.end() + 80].lstrip()
    before_small = following[:1].islower()
    if marks != ".":
        return not (before_small and (closers or "." in marks or "…" in marks))
    head = block[max(0, found.start() - 80) : found.start()].split()
    last = head[-1].lstrip("(\"'“‘[*_") if head else ""
    name = last.lower()
    if name in _ALWAYS_SHORT:
        return not following
    if name in _SHORT_BEFORE_DIGIT:
        return not following[:1].isdigit()
    if name in _SHORT_BEFORE_LOWER or closers:
        return not before_small
    return not (len(last) == 1 and last.isupper() and last != "I" and following[:1].isupper())
