"""Upper case and lower case."""

from typing import Literal

from pydantic import Field

from .base import Args, Finding, Verifier, VerifierExample
from .segments import sentences, words

_SMALL = frozenset(
    [
        "a",
        "an",
        "and",
        "as",
        "at",
        "but",
        "by",
        "for",
        "from",
        "in",
        "into",
        "nor",
        "of",
        "on",
        "or",
        "over",
        "per",
        "the",
        "to",
        "up",
        "via",
        "vs",
        "with",
    ]
)


class Casing(Args):
    style: Literal["upper", "lower", "title", "sentence"] = Field(
        description="`title`: all words except small ones begin with a capital letter; `sentence`: only the first word and names do"
    )


def _casing(text: str, args: Casing) -> Finding:
    if not any(ch.isupper() or ch.islower() for ch in text):
        return Finding(False, "no letters that have capitals")
    return {"upper": _upper, "lower": _lower, "title": _title, "sentence": _sentence}[args.style](text)


def _upper(text: str) -> Finding:
    small = next((word for word in words(text) if any(map(str.islower, word))), None)
    return Finding(small is None, f"small letters in {small[:40]!r}" if small else "all capitals")


def _lower(text: str) -> Finding:
    big = next((word for word in words(text) if any(map(str.isupper, word))), None)
    return Finding(big is None, f"capitals in {big[:40]!r}" if big else "all small letters")


def _title(text: str) -> Finding:
    found = words(text)
    inner = (word for word in found[1:] if word.lower() not in _SMALL)
    wrong = next((word for word in (*found[:1], *inner) if word[0].islower()), None)
    return Finding(wrong is None, f"{wrong[:40]!r} is not capitalised" if wrong else "title case")


def _sentence(text: str) -> Finding:
    for sentence in sentences(text):
        first = next((ch for ch in sentence if ch.isalnum()), "")
        if first.islower():
            return Finding(False, f"{sentence[:40]!r} starts with a small letter")
    inner = [word for sentence in sentences(text) for word in words(sentence)[1:] if word[0].isalpha() and word != "I"]
    big = sum(word[0].isupper() for word in inner)
    if inner and 2 * big > len(inner):
        return Finding(False, f"{big} of {len(inner)} inner words are capitalised")
    return Finding(True, "sentence case")


VERIFIERS = (
    Verifier(
        "casing",
        "Capitals",
        "All upper, all lower, title or sentence case. Sentence case lets through names: up to half of the inner words.",
        Casing,
        _casing,
        (
            VerifierExample("all quiet here.", {"style": "lower"}, True),
            VerifierExample("All quiet here.", {"style": "lower"}, False),
            VerifierExample("The Wind in the Willows", {"style": "title"}, True),
            VerifierExample("We met Ada in Rome. It rained.", {"style": "sentence"}, True),
        ),
    ),
)
