"""Parts of the reward of a rubric writer: whether its rubric ranks two answers as people do, is good, and has its form.

By MaMs (2026) and Rubric-ARM (2026). A rubric that cannot be read is the writer's failure and has a value. An answer of a judge that
cannot be read is not the writer's failure: the rubric is left out.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np

from trainer.config.rewards.writer import (
    RubricChoicePart,
    RubricFormPart,
    RubricPreferencePart,
    RubricQualityPart,
    RubricRecallPart,
)
from trainer.contracts import Criterion
from trainer.judges import combine
from trainer.judges.inputs import JudgeInput
from trainer.rubrics.score import likert_score

from ..arm import writer_reward
from ..guard import measure_each
from ..mams import preference_reward
from ..parts import Item, Part, RewardAnswer, Services, Usage
from ..reason_matching import Floats
from ..written_rubrics import Writing, words_score, writing_of
from .judge_answers import explained, finished, problem_of, told, usage_of
from .matching import Compared, Matched, match_lists

_UNREAD = -1.0
SAME = 0.5  # a score above it says that two items are the same check, for every matcher
_BEST = 4  # points for the quality of a rubric, at most
_TOLD = 3  # problems that the reason names
_WORDS = {-1: "A", 0: "tie", 1: "B"}
Grades = Mapping[str, float | None]
"""The value of each criterion for an answer, in [0, 1]; None is missing."""


async def preference(part: RubricPreferencePart, items: Sequence[Item], services: Services) -> list[Part]:
    """`R_pref`: 1 if S(preferred) > S(other), else -1; a rubric that cannot be read has -1 (MaMs).

    `shown`: the two scores, and the value of each criterion for each answer.
    """
    if part.by == "words":
        return await measure_each(items, lambda item: _by_words(writing_of(item, part.form)))
    writings = [writing_of(item, part.form) for item in items]
    faults = [writing.fault or (writing.weightless if part.by == "likert" else "") for writing in writings]
    said = await _asked(part.judge, items, writings, services, _on_both, faults)
    return [
        Part(_UNREAD, fault) if answers is None else _graded(part.by, writing, answers)
        for writing, fault, answers in zip(writings, faults, said, strict=True)
    ]


async def choice(part: RubricChoicePart, items: Sequence[Item], services: Services) -> list[Part]:
    """`1[o = o*]`, eq. (8) of Rubric-ARM: a tie, also of two orders that disagree, is not right; nor is a rubric that
    cannot be read."""
    writings = [writing_of(item, part.form) for item in items]
    said = await _asked(part.judge, items, writings, services, _as_pair)
    return [
        Part(0.0, writing.fault) if answers is None else _chosen(writing, answers)
        for writing, answers in zip(writings, said, strict=True)
    ]


async def quality(part: RubricQualityPart, items: Sequence[Item], services: Services) -> list[Part]:
    """`R_llm`, 0 to 4: the mean over the votes that can be read; 0 for a rubric that cannot (MaMs)."""
    if part.words:
        return await measure_each(items, lambda item: _counted(writing_of(item, part.form), part.words))
    writings = [writing_of(item, part.form) for item in items]
    said = await _asked(part.judge, items, writings, services, _alone)
    return [
        Part(0.0, writing.fault) if answers is None else _rated(answers)
        for writing, answers in zip(writings, said, strict=True)
    ]


async def form(part: RubricFormPart, items: Sequence[Item], services: Services) -> list[Part]:
    """`R_fmt`: 0 if the rubric has its form, else -1. `shown`: the problems, and how much could be read."""
    return await measure_each(items, lambda item: _form(writing_of(item, part.form)))


async def recall(part: RubricRecallPart, items: Sequence[Item], services: Services) -> list[Part]:
    """Matched human criteria over all of them (RubricBench). `shown`: both rubrics, and which items of the two
    say the same, many to many."""
    writings = [writing_of(item, part.form) for item in items]
    both = [place for place, writing in enumerate(writings) if writing.criteria and writing.pair.human]
    lists = [_lists(items[place], writings[place]) for place in both]
    found = dict(zip(both, await match_lists(part, "items", lists, services), strict=True))
    return [_recalled(writing, found.get(place)) for place, writing in enumerate(writings)]


async def _asked(
    judge: str,
    items: Sequence[Item],
    writings: Sequence[Writing],
    services: Services,
    question: Callable[[Item, Writing], JudgeInput],
    faults: Sequence[str] = (),
) -> list[list[RewardAnswer] | None]:
    """The judge's answer about each rubric; None if the rubric has a fault, because then there is nothing to ask about."""
    known = faults or [writing.fault for writing in writings]
    places = [place for place, fault in enumerate(known) if not fault]
    if not places:
        return [None] * len(items)
    asking: Awaitable[list[list[RewardAnswer]]] = services.judges[judge].ask(
        [question(items[place], writings[place]) for place in places]
    )
    said = dict(zip(places, await asking, strict=True))
    return [said.get(place) for place in range(len(items))]


