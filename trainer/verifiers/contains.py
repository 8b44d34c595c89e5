"""Texts that must occur, or must not."""

from typing import Annotated, Literal

from pydantic import Field

from .base import Args, Finding, Verifier, VerifierExample

Phrase = Annotated[str, Field(min_length=1, max_length=500)]


class Phrases(Args):
    texts: list[Phrase] = Field(min_length=1, max_length=200, description="Words or phrases to look for")
    ignore_case: bool = Field(True, description="Capital and small letters count as the same")
    whole_word: bool = Field(False, description="`art` is not found in `start`")


class Wanted(Phrases):
    match: Literal["any", "all"] = Field("all", description="Whether one of the texts is enough")


def fold(text: str, ignore_case: bool) -> str:
    """The text with plain apostrophes instead of typographic ones, and without differences of case if `ignore_case`."""
    plain = text.replace("’", "'")
    return plain.casefold() if ignore_case else plain


def bounded(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]` is not part of a longer word. An edge can be part of one only if it is a letter or a digit."""
    before = start > 0 and text[start].isalnum() and text[start - 1].isalnum()
    after = end < len(text) and text[end - 1].isalnum() and text[end].isalnum()
    return not (before or after)


def occurs(phrase: str, text: str, whole_word: bool) -> bool:
    at = text.find(phrase)
    while whole_word and at >= 0 and not bounded(text, at, at + len(phrase)):
        at = text.find(phrase, at + 1)
    return at >= 0


def _found(text: str, args: Phrases) -> list[str]:
    folded = fold(text, args.ignore_case)
    return [phrase for phrase in args.texts if occurs(fold(phrase, args.ignore_case), folded, args.whole_word)]


def _listed(texts: list[str]) -> str:
    return ", ".join(repr(text) for text in texts[:5]) + (", …" if len(texts) > 5 else "")


def _must_contain(text: str, args: Wanted) -> Finding:
    found = _found(text, args)
    if args.match == "any":
        return Finding(bool(found), f"found {_listed(found)}" if found else f"found none of {_listed(args.texts)}")
    lacking = [phrase for phrase in args.texts if phrase not in found]
    return Finding(not lacking, f"lacks {_listed(lacking)}" if lacking else f"found {_listed(found)}")


def _must_not_contain(text: str, args: Phrases) -> Finding:
    found = _found(text, args)
    return Finding(not found, f"found {_listed(found)}" if found else f"none of {_listed(args.texts)}")


VERIFIERS = (
    Verifier(
        "must_contain",
        "Contains",
        "All of the texts occur, or with match any, at least one.",
        Wanted,
        _must_contain,
        (
            VerifierExample("Boil the rice, then rest it.", {"texts": ["rice", "boil"]}, True),
            VerifierExample("Start here.", {"texts": ["art"], "whole_word": True}, False),
            VerifierExample("Use oats.", {"texts": ["rice", "oats"], "match": "any"}, True),
        ),
    ),
    Verifier(
        "must_not_contain",
        "Does not contain",
        "None of the texts occurs. An empty response passes: pair it with a criterion on content.",
        Phrases,
        _must_not_contain,
        (
            VerifierExample("A calm answer.", {"texts": ["!"]}, True),
            VerifierExample("Wow! Great!", {"texts": ["!"]}, False),
        ),
    ),
)
