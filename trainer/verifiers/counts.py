"""Counts the words, sentences, paragraphs, lines, bullets, questions and characters of a text."""

import regex
from pydantic import Field

from .base import Args, Bounds, Finding, Verifier, VerifierExample
from .segments import is_bullet, lines, paragraphs, sentences, words

_QUESTION = regex.compile(r"[?？؟][?？؟!！]*+")


class WordLength(Args):
    max_letters: int = Field(ge=1, le=100, description="Longest word that still counts as plain")
    allow: int = Field(0, ge=0, le=1000, description="Number of longer words that are allowed")


def _words(text: str, args: Bounds) -> Finding:
    return args.judge(len(words(text)), "word")


def _sentences(text: str, args: Bounds) -> Finding:
    return args.judge(len(sentences(text)), "sentence")


def _paragraphs(text: str, args: Bounds) -> Finding:
    return args.judge(len(paragraphs(text)), "paragraph")


def _lines(text: str, args: Bounds) -> Finding:
    return args.judge(len(lines(text)), "line")


def _bullets(text: str, args: Bounds) -> Finding:
    return args.judge(sum(map(is_bullet, text.splitlines())), "bullet")


def _questions(text: str, args: Bounds) -> Finding:
    return args.judge(len(_QUESTION.findall(text)), "question")


def _characters(text: str, args: Bounds) -> Finding:
    return args.judge(len(text.strip()), "character")


def _word_length(text: str, args: WordLength) -> Finding:
    found = words(text)
    if not found:
        return Finding(False, "no words")
    long = [word for word in found if sum(map(str.isalpha, word)) > args.max_letters]
    shown = f": {', '.join(word[:40] for word in long[:3])}" if long else ""
    return Finding(
        len(long) <= args.allow, f"{len(long)} words over {args.max_letters} letters{shown}; allowed: {args.allow}"
    )


VERIFIERS = (
    Verifier(
        "word_count",
        "Number of words",
        "Counts words; each Chinese or Japanese character is one word; list markers such as 1. count as words.",
        Bounds,
        _words,
        (
            VerifierExample("It's a well-known fact.", {"exactly": 4}, True),
            VerifierExample("One two three four", {"max": 3}, False),
            VerifierExample("我喜欢茶。", {"exactly": 4}, True),
        ),
    ),
    Verifier(
        "sentence_count",
        "Number of sentences",
        "Counts sentences; titles, initials, decimals and e.g. do not end one; every list item is at least one.",
        Bounds,
        _sentences,
        (
            VerifierExample("Dr. Lee paid $3.50 for tea. It was good!", {"exactly": 2}, True),
            VerifierExample("One. Two. Three.", {"max": 2}, False),
        ),
    ),
    Verifier(
        "paragraph_count",
        "Number of paragraphs",
        "Counts blocks of text separated by a blank line.",
        Bounds,
        _paragraphs,
        (
            VerifierExample("First.\n\nSecond.", {"exactly": 2}, True),
            VerifierExample("First line\nstill the first.", {"min": 2}, False),
        ),
    ),
    Verifier(
        "line_count",
        "Number of lines",
        "Counts lines that are not blank.",
        Bounds,
        _lines,
        (VerifierExample("red\n\ngreen", {"exactly": 2}, True), VerifierExample("red green", {"min": 2}, False)),
    ),
    Verifier(
        "bullet_count",
        "Number of bullets",
        "Counts markdown list items that start with -, *, + or •, at any depth.",
        Bounds,
        _bullets,
        (
            VerifierExample("- milk\n* eggs\n• tea", {"exactly": 3}, True),
            VerifierExample("*milk* and **eggs**\n---", {"min": 1}, False),
        ),
    ),
    Verifier(
        "question_count",
        "Number of questions",
        "Counts question marks; several in a row are one.",
        Bounds,
        _questions,
        (
            VerifierExample("Really?! When do we start?", {"exactly": 2}, True),
            VerifierExample("Tell me when we start.", {"min": 1}, False),
        ),
    ),
    Verifier(
        "character_count",
        "Number of characters",
        "Counts characters, inner spaces and punctuation included, outer white space not.",
        Bounds,
        _characters,
        (VerifierExample(" short ", {"max": 5}, True), VerifierExample("a little longer", {"max": 5}, False)),
    ),
    Verifier(
        "word_length",
        "Plain words",
        "No word, but for those allowed, has more than this many letters. A text without words is not plain.",
        WordLength,
        _word_length,
        (
            VerifierExample("The cat sat on the mat.", {"max_letters": 6}, True),
            VerifierExample("Photosynthesis feeds plants.", {"max_letters": 8}, False),
            VerifierExample("Photosynthesis feeds plants.", {"max_letters": 8, "allow": 1}, True),
        ),
    ),
)
