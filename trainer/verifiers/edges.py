"""Verifies the beginning and the end of a text."""

from pydantic import Field

from .base import Args, Finding, Verifier, VerifierExample
from .contains import Phrase, bounded, fold


class Edge(Args):
    texts: list[Phrase] = Field(min_length=1, max_length=200, description="One of these is enough")
    ignore_case: bool = Field(True, description="Capital and small letters count as the same")
    whole_word: bool = Field(True, description="`So` does not count as the start of `Some`")


def _starts_with(text: str, args: Edge) -> Finding:
    body = fold(text.strip(), args.ignore_case)
    for phrase in args.texts:
        wanted = fold(phrase, args.ignore_case)
        if body.startswith(wanted) and (not args.whole_word or bounded(body, 0, len(wanted))):
            return Finding(True, f"starts with {phrase!r}")
    return Finding(False, f"starts with {text.strip()[:30]!r}")


def _ends_with(text: str, args: Edge) -> Finding:
    body = fold(text.strip(), args.ignore_case)
    for phrase in args.texts:
        wanted = fold(phrase, args.ignore_case)
        start = len(body) - len(wanted)
        if body.endswith(wanted) and (not args.whole_word or bounded(body, start, len(body))):
            return Finding(True, f"ends with {phrase!r}")
    return Finding(False, f"ends with {text.strip()[-30:]!r}")


VERIFIERS = (
    Verifier(
        "starts_with",
        "Starts with",
        "The first characters, leading white space aside, are one of the texts.",
        Edge,
        _starts_with,
        (
            VerifierExample("Because it is warm.", {"texts": ["because"]}, True),
            VerifierExample("Someone came.", {"texts": ["So"]}, False),
        ),
    ),
    Verifier(
        "ends_with",
        "Ends with",
        "The last characters, trailing white space aside, are one of the texts.",
        Edge,
        _ends_with,
        (
            VerifierExample("Shall we go?\n", {"texts": ["?"]}, True),
            VerifierExample("We should go.", {"texts": ["?", "!"]}, False),
        ),
    ),
)
