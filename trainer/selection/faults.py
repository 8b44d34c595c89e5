"""Faults of responses that are rare and should not happen at all (GLM-4.5, 2025): mixed scripts, repetition, broken format."""

import json
from collections import Counter
from collections.abc import Callable, Mapping

import regex

_FENCE = "```"
_LINE = 12
"""The least number of characters of a line whose repetition counts."""
_TIMES, _PIECE = 4, 16
_WORD = regex.compile(r"\p{Han}|[\p{L}\p{N}]+")
_SCRIPTS = {
    "Han": regex.compile(r"\p{Han}"),
    "Hangul": regex.compile(r"\p{Hangul}"),
    "Kana": regex.compile(r"[\p{Hiragana}\p{Katakana}]"),
    "Latin": regex.compile(r"\p{Latin}"),
    "Cyrillic": regex.compile(r"\p{Cyrillic}"),
    "Arabic": regex.compile(r"\p{Arabic}"),
    "Devanagari": regex.compile(r"\p{Devanagari}"),
    "Thai": regex.compile(r"\p{Thai}"),
    "Hebrew": regex.compile(r"\p{Hebrew}"),
    "Greek": regex.compile(r"\p{Greek}{3,}"),  # single letters occur in mathematics
}
_HABITUAL = {"Latin"}
"""Scripts that occur in texts of any language, in names, code and units."""


def mixes_scripts(prompt: str, response: str) -> bool:
    """Whether the response changes to a script that neither the prompt nor most of the response uses."""
    counts = {name: len(pattern.findall(response)) for name, pattern in _SCRIPTS.items()}
    main = max(counts, key=lambda name: counts[name])
    families = {"Han", "Kana"} if main in ("Han", "Kana") else {main}
    strange = [
        name
        for name, count in counts.items()
        if count and name not in families | _HABITUAL and not _SCRIPTS[name].search(prompt)
    ]
    return bool(strange)


def repeats(prompt: str, response: str) -> bool:
    """Whether a line of some length occurs four times, or sixteen words repeat a piece directly, as in a model's loop."""
    lines = Counter(line.strip() for line in response.split("\n") if len(line.strip()) >= _LINE)
    if lines and max(lines.values()) >= _TIMES and max(lines, key=lambda line: lines[line]) not in prompt:
        return True
    words = _WORD.findall(response.lower())
    return any(_comes_again(words, width) for width in (1, 2, 3, 4, 8, _PIECE))


def _comes_again(words: list[str], width: int) -> bool:
    """Whether a piece of this many words repeats directly, at least four times and over at least sixteen words."""
    wanted = max(_TIMES, _PIECE // width) * width - width
    run = 0
    for place in range(width, len(words)):
        run = run + 1 if words[place] == words[place - width] else 0
        if run >= wanted:
            return True
    return False


def breaks_format(prompt: str, response: str) -> bool:
    """Whether a code fence is never closed, a response that begins as JSON is not JSON, or a tag of reasoning has no partner."""
    text = response.strip()
    if text.count(_FENCE) % 2:
        return True
    if any(text.count(f"<{tag}>") != text.count(f"</{tag}>") for tag in ("think", "answer", "tool_call")):
        return True
    if text[:1] in "{[" and text[-1:] in "}]" and len(text) > 1:
        try:
            json.loads(text)
        except ValueError:
            return text[0] == "{"  # a bracket may begin a sentence
    return False


FAULTS: Mapping[str, Callable[[str, str], bool]] = {
    "mixed scripts": mixes_scripts,
    "repetition": repeats,
    "broken format": breaks_format,
}
"""Functions by the name of the fault: whether a response (prompt, response) has it."""
