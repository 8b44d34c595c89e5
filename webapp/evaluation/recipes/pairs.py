"""People's judgements of the pair of an example: its label, and each rater's side. -1 `a`, 0 tie, 1 `b`."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainer.contracts import Example, Response
from trainer.judges.combine import majority
from webapp.annotation.kinds.example_labels import is_judge

from .. import report as r
from .base import FoundCase

NO_LABEL, TIED, NO_RUBRIC = "no label", "label is a tie", "no rubric"
WORDS = {NO_LABEL: "Without a label", TIED: "Label is a tie", NO_RUBRIC: "Without a rubric"}


@dataclass(frozen=True)
class FirstComparison:
    """The pair of an example's first comparison. `label` is None if no rater decided or they are evenly split between
    the two sides."""

    example: Example
    a: Response
    b: Response
    label: int | None
    raters: dict[str, int]

    @property
    def key(self) -> str:
        return self.example.key

    @property
    def chosen(self) -> Response | None:
        return None if not self.label else self.a if self.label < 0 else self.b

    @property
    def rejected(self) -> Response | None:
        return None if not self.label else self.b if self.label < 0 else self.a


def pair_of(example: Example) -> FirstComparison | None:
    """The pair; None if the example has no comparison."""
    if not example.preferences:
        return None
    first = example.preferences[0]
    responses = {response.id: response for response in example.responses}
    sides: list[int] = []
    raters: dict[str, int] = {}
    for number, each in enumerate(example.preferences):
        if {each.a, each.b} != {first.a, first.b} or each.strength is None or is_judge({"rater": each.rater}):
            continue  # a model's verdict on the pair is not a label with which models are compared
        side = (each.strength > 0) - (each.strength < 0)
        sides.append(side if each.a == first.a else -side)
        raters[each.rater or f"rater {number + 1}"] = sides[-1]
    vote = majority(sides)
    return FirstComparison(example, responses[first.a], responses[first.b], vote.value, raters)


def labelled_pairs(
    examples: Iterable[Example], most: int | None = None, *, ties: bool = True
) -> Iterator[FirstComparison]:
    """The pairs with a label, at most `most`; without `ties` only those whose label is a side."""
    count = 0
    for example in examples:
        pair = pair_of(example)
        if pair is None or pair.label is None or (pair.label == 0 and not ties):
            continue
        yield pair
        count += 1
        if count == most:
            return


def left_out(examples: Iterable[Example], *, ties: bool = True, rubric: bool = False) -> Iterator[FoundCase]:
    """A case, tagged with the reason, for each example with two responses or more that `labelled_pairs` leaves out, or that lacks a needed
    rubric."""
    for example in examples:
        pair = pair_of(example)
        if pair is None and len(example.responses) < 2:
            continue
        if pair is None or pair.label is None:
            reason = NO_LABEL
        elif pair.label == 0 and not ties:
            reason = TIED
        elif rubric and not example.rubric:
            reason = NO_RUBRIC
        else:
            continue
        sides = {"a": pair.a.id, "b": pair.b.id} if pair else {}
        yield FoundCase({"example": example.key, **sides}, {"left out": WORDS[reason].lower()}, [reason])


def coverage_of(left: Iterable[FoundCase]) -> list[tuple[str, r.Cell]]:
    """The number that was left out, for each reason that occurs."""
    counts = Counter(each.tags[0] for each in left)
    return [(words, r.count(counts[reason], reason, tone="warn")) for reason, words in WORDS.items() if counts[reason]]
