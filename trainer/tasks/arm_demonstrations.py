"""Demonstrations of the two roles of recipe `alternating`, from what people wrote: rubrics for the writer and, for the judge,
the reasons for a choice, criterion by criterion. Torch-free.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainer.config.recipes.alternating import AlternatingConfig, Role
from trainer.contracts import Criterion, Example, Message
from trainer.contracts.example import Reason
from trainer.contracts.human_grades import human_grades
from trainer.contracts.pairs import LabelledPair, labelled_pairs, siding_reasons
from trainer.judges.rubric_forms import read_rubric
from trainer.judges.rubric_printing import Unwritable, in_order, items_of, turned, write_rubric
from trainer.rewards.judgement_printing import Handled, Reasoned, write_judgement
from trainer.rewards.reason_matching import WordsMatcher
from trainer.rewards.rubric_judgements import label, question
from trainer.rewards.written_rubrics import FACTS, ComparedPair

from .arm import ArmWriting
from .base import question_key

NO_RUBRIC = "people wrote no rubric"
FEW_OR_MANY = "their rubric has fewer criteria than data.min_items, or more than data.max_items"
NO_REASONS = "no reasons were given for the answer that was preferred"
SOME_WITHOUT = "a criterion of the rubric has no reason"
NO_GRADES = "form `touchstone` says of both answers which criteria they meet, and people have not graded all of them, or are split"
UNWRITABLE = "the form cannot say it"
_NAMED = re.compile(r"criterion\s+(\d{1,4})\s*[:.)]\s*(\S.*)", re.I | re.S)


@dataclass(frozen=True)
class Demonstrated:
    """A question of a role, and the answer in people's own words."""

    key: str
    asked: tuple[Message, ...]
    text: str


class Missing(ValueError):
    """The reason why there is no demonstration."""


class ArmDemonstrations:
    """Makes one rubric for a prompt, and one judgement for a pair with a winner."""

    def __init__(self, config: AlternatingConfig) -> None:
        self._config, self._writing = config, ArmWriting(config)

    def of(self, role: Role, example: Example) -> Iterator[Demonstrated | str]:
        """The demonstrations of an example. A text says why a part of the example is not a demonstration."""
        yield from self._rubrics(example) if role == "writer" else self._judgements(example)

    def _rubrics(self, example: Example) -> Iterator[Demonstrated | str]:
        """The rubric of a prompt; nothing for a prompt without a pair, because the run asks nothing about it."""
        posed = next((each for each in self._writing.pose(example, False) if not isinstance(each, str)), None)
        if posed is None:
            return
        try:
            text, _ = self._rubric(example)
        except Missing as why:
            yield str(why)
            return
        yield Demonstrated(question_key(f"{example.key} · its rubric"), posed.example.prompt, text)

    def _judgements(self, example: Example) -> Iterator[Demonstrated | str]:
        pairs = {(pair.first, pair.second): pair for pair in labelled_pairs(example, self._config.data.scale)}
        for posed in self._writing.pose(example, False):
            if isinstance(posed, str):
                continue
            compared = ComparedPair.model_validate(posed.facts[FACTS])
            sides = {compared.chosen.id, compared.rejected.id}
            pair = next(pair for key, pair in pairs.items() if set(key) == sides)
            try:
                text, criteria = self._judgement(example, pair, compared)
            except Missing as why:
                yield str(why)
                continue
            asked = question(compared, criteria, self._config.data.judgement)
            yield Demonstrated(question_key(f"{posed.example.key} · by people's rubric"), asked, text)

    def _rubric(self, example: Example) -> tuple[str, tuple[Criterion, ...]]:
        """The text of the rubric, and its criteria in the judge's form. Raises Missing."""
        data = self._config.data
        if example.rubric is None:
            raise Missing(NO_RUBRIC)
        if not data.min_items <= len(example.rubric.criteria) <= data.max_items:
            raise Missing(FEW_OR_MANY)
        try:
            text = write_rubric(items_of(example.rubric.criteria, data.form), data.form)
        except Unwritable as why:
            raise Missing(UNWRITABLE) from why
        criteria = read_rubric(text, data.form).criteria
        if len(criteria) != len(example.rubric.criteria):
            raise Missing(UNWRITABLE)
        return text, criteria

    def _judgement(
        self, example: Example, pair: LabelledPair, compared: ComparedPair
    ) -> tuple[str, tuple[Criterion, ...]]:
        """The text of the judgement, and the criteria that it follows. Raises Missing."""
        _, criteria = self._rubric(example)
        reasons = [each for each in siding_reasons(example, pair) if each.text.strip()]
        if not reasons:
            raise Missing(NO_REASONS)
        by_criterion = reasons_of(reasons, [each.text for each in criteria])
        if not all(by_criterion):
            raise Missing(SOME_WITHOUT)
        first, second = compared.ordered
        met = self._met(example, (first, second))
        handled = tuple(
            Handled(_said(about, first), _said(about, second), *met[place]) for place, about in enumerate(by_criterion)
        )
        justification = " ".join(dict.fromkeys(_without_name(each.text) for each in reasons))
        try:
            return write_judgement(
                Reasoned(handled, justification, label(compared)), self._config.data.judgement
            ), criteria
        except Unwritable as why:
            raise Missing(UNWRITABLE) from why

    def _met(self, example: Example, sides: Sequence[str]) -> list[tuple[bool | None, bool | None]]:
        """For each criterion, in the order of the written rubric, whether each side meets it, in its written sense. Raises Missing if the
        form needs this and it is not known.
        """
        form, rubric = self._config.data.form, example.rubric
        assert rubric is not None  # noqa: S101 - for the types: it was written before
        if self._config.data.judgement == "rubric_arm":
            return [(None, None)] * len(rubric.criteria)
        votes = _votes(example)
        found: list[tuple[bool | None, bool | None]] = []
        for criterion in in_order(rubric.criteria, form):
            said = [_most(votes.get((side, criterion.id), Counter())) for side in sides]
            if None in said:
                raise Missing(NO_GRADES)
            first, second = (bool(each) != turned(criterion, form) for each in said)
            found.append((first, second))
        return found