def matched(scores_HM: Floats) -> list[tuple[int, int]]:
    """(written, human) of all items that are the same check for the matcher. An item may match several."""
    return [(int(k), int(j)) for j, k in np.argwhere(scores_HM > SAME)]


def _lists(item: Item, writing: Writing) -> Compared:
    """People's criteria, and the written criteria."""
    pair = writing.pair
    human, written = ([criterion.text for criterion in each] for each in (pair.human, writing.criteria))
    return Compared(item.place, pair.example, pair.conversation, human, written)


def _on_both(item: Item, writing: Writing) -> JudgeInput:
    """Both answers, each by itself: a judge that scores one does not see the other."""
    pair = writing.pair
    return _question(item, writing, {side.id: side.text for side in (pair.chosen, pair.rejected)})


def _as_pair(item: Item, writing: Writing) -> JudgeInput:
    return _question(item, writing, writing.pair.ordered)


def _alone(item: Item, writing: Writing) -> JudgeInput:
    return _question(item, writing, {})


def _question(item: Item, writing: Writing, responses: Mapping[str, str]) -> JudgeInput:
    pair = writing.pair
    return JudgeInput(
        example=pair.example,
        conversation=pair.conversation,
        responses=responses,
        criteria=writing.criteria,
        reference=pair.reference,
        subject={"place": item.place},
    )


def _by_words(writing: Writing) -> Part:
    if fault := writing.fault or writing.weightless:
        return Part(_UNREAD, fault)
    ids = [criterion.id for criterion in writing.criteria]
    chosen, its_shares = words_score(writing.criteria, writing.pair.chosen.text)
    rejected, other_shares = words_score(writing.criteria, writing.pair.rejected.text)
    grades = [dict(zip(ids, shares, strict=True)) for shares in (its_shares, other_shares)]
    return _ranked(chosen, rejected, grades)


def _graded(by: str, writing: Writing, said: Sequence[RewardAnswer]) -> Part:
    """R_pref from a judge's ratings or verdicts. It is missing if one of them is missing for one of the answers."""
    grade = _ratings if by == "likert" else _verdicts
    found = grade(writing, [answer for answer in said if "response" in answer.subject])
    grades = [found.get(side.id, {}) for side in (writing.pair.chosen, writing.pair.rejected)]
    chosen, rejected = (_score(by, writing, each_grade) for each_grade in grades)
    if chosen is not None and rejected is not None:
        return finished(_ranked(chosen, rejected, grades)._replace(usage=usage_of(said)), said)
    lacking = "the preferred answer" if chosen is None else "the other answer"
    why = f"no score of {lacking}: {problem_of(said)}"
    return finished(Part(None, why, _shown(chosen, rejected, grades), usage=usage_of(said)), said)


def _ratings(writing: Writing, said: Sequence[RewardAnswer]) -> dict[str, Grades]:
    found = combine.criterion_ratings(said)
    return {
        response: {name: None if rating is None else (rating - 1) / 9 for name, rating in ratings.items()}
        for (_, response), ratings in found.items()
    }


