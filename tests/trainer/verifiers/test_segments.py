"""The conventions of counting, with cases in which simple splitting is wrong."""

import pytest

from trainer.verifiers.segments import is_bullet, lines, paragraphs, sentences, step_number, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's a well-known fact.", ["It's", "a", "well-known", "fact"]),
        ("3.5 of 1,000 at 10:30", ["3.5", "of", "1,000", "at", "10:30"]),
        ("e.g. the U.S. team", ["e.g", "the", "U.S", "team"]),
        ("one.Two", ["one", "Two"]),
        ("and/or — maybe", ["and", "or", "maybe"]),
        ("我喜欢tea", ["我", "喜", "欢", "tea"]),
        ("コーヒー", ["コ", "ー", "ヒ", "ー"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("naïve café 😀 !", ["naïve", "café"]),
        ("2nd place", ["2nd", "place"]),
        ("", []),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mr. A. Smith left. Then it rained.", ["Mr. A. Smith left.", "Then it rained."]),
        ("It costs $3.50. Cheap!", ["It costs $3.50.", "Cheap!"]),
        ("Bring pens, paper, etc. and sit.", ["Bring pens, paper, etc. and sit."]),
        ("We sell pens, etc. Come in.", ["We sell pens, etc.", "Come in."]),
        ("See No. 5 first. No. I mean six.", ["See No. 5 first.", "No.", "I mean six."]),
        ('"Stop!" he said. She stopped.', ['"Stop!" he said.', "She stopped."]),
        ("Well... maybe. Fine?!", ["Well... maybe.", "Fine?!"]),
        ("it rained. we left.", ["it rained.", "we left."]),
        ("It was I. Then she came.", ["It was I.", "Then she came."]),
        ("no final stop", ["no final stop"]),
        ("A wrapped\nline. Next.", ["A wrapped line.", "Next."]),
        ("- one\n- two. three", ["one", "two.", "three"]),
        ("# Title\nText here.", ["# Title", "Text here."]),
        ("我喜欢茶。你呢？", ["我喜欢茶。", "你呢？"]),
        ("... !!! ???", []),
    ],
)
def test_sentences(text, expected):
    assert sentences(text) == expected


@pytest.mark.parametrize("line", ["- milk", "* milk", "• milk", "•milk", "+ milk", "   - nested", "- [ ] task"])
def test_bullets(line):
    assert is_bullet(line)


@pytest.mark.parametrize(
    "line", ["-milk", "*milk*", "**milk** is", "---", "- - -", "* * *", "- ", "-5 degrees", "a - b", ""]
)
def test_what_is_no_bullet(line):
    assert not is_bullet(line)


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("1. Wash", 1),
        ("2) Cut", 2),
        ("(3) Cook", 3),
        ("**4.** Eat", 4),
        ("Step 5: Rest", 5),
        ("**Step 6:** Rest", 6),
        ("  7. nested", 7),
        ("1.5 litres", None),
        ("1.", None),
        ("12345. no", None),
        ("Step one: go", None),
        ("In 1. place", None),
    ],
)
def test_numbers_of_steps(line, number):
    assert step_number(line) == number


def test_paragraphs_and_lines_ignore_what_is_blank():
    text = "\n\na\nb\n \t\nc\n\n\n"
    assert paragraphs(text) == ["a\nb", "c"]
    assert lines(text) == ["a", "b", "c"]
