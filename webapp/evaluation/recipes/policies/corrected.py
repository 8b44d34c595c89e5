"""Corrects a judge's scores by people's grades of some responses, drawn at random (prediction-powered inference)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar

from trainer.config.fields import Section, knob
from trainer.contracts import Example, Verdict
from trainer.contracts.plurals import with_noun
from trainer.metrics.corrected import FEWEST, Corrected, corrected_mean, more_labels
from trainer.metrics.estimate import Estimate
from trainer.rubrics import report_score

from ... import report as r
from ..base import Context, RecipeConfig, tag
from ..grades import graded

if TYPE_CHECKING:
    from .policy import ScoredAnswer

TITLE = "Corrected by people"
NEXT = "to grade next"
Grades = Mapping[tuple[str, str], Mapping[str, bool | None]]
"""(key of the example, text of the response) -> the majority of people's verdicts on its criteria, by their ids; None: evenly split."""


class GradedIn(Section):
    """One round of grading."""

    dataset: int = knob(..., "Its newest version is read", source="datasets", ge=1)


class CorrectedConfig(RecipeConfig):
    """The config of recipes that score responses by a judge. People's grades change no score, so they belong to no benchmark."""

    spared: ClassVar[tuple[str, ...]] = (*RecipeConfig.spared, "graded", "half_width")

    graded: list[GradedIn] = knob(
        [],
        "Datasets in which people have graded some of these responses: those that “Create annotation tasks” made and whose project has "
        "published since, beside the evaluation's own",
        max_length=16,
        advanced=True,
    )
    half_width: float = knob(
        0.05,
        "How exact the score that people correct should be: the report says how many more prompts they should grade for a "
        "95% interval of plus or minus this",
        gt=0,
        le=1,
        advanced=True,
    )


def table(context: Context, by_model: Mapping[str, Sequence["ScoredAnswer"]]) -> Iterator[r.Table]:
    """The table; nothing without a judge. Marks the responses that people should grade next."""
    if not context.config.judge:
        return
    places = list(context.graded([each.dataset for each in context.config.graded]))
    grades = human_grades(example for _, examples in places for example in examples)
    rows, settled = [], set[str]()
    for name, answered in by_model.items():
        columns = _columns(answered, grades)
        found = corrected_mean(columns.people, columns.judge, list(columns.settled.values()))
        wanted = _wanted(found, columns, context.config.half_width)
        settled.update(columns.settled)
        _mark(answered, grades, wanted or 0)
        rows.append(_row(name, found, wanted))
    yield r.table(TITLE, COLUMNS, rows, _note(context.config.half_width, len(settled), [place for place, _ in places]))


CORRECTED, TO_GRADE = 3, 6  # places of cells that others read in a row of the table
COLUMNS = [
    ("Model", ""),
    (
        "By people",
        "mean of the prompts whose responses people have graded and of those that programs decide, each kind by its share of all "
        "prompts; without the judge",
    ),
    ("By the judge", "mean of all prompts by the judge alone; an interval would not cover the judge's errors"),
    (
        "Corrected",
        "the judge's mean of all prompts, moved by how far people and judge are apart where both have graded",
    ),
    ("Correlation", "of people's scores of prompts with the judge's"),
    ("Labels spared", "the part of people's grades that the judge makes unnecessary for the same interval"),
    ("To grade next", "prompts more for the interval that the config wants, drawn at random; leads to their responses"),
]


def human_grades(examples: Iterable[Example]) -> Grades:
    """The grades of the responses; for a response that was graded in several places, the last one."""
    found: dict[tuple[str, str], dict[str, bool | None]] = {}
    for example in examples:
        for each in graded(example):
            found.setdefault((example.key, each.response.text), {})[each.criterion.id] = each.met
    return found


@dataclass(frozen=True)
class ScoreColumns:
    """Mean clipped scores of prompts. `people` (if they have graded all responses) and `judge`: of prompts with something
    to grade. `settled`: by key, of those whose every criterion a program decided."""

    people: list[float | None]
    judge: list[float | None]
    settled: dict[str, float]