def _verdicts(writing: Writing, said: Sequence[RewardAnswer]) -> dict[str, Grades]:
    found = combine.criterion_verdicts(said)
    return {
        response: {verdict.criterion_id: None if verdict.met is None else float(verdict.met) for verdict in verdicts}
        for (_, response), verdicts in found.items()
    }


def _score(by: str, writing: Writing, grades: Grades) -> float | None:
    """S of one answer: from ratings as in MaMs, from verdicts as points met over positive points."""
    values = [grades.get(criterion.id) for criterion in writing.criteria]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    points = [criterion.points for criterion in writing.criteria]
    if by == "likert":
        return likert_score(points, [1 + 9 * value for value in known])
    positive = sum(point for point in points if point > 0)
    return sum(point * value for point, value in zip(points, known, strict=True)) / positive


def _ranked(chosen: float, rejected: float, grades: Sequence[Grades]) -> Part:
    words = "above" if chosen > rejected else "below" if chosen < rejected else "level with"
    why = f"the preferred answer scores {chosen:.3g}, {words} the other's {rejected:.3g}"
    return Part(preference_reward(chosen, rejected), why, _shown(chosen, rejected, grades))


def _shown(chosen: float | None, rejected: float | None, grades: Sequence[Grades]) -> dict[str, Any]:
    return {"scores": [chosen, rejected], "grades": [dict(each_grade) for each_grade in grades]}


def _chosen(writing: Writing, said: Sequence[RewardAnswer]) -> Part:
    answered = [answer for answer in said if "order" in answer.subject]
    pair = next(iter(combine.pair_verdicts(answered).values()), None)
    verdict = None if pair is None or pair.verdict is None else _WORDS[pair.verdict]
    label = "A" if writing.pair.first == "chosen" else "B"
    shown, usage = {"answers": told(said), "verdict": verdict, "label": label}, usage_of(said)
    value = writer_reward(verdict, label)
    if value is None:
        return finished(Part(None, problem_of(said), shown, usage=usage), said)
    why = "it chose the preferred answer" if value else "it called a tie" if verdict == "tie" else "it chose the other"
    if pair is not None and pair.consistent is False:
        why = "its two orders disagree"
    return finished(Part(value, why, shown, usage=usage), said)


def _rated(said: Sequence[RewardAnswer]) -> Part:
    scores = [float(answer.parsed["score"]) for answer in said if answer.parsed is not None]
    shown, usage = {"answers": told(said)}, usage_of(said)
    if not scores:
        return finished(Part(None, problem_of(said), shown, usage=usage), said)
    return finished(Part(sum(scores) / len(scores), explained(said), shown, usage=usage), said)


def _counted(writing: Writing, words: Sequence[str]) -> Part:
    """A point for each criterion that is one of the words. A word that is said twice counts once."""
    if writing.fault:
        return Part(0.0, writing.fault)
    said = {criterion.text for criterion in writing.criteria} & set(words)
    return Part(float(min(len(said), _BEST)), f"criteria that count: {', '.join(sorted(said)) or 'none'}")


def _form(writing: Writing) -> Part:
    read = writing.read
    shown = {"problems": list(read.problems), "notes": list(read.notes), "criteria": len(writing.criteria)}
    shown["readable"] = not writing.fault
    return Part(0.0 if read.ok else -1.0, "; ".join(read.problems[:_TOLD]), shown)


def _recalled(writing: Writing, found: Matched | None) -> Part:
    human = writing.pair.human
    matches: list[tuple[int, int]] | None = []
    if found is not None:
        matches = None if found.scores_HM is None else matched(found.scores_HM)
    shown = {
        "written": [_criterion(criterion) for criterion in writing.criteria],
        "human": [_criterion(criterion) for criterion in human],
        "matches": None if matches is None else [list(match) for match in matches],
    }
    if not human:
        return Part(None, "people have written no rubric for it", shown)
    if matches is None and found is not None:
        return found.unmatched(shown)
    usage = usage_of(found.said) if found is not None else Usage()
    return Part(len({j for _, j in matches or ()}) / len(human), "", shown, usage=usage)


def _criterion(criterion: Criterion) -> dict[str, Any]:
    return criterion.model_dump(mode="json", include={"text", "points", "kind", "importance"})
