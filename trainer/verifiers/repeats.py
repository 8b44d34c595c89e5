"""Whether a text repeats itself."""

from collections import Counter

from pydantic import Field

from .base import Args, Finding, Verifier, VerifierExample
from .segments import words


class Repeats(Args):
    words: int = Field(4, ge=1, le=50, description="Length of the sequences that are compared, in words")
    max: int = Field(1, ge=1, le=1000, description="How often the same sequence may occur")


def _repeats(text: str, args: Repeats) -> Finding:
    found = [word.casefold() for word in words(text)]
    if not found:
        return Finding(False, "no words")
    counts = Counter(tuple(found[i : i + args.words]) for i in range(len(found) - args.words + 1))
    if not counts:
        return Finding(True, f"shorter than {args.words} words")
    sequence, times = counts.most_common(1)[0]
    return Finding(times <= args.max, f"{' '.join(sequence)[:80]!r} occurs {times} times; allowed: {args.max}")


VERIFIERS = (
    Verifier(
        "repeats",
        "Does not repeat itself",
        "No sequence of this many words, capitals ignored, occurs more often than allowed. A text without words fails.",
        Repeats,
        _repeats,
        (
            VerifierExample("Rain falls. Wind blows.", {"words": 2}, True),
            VerifierExample("I like tea. I like tea.", {"words": 3, "max": 1}, False),
        ),
    ),
)
