"""Checks of the structure of a rubric, by its words alone (RubricBench, 2025).

RubricBench asks for 2-10 items. Each is one binary check; none is vague, none repeats another, none contradicts another. These functions
find items that look different. They give hints to the author, never verdicts: they match words and understand nothing, so each message
says what was seen and what to do. They know English and Chinese; other languages get the checks that need no list of words. The
functions are pure and quick: the time grows with the square of the number of criteria, and linearly with their length.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import regex

from trainer.contracts import Rubric, VerifierSpec
from trainer.verifiers import VerifierError, check_spec
from trainer.verifiers.segments import sentences

from .wording import ANY_WILL_DO, COMPOUND, LISTING, SHUNNING, VAGUE, Wording, wording

Code = Literal[
    "compound", "duplicate", "contradiction", "vague", "negated", "no_positive", "too_few", "too_many", "verifier"
]
FEWEST, MOST = 2, 10
ALIKE = 0.7  # two criteria are near-duplicates from this Jaccard index of the words that carry meaning
# no opening mark inside: else, for each of many opening marks, the search for its end would go through the whole text
_ATTACHED = regex.compile(r"\([^()]*\)|“[^“”]*”|\"[^\"]*\"|`[^`]*`|「[^「」]*」|《[^《》]*》")


@dataclass(frozen=True)
class DraftCriterion:
    """A criterion while it is written: its text may still be empty, and its points 0."""

    text: str
    points: float = 1.0
    verifier: VerifierSpec | None = None


@dataclass(frozen=True)
class StructureHint:
    """`criterion` and `other` are positions in the rubric, from 0. If `criterion` is None, the hint is about the whole rubric."""

    code: Code
    message: str
    criterion: int | None = None
    other: int | None = None


def lines(rubric: Rubric) -> list[DraftCriterion]:
    return [DraftCriterion(criterion.text, criterion.points, criterion.verifier) for criterion in rubric.criteria]


def structural_hints(rubric: Sequence[DraftCriterion]) -> list[StructureHint]:
    """All hints: first those about the whole rubric, then those of each criterion. Empty lines are not counted."""
    written = [(at, line) for at, line in enumerate(rubric) if line.text.strip()]
    hints = [*_whole([line for _, line in written])]
    for at, line in written:
        hints.extend(StructureHint(code, message, at) for code, message in _alone(line))
    words = {at: wording(line.text) for at, line in written}
    for (i, first), (j, second) in combinations(written, 2):
        if found := _pair(first, second, words[i], words[j], i):
            hints.append(StructureHint(*found, criterion=j, other=i))
    return sorted(hints, key=lambda hint: -1 if hint.criterion is None else hint.criterion)


def _whole(written: Sequence[DraftCriterion]) -> Iterator[StructureHint]:
    if written and not any(line.points > 0 for line in written):
        yield StructureHint(
            "no_positive", "No criterion earns points, so there is nothing to score against: add one above 0."
        )
    if len(written) < FEWEST:
        yield StructureHint(
            "too_few", f"{len(written)} of at least {FEWEST} criteria: one check seldom tells responses apart."
        )
    if len(written) > MOST:
        more = f"{len(written)} criteria: beyond {MOST}, keep those that decide and drop or merge the rest."
        yield StructureHint("too_many", more)


def _alone(line: DraftCriterion) -> Iterator[tuple[Code, str]]:
    """Hints about one criterion by itself, at most one of each code."""
    if reason := compound(line.text):
        yield "compound", reason
    if found := vague(line.text):
        quoted = ", ".join(f"“{word}”" for word in found[:3])
        yield "vague", f"{quoted} leaves the decision to taste: say what one would see in the response."
    if line.points < 0 and SHUNNING.search(line.text):
        yield "negated", "Costs points where the fault is avoided: name the fault itself, or give points above 0."
    if line.verifier is not None:
        try:
            check_spec(line.verifier)
        except VerifierError as error:
            yield "verifier", f"The verifier cannot run: {error.field.removeprefix('args.')}: {error.message}."


def compound(text: str) -> str:
    """The reason why `text` looks like more than one check; "" if it does not. Quoted and bracketed words do not count."""
    bare = _ATTACHED.sub(" ", text)
    if len(sentences(bare)) > 1 or regex.search(r"[;；]\s*\S", bare):
        return "Two statements in one criterion: if one is met and the other is not, there is no answer. Split it."
    if found := COMPOUND.search(bare):
        joined = " ".join(found[0].split())
        return f"“{joined}” joins two checks: if only one is met, there is no answer. Split it."
    if LISTING.search(bare) and not ANY_WILL_DO.search(bare):
        return "Lists several things: say whether all are needed or any will do, or make each its own criterion."
    return ""


def vague(text: str) -> list[str]:
    """The words of `text` that people read differently, in order, each once."""
    found = (" ".join(match[0].split()) for match in VAGUE.finditer(_ATTACHED.sub(" ", text)))
    return list(dict.fromkeys(found))


def likeness(first: Wording, second: Wording) -> float:
    """The Jaccard index of two sets of stems; 0 if one of them is empty."""
    union = first.stems | second.stems
    return len(first.stems & second.stems) / len(union) if first.stems and second.stems else 0.0


def _pair(
    first: DraftCriterion, second: DraftCriterion, one: Wording, other: Wording, at: int
) -> tuple[Code, str] | None:
    """The conflicts between two criteria. The hint stands at the second; `at` is the position of the first."""
    place = f"criterion {at + 1}"
    if clash := _bounds_clash(first, second):
        return "contradiction", f"Cannot be met together with {place}: {clash}."
    alike = likeness(one, other) >= ALIKE and one.figures == other.figures
    if not alike:
        return _same_verifier(first, second, place)
    same_sign = (first.points > 0) == (second.points > 0)
    if one.negated == other.negated:
        words = "Says nearly the same as" if same_sign else "Rewards and punishes the same thing as"
        return "duplicate", f"{words} {place}: keep one of them."
    if same_sign:
        return "contradiction", f"Asks for the opposite of {place}: no response can meet both."
    return "duplicate", f"The mirror of {place}: what misses one falls under the other, so it counts twice."


def _same_verifier(first: DraftCriterion, second: DraftCriterion, place: str) -> tuple[Code, str] | None:
    if first.verifier is None or first.verifier != second.verifier:
        return None
    return "duplicate", f"The same verifier with the same arguments as {place}: the two always agree."


def _bounds_clash(first: DraftCriterion, second: DraftCriterion) -> str:
    """The conflict of two rewarded criteria that ask for counts which exclude each other; "" if they do not."""
    if not (first.verifier and second.verifier) or first.verifier.name != second.verifier.name:
        return ""
    if first.points <= 0 or second.points <= 0:
        return ""
    one, other = _interval(first.verifier), _interval(second.verifier)
    if one is None or other is None or max(one[0], other[0]) <= min(one[1], other[1]):
        return ""
    return f"one asks for {_told(one)}, the other for {_told(other)}"


def _interval(spec: VerifierSpec) -> tuple[float, float] | None:
    """The counts that a verifier accepts; None if its arguments are not bounds."""
    if not {"min", "max", "exactly"} & spec.args.keys() or spec.name == "repeats":
        return None
    low, high = spec.args.get("min"), spec.args.get("max")
    if isinstance(exactly := spec.args.get("exactly"), int):
        return exactly, exactly
    return (low if isinstance(low, int) else 0, high if isinstance(high, int) else float("inf"))


def _told(interval: tuple[float, float]) -> str:
    low, high = interval
    if low == high:
        return f"exactly {low:g}"
    if high == float("inf"):
        return f"at least {low:g}"
    return f"at most {high:g}" if low == 0 else f"{low:g} to {high:g}"
