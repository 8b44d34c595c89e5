"""A rubric that was written for a pair of answers that people have compared, as the parts of its reward read it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from trainer.contracts import Criterion, Message, Response
from trainer.contracts.base import Record
from trainer.contracts.rubric import RubricForm
from trainer.judges.rubric_forms import WrittenRubric, read_rubric

from .parts import Item

FACTS = "pair"  # the key of `Item.facts` under which the pair stands
_CLOSED = ("mams", "touchstone")  # forms whose end is seen: JSON that was cut is no JSON
_WORD = re.compile(r"\w+")


class ComparedPair(Record):
    """The pair by which a written rubric is measured. The writer sees only the conversation.

    `example` is the example's key in the data, `first` the answer that a judge sees first, `human` people's own rubric if there is one.
    """

    example: str
    conversation: tuple[Message, ...]
    chosen: Response
    rejected: Response
    first: Literal["chosen", "rejected"] = "chosen"
    human: tuple[Criterion, ...] = ()
    reference: str = ""

    @property
    def facts(self) -> Mapping[str, Any]:
        return {FACTS: self.model_dump(mode="json")}

    @property
    def ordered(self) -> dict[str, str]:
        """The texts by id, in the order in which they are shown."""
        sides = (self.chosen, self.rejected) if self.first == "chosen" else (self.rejected, self.chosen)
        return {side.id: side.text for side in sides}


@dataclass(frozen=True)
class Writing:
    pair: ComparedPair
    read: WrittenRubric
    criteria: tuple[Criterion, ...]

    @property
    def fault(self) -> str:
        """The reason why this is not a rubric: nothing can be read, or nothing earns points. Empty if it is one."""
        if not self.criteria:
            return next(iter(self.read.problems), "there is no criterion")
        return "" if any(criterion.points > 0 for criterion in self.criteria) else "no criterion earns points"

    @property
    def weightless(self) -> str:
        """The reason why the points of the rubric cannot be weights of a mean; empty if they can."""
        total = sum(criterion.points for criterion in self.criteria)
        return "" if total > 0 else f"its points sum to {total:g}; a weighted mean needs a sum above 0"


def writing_of(item: Item, form: RubricForm) -> Writing:
    """The response as a rubric in this form. Raises ValueError for an item that belongs to no pair."""
    read = read_rubric(item.response, form)
    if item.cut and form not in _CLOSED:
        read = WrittenRubric(
            read.items, (*read.problems, "it was cut, so its last item may be half of one"), read.notes
        )
    return Writing(_pair(item.facts), read, read.criteria)


def words_score(criteria: tuple[Criterion, ...], answer: str) -> tuple[float, list[float]]:
    """`S = sum_k w_k v_k / sum_k w_k` with v_k the share of the criterion's words that are in the answer, and the v_k.

    Raises ValueError if the weights sum to 0 or less. No judge is asked: the words of a criterion name what it wants.
    """
    total = sum(criterion.points for criterion in criteria)
    if total <= 0:
        raise ValueError(f"the points sum to {total:g}; a score needs a sum above 0")
    said = set(_words(answer))
    shares = [_share(_words(criterion.text), said) for criterion in criteria]
    return sum(c.points * share for c, share in zip(criteria, shares, strict=True)) / total, shares


def _pair(facts: Mapping[str, Any]) -> ComparedPair:
    try:
        return ComparedPair.model_validate(facts.get(FACTS))
    except ValidationError as error:
        raise ValueError(f"it belongs to no pair of answers: {error.errors()[0]['msg']}") from error


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _share(wanted: list[str], said: set[str]) -> float:
    return sum(word in said for word in wanted) / len(wanted) if wanted else 0.0
