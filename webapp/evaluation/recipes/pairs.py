"""What people said about the pair of an example: its label, and each rater's side. -1 `a`, 0 tie, 1 `b`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainer.contracts import Example, Response
from trainer.judges.combine import majority
from webapp.annotation.shown import is_judge


@dataclass(frozen=True)
class Pair:
    """The pair of an example's first comparison. `label` is None where no rater decided or they are evenly split between
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


def pair_of(example: Example) -> Pair | None:
    """None where the example has no comparison."""
    if not example.preferences:
        return None
    first = example.preferences[0]
    responses = {response.id: response for response in example.responses}
    sides: list[int] = []
    raters: dict[str, int] = {}
    for number, each in enumerate(example.preferences):
        if {each.a, each.b} != {first.a, first.b} or each.strength is None or is_judge({"rater": each.rater}):
            continue  # what a model said of the pair is no label to hold a model against
        side = (each.strength > 0) - (each.strength < 0)
        sides.append(side if each.a == first.a else -side)
        raters[each.rater or f"rater {number + 1}"] = sides[-1]
    vote = majority(sides)
    return Pair(example, responses[first.a], responses[first.b], vote.value, raters)


def labelled(examples: Iterable[Example], most: int | None = None, *, ties: bool = True) -> Iterator[Pair]:
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


def unlabelled(examples: Iterable[Example]) -> int:
    """Examples with two responses or more whose pair no label decides."""
    count = 0
    for example in examples:
        pair = pair_of(example)
        count += len(example.responses) > 1 if pair is None else pair.label is None
    return count
