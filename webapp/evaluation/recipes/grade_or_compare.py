"""Compares grades by a rubric with comparisons of the same responses: criterion weights that fit the comparisons, and what to collect
next."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import ClassVar

from trainer.config.fields import knob
from trainer.contracts import Example
from trainer.contracts.plurals import with_noun
from trainer.metrics.fused import Fused, Minutes, Preferred, Ranks, fused

from .. import report as r
from .base import Context, FoundCase, NothingToScore, ProjectAnswer, Recipe, RecipeConfig, RecipeOutcome, tag

SCORES = {"rubric": "Rubric", "comparison": "Comparisons", "both": "Both together"}
AGREES = {1.0: "the same", 0.0: "cannot tell", -1.0: "the other way", None: "no score"}
WORDS = {1: "A", 0: "tie", -1: "B"}
MET = {"met": 1.0, "not_met": 0.0}
COLLECT = {
    "grades": "Collect grades next: a minute of grading adds more than a minute of comparing.",
    "comparisons": "Collect comparisons next: a minute of comparing adds more than a minute of grading.",
    "": "Neither adds measurably more for a minute: collect both, and look again.",
}


class GradeOrCompareConfig(RecipeConfig):
    """Reads the present answers of two projects; the dataset has the rubrics and responses of both."""

    tried: ClassVar[tuple[str, ...]] = ("grading", "comparing")

    grading: int = knob(
        ..., "A project in which people grade responses by their rubric", source="projects:grading", ge=1
    )
    comparing: int = knob(
        ..., "A project in which people compare some of the same responses", source="projects:pairwise", ge=1
    )
    ridge: float = knob(
        1.0,
        "How strongly the fitted weights are pulled to the rubric's own points: with small numbers they follow the comparisons, "
        "with large ones the rubric",
        gt=0,
        le=1000,
        advanced=True,
    )


@dataclass
class CollectedLabels:
    """The answers of the two projects about the dataset's prompts. `compared_C` and `said_C` belong together."""

    examples: Mapping[str, Example]
    compared_C: list[Preferred] = field(default_factory=list)
    said_C: list[ProjectAnswer] = field(default_factory=list)
    verdicts: dict[tuple[str, str], dict[str, list[float]]] = field(default_factory=dict)
    seconds: dict[str, dict[str, list[float]]] = field(
        default_factory=lambda: {"grading": defaultdict(list), "comparing": defaultdict(list)}
    )
    raters: dict[str, set[str]] = field(default_factory=lambda: {"grading": set(), "comparing": set()})
    silent: int = 0
    elsewhere: int = 0


def run(context: Context) -> RecipeOutcome:
    data = CollectedLabels({each.key: each for each in context.examples() if each.rubric})
    for each in context.answers(context.config.comparing):
        _compare(data, each)
    for each in context.answers(context.config.grading):
        _grade(data, each)
    if not data.compared_C or not data.verdicts:
        lacks = "compared two responses" if not data.compared_C else "graded a response"
        raise NothingToScore(f"in the chosen project, nobody has {lacks} of this dataset's examples with a rubric")
    grades = {key: {text: mean(met) for text, met in given.items()} for key, given in data.verdicts.items()}
    points = {
        key: {c.text: c.points for c in each.rubric.criteria} for key, each in data.examples.items() if each.rubric
    }
    found = fused(data.compared_C, grades, points, _minutes(data), context.config.ridge)
    report = r.Report(
        headline=r.headline("Gain per minute: grades minus comparisons", _cell(found.difference, "both")),
        coverage=_coverage(data, found),
        blocks=[_scores(found), _next(found), *_weights(found)],
        notes=[COLLECT[found.collect]] if found.difference.value is not None else [],
    )
    return RecipeOutcome(report, list(_cases(data, found)))


