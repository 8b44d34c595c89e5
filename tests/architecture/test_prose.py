"""Docstrings and texts are plain English (CONTRIBUTING.md, Habits): patterns that are hard for a reader who learnt English at school do not
return.

`READ` are the rooms whose docstrings were read aloud to the end: no pattern is left there. In the whole program `MOST` counts the
docstrings that still have one, rounded up. `MOST_TEXTS` counts the same for what users read: strings of the program and lines of the
templates.
Lower a number when you mend some; never raise it.
"""

import io
import re
import subprocess
import tokenize
from functools import cache
from pathlib import Path

import pytest

from tests.architecture import sources

ROOT = Path(__file__).parents[2]
PROGRAM = ("webapp", "workers", "trainer", "client", "benchmarks", "scripts", "demo")
READ = (
    "benchmarks",
    "client",
    "demo",
    "scripts",
    "trainer",
    "webapp",
    "workers",
)
QUESTION = r"\A(?:How|Which|Where|When|What|Why)\b"
PATTERNS = {
    "begins with a pronoun: name the thing": r"\A(?:Its?|They|Them|Their|Those|That|These|This|Whose)\b",
    "begins with what belongs at the end: subject first": r"\A(?:Of|Whoever|Who)\b",
    "`where` for a condition: say `if`": r"\b(?:[Ee]mpty|None|[01]|[Rr]aises \w+) where\b",
    "whoever, whatever: say who or what": r"\b(?:[Ww]hoever|[Ww]hatever)\b",
    "`for` for a reason: say `because`": r", for (?:it|they|he|she|no|what|nobody)\b",
    "names a chapter that is not in this repository": r"\bMETHODS \d",
    "anew, afresh: say again": r"\b(?:anew|afresh)\b",
    "begins with a question word: say what the thing is or does": QUESTION,
    "refers to the docstring above: name the thing, or say `like`": r"\AThe same(?=[.,;:]| (?:for|with|without|in|as|from|by|of|but|if)\b)",
    "begins with meanwhile: say `while the block runs`": r"\AMeanwhile\b",
    "begins with `as`: say `like`": r"\AAs `",
    "has no subject: name the things and their order": r"\A(?:The (?:newest|oldest|most urgent) first|By name|In their order)\b",
    "goes on: say continues": r"\b(?:go|goes|went|going) on\b(?! to\b)",
    "likelier, surer: say more likely, more certain": r"\b(?:likelier|likeliest|surer)\b",
}
MOST = {
    "begins with a pronoun: name the thing": 0,
    "begins with what belongs at the end: subject first": 0,
    "`where` for a condition: say `if`": 0,
    "whoever, whatever: say who or what": 0,
    "`for` for a reason: say `because`": 0,
    "names a chapter that is not in this repository": 0,
    "anew, afresh: say again": 0,
    "begins with a question word: say what the thing is or does": 0,
    "refers to the docstring above: name the thing, or say `like`": 0,
    "begins with meanwhile: say `while the block runs`": 0,
    "begins with `as`: say `like`": 0,
    "has no subject: name the things and their order": 0,
    "goes on: say continues": 1,  # in a file of vLLM's, whose tests need vLLM itself
    "likelier, surer: say more likely, more certain": 0,
}

COMMENT_PATTERNS = {
    "whoever, whatever: say who or what": PATTERNS["whoever, whatever: say who or what"],
    "anew, afresh: say again": PATTERNS["anew, afresh: say again"],
    "goes on: say continues": PATTERNS["goes on: say continues"],
    "likelier, surer: say more likely, more certain": PATTERNS["likelier, surer: say more likely, more certain"],
    "`What` or `Where` begins a statement: name the thing, or say `if`": r"(?:^|[.;] )(?:What|Where) [^?]*$",
    "is no: say `is not a`": r"(?<!here )\b(?:is|are) no (?!longer\b|more\b)[a-z]",
}

SPOKEN = ("webapp", "workers", "trainer", "client", "templates")
TEXT_PATTERNS = {
    "whoever, whatever: say who or what": r"\b(?:[Ww]hoever|[Ww]hatever)\b",
    "anew: say again": r"\banew\b",
    "`for` for a reason: say `because`": r", for (?:it|they|he|she|no|what|nobody)\b",
    "`of which` before its sentence: name the thing": r"\bof which\b",
    "`where` for a condition: say `if`": r"\b(?:[Ee]mpty|[Nn]ull|[Ff]alse|[Tt]rue) where\b",
    "cannot be told: say distinguished, or not defined": r"\bcannot be told\b(?! apart)",
    "goes on: say continues": r"\b(?:go|goes|went|going) on\b(?! to)",
    "level off: say `reach a plateau`": r"\blevel(?:led|s)? off\b",
    "out of bounds: say `too small or too large`": r"\bout of (?:bounds|range)\b",
    "`What` begins a statement: name the thing": r"(?:^|[.;:] )What [^.?|]*?(?:[.:;]|$)",
    "`Where` begins a condition: say `If`": r"(?:^|[.;] )Where [^.?|]*?,",
    "is no: say `is not a`": r"(?<!here )\b(?:is|are) no (?!longer\b|more\b)[a-z]",
}
MOST_TEXTS = {
    "whoever, whatever: say who or what": 3,
    "anew: say again": 2,
    "`for` for a reason: say `because`": 0,
    "`of which` before its sentence: name the thing": 1,
    "`where` for a condition: say `if`": 0,
    "cannot be told: say distinguished, or not defined": 0,
    "goes on: say continues": 0,
    "level off: say `reach a plateau`": 0,
    "out of bounds: say `too small or too large`": 0,
    "`What` begins a statement: name the thing": 4,  # titles of tables in reports that older versions have stored
    "`Where` begins a condition: say `If`": 0,
    "is no: say `is not a`": 1,
}


