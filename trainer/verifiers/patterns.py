"""Regular expressions, bounded in time and in the memory that they take once compiled."""

from typing import Literal, Self

import regex
from pydantic import Field, model_validator

from .base import Args, Finding, Verifier, VerifierExample

MAX_REPEATS = 1000
SECONDS = 0.25
_BRACES = regex.compile(r"\{([^{}]*+)\}")


class Pattern(Args):
    pattern: str = Field(min_length=1, max_length=500, description="Syntax of the Python package `regex`")
    where: Literal["anywhere", "whole"] = Field(
        "anywhere", description="`whole`: the pattern must match the whole trimmed text"
    )
    expect: Literal["match", "no_match"] = Field("match", description="`no_match`: the pattern must not be found")
    ignore_case: bool = Field(False, description="Capital and small letters count as the same")
    multiline: bool = Field(False, description="^ and $ also match at line breaks")
    dot_all: bool = Field(False, description="A dot also matches a line break")

    @model_validator(mode="after")
    def _compiles(self) -> Self:
        # Counted repetition is unrolled when compiled: (?:(?:a{1000}){1000}){1000} would take all memory. The product
        # over the whole pattern is a bound on any nesting.
        product = 1
        for inside in _BRACES.findall(self.pattern):
            product *= max((int(number) for number in regex.findall(r"[0-9]{1,9}", inside)), default=1) or 1
        if product > MAX_REPEATS:
            raise ValueError(f"counted repeats multiply to {product}; at most {MAX_REPEATS} are allowed")
        try:
            self.compiled()
        except (regex.error, RecursionError, OverflowError, ValueError) as error:
            raise ValueError(f"not a valid pattern: {error}") from error
        return self

    def compiled(self) -> "regex.Pattern[str]":
        flags = regex.V1
        for on, flag in ((self.ignore_case, regex.I), (self.multiline, regex.M), (self.dot_all, regex.S)):
            flags |= flag if on else 0
        return regex.compile(self.pattern, flags)


def _regex(text: str, args: Pattern) -> Finding:
    pattern, body = args.compiled(), text.strip()
    try:
        if args.where == "whole":
            found = pattern.fullmatch(body, timeout=SECONDS)
        else:
            found = pattern.search(body, timeout=SECONDS)
    except TimeoutError:
        return Finding(None, f"gave up after {SECONDS} s: the pattern backtracks too much on this text")
    note = f"matched {found[0][:60]!r}" if found else "no match"
    return Finding(bool(found) == (args.expect == "match"), note)


VERIFIERS = (
    Verifier(
        "regex",
        "Regular expression",
        f"The pattern is found, or is not. A search is given up after {SECONDS} s and the verdict is then missing.",
        Pattern,
        _regex,
        (
            VerifierExample("Call 555-0134.", {"pattern": r"\d{3}-\d{4}"}, True),
            VerifierExample("Call me.", {"pattern": r"\d"}, False),
            VerifierExample("Call me.", {"pattern": r"\d", "expect": "no_match"}, True),
        ),
    ),
)