def _same(data: CollectedLabels, said: ProjectAnswer, sides: Sequence[str]) -> bool:
    """Whether the answer is about the texts in the dataset: a response may have been changed since."""
    example = data.examples.get(said.example)
    texts = {each.id: each.text for each in example.responses} if example else {}
    return all(side in texts and texts[side] == said.texts.get(side) for side in sides)


def _compare(data: CollectedLabels, said: ProjectAnswer) -> None:
    one, two = str(said.subject.get("a")), str(said.subject.get("b"))
    if not _same(data, said, (one, two)):
        data.elsewhere += 1
        return
    data.seconds["comparing"][said.example].append(said.seconds)
    data.raters["comparing"].add(said.rater)
    strength = said.content.get("strength")
    if strength is None:
        data.silent += 1
        return
    data.compared_C.append(Preferred(said.example, one, two, (strength < 0) - (strength > 0)))
    data.said_C.append(said)


def _grade(data: CollectedLabels, said: ProjectAnswer) -> None:
    side = str(said.subject.get("response"))
    if not _same(data, said, (side,)):
        data.elsewhere += 1
        return
    data.seconds["grading"][said.example].append(said.seconds)
    data.raters["grading"].add(said.rater)
    rubric = data.examples[said.example].rubric
    texts = {each.id: each.text for each in rubric.criteria} if rubric else {}
    given = data.verdicts.setdefault((said.example, side), {})
    for grade in said.content["grades"]:
        if grade["verdict"] in MET and grade["criterion"] in texts:
            given.setdefault(texts[grade["criterion"]], []).append(MET[grade["verdict"]])


def _minutes(data: CollectedLabels) -> dict[str, Minutes]:
    """The minutes of each prompt. A prompt with an answer whose time was not measured has no time."""

    def spent(what: str, key: str) -> float | None:
        seconds = data.seconds[what].get(key, [])
        return sum(seconds) / 60 if seconds and all(each > 0 for each in seconds) else None

    return {key: Minutes(spent("grading", key), spent("comparing", key)) for key in data.examples}


def _cell(found: object, score: str) -> r.Cell:
    return r.estimate(found, _known(score), unit="number")


def _known(score: str) -> str:
    return tag(score, "has a score")


def _coverage(data: CollectedLabels, found: Fused) -> list[tuple[str, r.Cell]]:
    ties = sum(each.outcome == 0 for each in data.compared_C)
    ungraded = sum(not _graded(data, each) for each in data.compared_C)
    alone = sum(
        comparison is None and each.outcome != 0
        for each, (_, comparison, _) in zip(data.compared_C, found.agrees_C, strict=True)
    )
    return [
        ("Comparisons", r.count(len(data.compared_C))),
        ("Responses with grades", r.number(len(data.verdicts), "count")),
        ("People who compared", r.number(len(data.raters["comparing"]), "count")),
        ("People who graded", r.number(len(data.raters["grading"]), "count")),
        ("Ties, which rank nothing", r.count(ties, "tie")),
        ("With a side without grades", r.count(ungraded, "not graded", tone="warn" if ungraded else "")),
        ("With a response that no other comparison has", r.count(alone, "alone", tone="warn" if alone else "")),
        ("Without a choice", r.number(data.silent, "count")),
        *([("About other texts", r.number(data.elsewhere, "count"))] if data.elsewhere else []),
    ]


def _graded(data: CollectedLabels, each: Preferred) -> bool:
    return (each.prompt, each.first) in data.verdicts and (each.prompt, each.second) in data.verdicts