def _columns(answered: Sequence["ScoredAnswer"], grades: Grades) -> ScoreColumns:
    """The columns. A settled prompt does not count as graded by people: people and judge never differ there, so it says nothing about their
    distance elsewhere."""
    by_prompt: dict[str, list[ScoredAnswer]] = {}
    for each in answered:
        by_prompt.setdefault(each.key, []).append(each)
    found = ScoreColumns([], [], {})
    for key, rows in by_prompt.items():
        judged = _mean([each.clipped for each in rows])
        if judged is not None and not any(map(_to_grade, rows)):
            found.settled[key] = judged
            continue
        found.people.append(_mean([_by_people(each, grades) for each in rows]))
        found.judge.append(judged)
    return found


def _to_grade(each: "ScoredAnswer") -> list[str]:
    """Ids of the criteria that no program has decided."""
    return [v.criterion_id for v in each.verdicts if v.source != "verifier" or v.met is None]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


def _by_people(each: "ScoredAnswer", grades: Grades) -> float | None:
    """The clipped score with people's verdicts in place of the judge's; None unless they have graded all of those criteria.

    A criterion on which people are evenly split counts half: leaving it out would leave out the hard prompts.
    """
    if each.rubric is None:
        return None
    theirs = grades.get((each.key, each.text), {})
    asked = _to_grade(each)
    if not all(criterion in theirs for criterion in asked):
        return None
    ends = []
    for parted in (False, True):
        words = {name: parted if met is None else met for name, met in theirs.items()}
        verdicts = [
            Verdict(criterion_id=v.criterion_id, met=words[v.criterion_id], source="human")
            if v.criterion_id in asked
            else v
            for v in each.verdicts
        ]
        ends.append(report_score(each.rubric, verdicts).clipped)
    return _mean(ends)


def _wanted(found: Corrected, columns: ScoreColumns, half_width: float) -> int | None:
    """The number of further prompts that the wanted interval needs; without an interval, a first or another batch. None if all prompts
    would not be enough."""
    if found.corrected.low is not None:
        return more_labels(columns.people, columns.judge, half_width, len(columns.settled))
    n = found.corrected.n
    open_ = sum(
        people is None and judge is not None for people, judge in zip(columns.people, columns.judge, strict=True)
    )
    return min(FEWEST - n if n < FEWEST else FEWEST, open_)


def _mark(answered: Sequence["ScoredAnswer"], grades: Grades, count: int) -> None:
    """Marks the responses to grade. The order of the prompts depends only on their keys, so the marked ones are a random part of all, and
    those of one model are among those of another."""
    open_ = {each.key for each in answered if each.rubric and _by_people(each, grades) is None}
    drawn = set(sorted(open_, key=place)[:count])
    for each in answered:
        each.next = each.key in drawn


def place(key: str) -> bytes:
    """The position of a prompt in the order of the draw."""
    return sha256(f"{NEXT}\n{key}".encode()).digest()


def _row(name: str, found: Corrected, wanted: int | None) -> list[r.Cell]:
    mine = tag("model", name)
    why = "" if found.correlation is not None else "people or judge have given too few different scores"
    return [
        r.text(name, mine),
        r.estimate(_within(found.people), mine),
        r.number(found.judge, "share", "the judge has scored no prompt"),
        r.estimate(_within(found.corrected), mine),
        r.number(found.correlation, "number", why),
        r.number(found.spared, "share", why or "people have graded every prompt"),
        r.number(None, why="all prompts would not be enough") if wanted is None else r.count(wanted, mine, NEXT),
    ]


def _within(found: Estimate) -> Estimate:
    """The estimate within 0 and 1: the mean of clipped scores cannot lie outside, which the symmetric interval ignores."""
    if found.value is None or found.low is None or found.high is None:
        return found
    value = min(1.0, max(0.0, found.value))
    return replace(found, value=value, low=max(0.0, found.low), high=min(1.0, found.high))


def _note(half_width: float, settled: int, places: Sequence[str]) -> str:
    known = (
        f"{with_noun(settled, 'prompts')} need no grades, because programs decide all their criteria. "
        if settled
        else ""
    )
    return (
        "Each prompt counts once. The interval holds however wrong the judge is, if the graded prompts were drawn at random: "
        "those “to grade next” are. "
        f"The wanted interval is plus or minus {half_width:.1%}; from "
        f"{with_noun(FEWEST, 'graded prompts')} on there is one. A criterion on which people are evenly split counts half. {known}"
        f"Grades were read from {', '.join(places) or 'no dataset'}."
    )
