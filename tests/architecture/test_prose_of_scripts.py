"""The texts and comments of the pages' JavaScript have plain sentences too: the patterns of docstrings, texts and pages, with no exception."""

import re
from functools import cache

import pytest

from tests.architecture import test_pages, test_prose
from tests.architecture.test_shape import ROOT, SCRIPTS

PART = re.compile(
    r"""(?P<comment>//[^\n]*(?:\n[ \t]*//[^\n]*)*|/\*.*?\*/)"""
    r"""|(?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`)""",
    re.DOTALL,
)
PATTERNS = {
    "comment": test_pages.PATTERNS | test_prose.PATTERNS,
    "text": test_pages.PATTERNS | test_prose.TEXT_PATTERNS,
}
CASES = [(kind, name) for kind, patterns in PATTERNS.items() for name in patterns]


def parts(script: str) -> list[tuple[str, int, str]]:
    """(kind, line, sentence) of every comment, in one line, and of every string of four words or more."""
    found = []
    for match in PART.finditer(script):
        kind, line = str(match.lastgroup), script.count("\n", 0, match.start()) + 1
        if kind == "comment":
            words = re.sub(r"^\s*(?://|/\*+|\*(?!/)) ?|\*/$", "", match[0], flags=re.MULTILINE)
            found.append((kind, line, " ".join(words.split())))
        elif match[0].count(" ") > 2:
            found.append((kind, line, match[0][1:-1]))
    return found


@cache
def of_scripts() -> list[tuple[str, str, str]]:
    """(kind, place, sentence) of all scripts."""
    return [
        (kind, f"{path.relative_to(ROOT)}:{line}", sentence)
        for path in SCRIPTS
        for kind, line, sentence in parts(path.read_text())
    ]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_no_script_has_such_a_sentence(kind, name):
    pattern = PATTERNS[kind][name]
    wrong = [f"{place}: {text}" for each, place, text in of_scripts() if each == kind and re.search(pattern, text)]
    assert not wrong, "\n".join([name, *wrong])


def test_comments_and_texts_are_found():
    script = "// One of\n// two lines\nconst a = 'What we say here'; /** A\n *  longer one */ const b = `of\n three ${a} words`;"
    assert parts(script) == [
        ("comment", 1, "One of two lines"),
        ("text", 3, "What we say here"),
        ("comment", 3, "A longer one"),
        ("text", 4, "of\n three ${a} words"),
    ]
    assert {kind for kind, _, _ in of_scripts()} == {"comment", "text"}