def _scores(found: Fused) -> r.Table:
    ranks: Mapping[str, Ranks] = {"rubric": found.rubric, "comparison": found.comparison, "both": found.fused}
    rows = [
        [
            r.text(SCORES[name], _known(name)),
            _cell(each.tau, name),
            _cell(each.minutes, name),
            _cell(each.per_minute, name),
        ]
        for name, each in ranks.items()
    ]
    columns = [
        ("Score", ""),
        (
            "Rank correlation",
            "Kendall's tau with comparisons that the score has not seen: 1 the same order, 0 none, -1 the other way round",
        ),
        ("Minutes per prompt", "people's time behind the score, without the comparison that it is tested on"),
        ("Per minute", "rank correlation divided by minutes per prompt"),
    ]
    note = (
        "Rubric: met points over positive points, by the share of people. Comparisons: Bradley-Terry strength from a prompt's other "
        "comparisons. Both: a logistic regression on differences of the two and of each criterion, fitted to other prompts. "
        "Intervals resample prompts."
    )
    return r.table("Grades, comparisons and both", columns, rows, note)


def _next(found: Fused) -> r.Table:
    rows = [
        [r.text("More grades", _known("both")), _cell(found.more_grades, "both")],
        [r.text("More comparisons", _known("both")), _cell(found.more_comparisons, "both")],
        [r.text("Difference", _known("both")), _cell(found.difference, "both")],
    ]
    columns = [
        ("Collect", ""),
        ("Gain per minute", "how much rank correlation it adds to the other, per minute of its own time"),
    ]
    note = COLLECT[found.collect] if found.difference.value is not None else ""
    return r.table("Data to collect next", columns, rows, note)


def _weights(found: Fused) -> Iterator[r.Table]:
    rows = [
        [
            r.text(each.criterion, tag("criterion", each.criterion)),
            r.number(each.points, "points"),
            r.estimate(each.weight, tag("criterion", each.criterion), unit="number"),
        ]
        for each in found.weights
    ]
    left_out = with_noun(found.weights_left_out, "further criteria") if found.weights_left_out else ""
    note = "Criteria that occur in only one prompt keep their points, because no other prompt says anything about them."
    if rows:
        columns = [
            ("Criterion", ""),
            ("Points", "the rubric's, mean over prompts"),
            ("Weight", "log odds of being preferred that meeting it adds, fitted to the comparisons; below 0 it costs"),
        ]
        yield r.table("Criterion weights", columns, rows, f"{note} {left_out} left out." if left_out else note)


def _cases(data: CollectedLabels, found: Fused) -> Iterator[FoundCase]:
    for each, said, agrees in zip(data.compared_C, data.said_C, found.agrees_C, strict=True):
        example = data.examples[each.prompt]
        by_score = dict(zip(SCORES, agrees, strict=True))
        tags = [tag("rater", said.rater), f"people: {WORDS[each.outcome]}"]
        tags += [
            name
            for name, value in by_score.items()
            if value is not None
            for name in (_known(name), tag(name, AGREES[value]))
        ]
        tags += ["tie"] if each.outcome == 0 else ["alone"] if by_score["comparison"] is None else []
        tags += [] if _graded(data, each) else ["not graded"]
        tags += [tag("criterion", text) for text in _apart(data, each)]
        tags += [tag("domain", example.domain)] if example.domain else []
        subject = {"example": each.prompt, "rater": said.rater, "a": each.first, "b": each.second}
        values = {"people": WORDS[each.outcome], "seconds": said.seconds, "verdicts": []}
        values |= {SCORES[name].lower(): AGREES[value] for name, value in by_score.items()}
        yield FoundCase(subject, values, list(dict.fromkeys(tags)))


def _apart(data: CollectedLabels, each: Preferred) -> Iterable[str]:
    """The criteria in which the two responses differ."""
    one, two = (data.verdicts.get((each.prompt, side), {}) for side in (each.first, each.second))
    return [text for text, met in one.items() if text in two and mean(met) != mean(two[text])]


RECIPE = Recipe(
    name="grade_or_compare",
    title="Rubric or comparison",
    question="Should people grade by the rubric or compare responses next?",
    summary="People graded and compared the same responses: weights of criteria that fit the comparisons, how well each of the two ranks per minute of their time.",
    icon="git-compare",
    schema=GradeOrCompareConfig,
    run=run,
    measure="Gain per minute",
)