def reasons_of(reasons: Sequence[Reason], criteria: Sequence[str]) -> list[list[Reason]]:
    """For each criterion the reasons about it.

    A reason that begins with "Criterion 2:" is about the second criterion. Any other is about the criterion with which it shares most
    words, the earlier of equals, and about none if it shares none. If a rubric has one criterion, all reasons are about it.
    """
    found: list[list[Reason]] = [[] for _ in criteria]
    if len(criteria) == 1:
        return [list(reasons)]
    (scores_RC,) = WordsMatcher().scores([([each.text for each in reasons], list(criteria))], "reasons")
    for reason, scores_C in zip(reasons, scores_RC, strict=True):
        if named := _NAMED.fullmatch(reason.text.strip()):
            if 1 <= int(named[1]) <= len(criteria):
                found[int(named[1]) - 1].append(reason)
        elif scores_C.max() > 0:
            found[int(scores_C.argmax())].append(reason)
    return found


def _said(about: Sequence[Reason], side: str) -> str:
    """The reasons about a criterion that are about this answer; if there are none, those about the comparison; else all, because they
    are about both answers.
    """
    own = [each for each in about if each.response == side] or [each for each in about if each.response is None]
    return " ".join(dict.fromkeys(_without_name(each.text) for each in own or about))


def _without_name(text: str) -> str:
    named = _NAMED.fullmatch(text.strip())
    return named[2] if named else text.strip()


def _votes(example: Example) -> Mapping[tuple[str, str], Counter[bool]]:
    found: dict[tuple[str, str], Counter[bool]] = {}
    for _, response, criterion, met in human_grades(example.meta):
        found.setdefault((response, criterion), Counter())[met] += 1
    return found


def _most(votes: Counter[bool]) -> bool | None:
    return None if votes[True] == votes[False] else votes[True] > votes[False]