@cache
def docstrings() -> list[tuple[str, int, str]]:
    """(file, line, text) of every docstring of the program, those below a field or a constant included."""
    listed = subprocess.run(["git", "ls-files", "-z", *PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.split("\0") if name.endswith(".py") and "/migrations/" not in name]
    there = [name for name in names if (ROOT / name).exists()]
    return [(name, line, text) for name in there for line, text in sources.read(ROOT / name).docstrings]


def docstrings_with(pattern: str) -> list[str]:
    return [f"{name}:{line}: {text.splitlines()[0]}" for name, line, text in docstrings() if re.search(pattern, text)]


@pytest.mark.parametrize("pattern", [pattern for pattern in PATTERNS if not MOST[pattern]])
def test_a_room_that_was_read_has_no_such_sentence(pattern):
    wrong = [each for each in docstrings_with(PATTERNS[pattern]) if each.startswith(tuple(f"{room}/" for room in READ))]
    assert not wrong, "\n".join([pattern, *wrong])


def test_no_module_begins_with_a_question_word():
    wrong = [
        f"{name}: {text.splitlines()[0]}"
        for name, line, text in docstrings()
        if line == 1 and re.search(QUESTION, text)
    ]
    assert not wrong, "\n".join(["say what the module does", *wrong])


def test_no_lede_of_a_page_lacks_its_subject():
    """The sentence below a page's heading says what the page is or does. It may be a question."""
    lede = re.compile(r"{% block lede %}\s*((?:What|How|Which|Where|When|Why) [^.?]*[.?])")
    pages = sorted((ROOT / "templates").rglob("*.html"))
    firsts = [(page, found[1]) for page in pages if (found := lede.search(page.read_text()))]
    wrong = [f"{page.relative_to(ROOT)}: {text}" for page, text in firsts if text.endswith(".")]
    assert not wrong, "\n".join(["begin with the subject", *wrong])


def test_no_heading_of_a_page_begins_with_a_question_word():
    """Columns such as `When` are one word, and stay."""
    head = re.compile(
        r"<(?:h[1-6]|th|legend|summary|caption)\b[^>]*>(?:<strong>)?(?:What\b|(?:How|Which|Where|When|Why) )"
    )
    wrong = [
        f"{name}:{line}: {text.strip()}" for name, line, text in texts() if name.endswith(".html") and head.search(text)
    ]
    assert not wrong, "\n".join(["name the thing by a noun", *wrong])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_more_docstrings_have_such_a_sentence(pattern):
    wrong = docstrings_with(PATTERNS[pattern])
    assert len(wrong) <= MOST[pattern], "\n".join([f"{pattern}: {len(wrong)}, at most {MOST[pattern]}", *wrong])


@cache
def comments() -> list[tuple[str, int, str]]:
    """(file, line, text) of every comment of the program. Lines of a comment that follow one another are one text."""
    found: list[tuple[str, int, str]] = []
    for name in dict.fromkeys(name for name, _, _ in docstrings()):
        last = 0
        for token in tokenize.generate_tokens(io.StringIO((ROOT / name).read_text()).readline):
            if token.type == tokenize.COMMENT:
                line, text = token.start[0], token.string.lstrip("# ")
                if last == line - 1 and token.line.lstrip().startswith("#"):
                    found[-1] = (name, found[-1][1], f"{found[-1][2]} {text}")
                else:
                    found.append((name, line, text))
                last = line
    return found


@pytest.mark.parametrize("pattern", COMMENT_PATTERNS)
def test_no_comment_has_such_a_sentence(pattern):
    wrong = [f"{name}:{line}: {text}" for name, line, text in comments() if re.search(COMMENT_PATTERNS[pattern], text)]
    assert not wrong, "\n".join([pattern, *wrong])


@cache
def texts() -> list[tuple[str, int, str]]:
    """(file, line, text) of the strings of four words or more that are no docstrings, and of every line of a template."""
    listed = subprocess.run(["git", "ls-files", "-z", *SPOKEN], cwd=ROOT, capture_output=True, text=True, check=True)
    found = []
    for name in listed.stdout.split("\0"):
        if name.endswith(".html") and (ROOT / name).exists():
            found += [(name, i, line) for i, line in enumerate((ROOT / name).read_text().splitlines(), 1)]
        elif name.endswith(".py") and "/migrations/" not in name and (ROOT / name).exists():
            found += [(name, *each) for each in sources.read(ROOT / name).strings]
    return found


@pytest.mark.parametrize("pattern", TEXT_PATTERNS)
def test_no_more_texts_have_such_a_sentence(pattern):
    wrong = [f"{name}:{line}: {text[:200]}" for name, line, text in texts() if re.search(TEXT_PATTERNS[pattern], text)]
    assert len(wrong) <= MOST_TEXTS[pattern], "\n".join(
        [f"{pattern}: {len(wrong)}, at most {MOST_TEXTS[pattern]}", *wrong]
    )
