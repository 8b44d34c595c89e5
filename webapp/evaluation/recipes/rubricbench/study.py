"""A study of rubrics with people (RubricBench, 2025): do they judge better by the human rubric or by the model's?"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean
from typing import Any, ClassVar

from trainer.config.fields import knob
from trainer.metrics.compare import keyed_difference
from trainer.metrics.estimate import Estimate, bootstrap_mean, bootstrap_ratio

from ... import report as r
from ..base import Context, FoundCase, NothingToScore, Recipe, RecipeConfig, RecipeOutcome, StudyJudgement, tag
from ..pairs import FirstComparison, pair_of

HUMAN, OWN = "human", "own"
ARMS = {HUMAN: "Human rubric", OWN: "Model's rubric"}
WORDS = {-1: "A", 0: "tie", 1: "B", None: None}
MOST_PEOPLE = 30


class StudyConfig(RecipeConfig):
    """Reads the present answers of a study's project; the dataset holds the labels."""

    tried: ClassVar[tuple[str, ...]] = ("project",)

    project: int = knob(..., "A project made from a RubricBench evaluation", source="studies", ge=1)


@dataclass(frozen=True)
class PersonVerdict:
    """One person's verdict on one pair under one arm, in the frame of the pair's label."""

    pair: FirstComparison
    given: StudyJudgement
    side: int | None

    @property
    def right(self) -> bool:
        return self.side == self.pair.label


Rows = Sequence[PersonVerdict]


def run(context: Context) -> RecipeOutcome:
    pairs = {pair.key: pair for each in context.examples() if (pair := pair_of(each)) and pair.label}
    judged, unknown = _judged(context, pairs)
    if not judged:
        raise NothingToScore(
            "this project has no answer about a pair of this dataset whose label prefers one of the two responses"
        )
    by_arm = {arm: [each for each in judged if each.given.arm == arm] for arm in ARMS}
    difference = _difference(by_arm)
    report = r.Report(
        headline=r.headline("Human rubric minus the model's", r.estimate(difference, "both arms", unit="gap")),
        coverage=_coverage(judged, pairs, unknown),
        blocks=[_arms(by_arm), *_split("domain", by_arm, _domain), *_people(by_arm)],
    )
    both = _both(by_arm)
    return RecipeOutcome(report, [_case(each, both) for each in judged])


def _judged(context: Context, pairs: Mapping[str, FirstComparison]) -> tuple[list[PersonVerdict], int]:
    """The answers about pairs with a label, and how many are about others."""
    found, unknown = [], 0
    for given in context.study(context.config.project):
        pair = pairs.get(given.example)
        if pair is None or {given.a, given.b} != {pair.a.id, pair.b.id}:
            unknown += 1
            continue
        turned = given.side if given.side is None or given.a == pair.a.id else -given.side
        found.append(PersonVerdict(pair, given, turned))
    return found, unknown


def _accuracy(rows: Rows) -> Estimate:
    """Share of right answers; a tie or no verdict is wrong. The answers to one pair are resampled together."""
    right = [float(each.right) for each in rows]
    absent = sum(each.side is None for each in rows)
    keys = [each.pair.key for each in rows]
    return bootstrap_ratio(
        right, [1.0] * len(right), clusters=keys, missing=absent, empty="nobody has answered", share=True
    )


def _by_pair(rows: Rows) -> dict[str, float]:
    found: dict[str, list[bool]] = defaultdict(list)
    for each in rows:
        found[each.pair.key].append(each.right)
    return {key: mean(right) for key, right in found.items()}


def _difference(by_arm: Mapping[str, Rows]) -> Estimate:
    """Mean over pairs judged in both arms; pairs of one arm alone are missing."""
    return keyed_difference(_by_pair(by_arm[OWN]), _by_pair(by_arm[HUMAN]))


def _both(by_arm: Mapping[str, Rows]) -> set[str]:
    return {each.pair.key for each in by_arm[HUMAN]} & {each.pair.key for each in by_arm[OWN]}


def _coverage(judged: Rows, pairs: Mapping[str, FirstComparison], unknown: int) -> list[tuple[str, r.Cell]]:
    both = {arm: {each.pair.key for each in judged if each.given.arm == arm} for arm in ARMS}
    silent = sum(each.side is None for each in judged)
    one = both[HUMAN] ^ both[OWN]
    return [
        ("Answers", r.count(len(judged))),
        ("People", r.count(len({each.given.rater for each in judged}))),
        ("Pairs in both arms", r.count(len(both[HUMAN] & both[OWN]), "both arms")),
        ("In one arm only", r.count(len(one), "one arm", tone="warn" if one else "")),
        ("Not judged yet", r.number(len(pairs.keys() - both[HUMAN] - both[OWN]), "count")),
        ("Could not be assessed", r.count(silent, "no verdict", tone="warn" if silent else "")),
        *([("About other pairs", r.number(unknown, "count"))] if unknown else []),
    ]


def _arms(by_arm: Mapping[str, Rows]) -> r.Table:
    rows = []
    for arm, title in ARMS.items():
        mine, answers = tag("arm", arm), by_arm[arm]
        cells = [r.text(title, mine), r.count(len(answers), mine)]
        cells += [r.estimate(_accuracy(answers), mine, "wrong")]
        cells += [r.count(sum(each.side == 0 for each in answers), mine, "tie")]
        cells += [r.count(sum(each.side is None for each in answers), mine, "no verdict")]
        seconds = [each.given.seconds for each in answers if each.given.seconds > 0]
        spent = bootstrap_mean(seconds, len(answers) - len(seconds), "no time was measured")
        rows.append([*cells, r.estimate(_same(answers), mine), r.estimate(spent, mine, unit="seconds")])
    difference = r.estimate(_difference(by_arm), "both arms", unit="gap")
    nothing = r.number(None, why="of two arms")
    rows.append([r.text("Difference, pair by pair", "both arms"), nothing, difference, *[nothing] * 4])
    columns = [
        ("Arm", ""),
        ("Answers", ""),
        ("Accuracy", "answers that agree with the label; a tie or no verdict is wrong"),
        ("Ties", ""),
        ("No verdict", "could not be assessed"),
        ("Two people agree", "of pairs with two answers or more in this arm"),
        ("Time", "mean seconds per answer, as the page measured them"),
    ]
    note = "Nobody saw a pair under both rubrics. The answers to one pair are resampled together."
    return r.Table("People with either rubric", columns, rows, note)


def _same(rows: Rows) -> Estimate:
    sides: dict[str, list[int]] = defaultdict(list)
    for each in rows:
        if each.side is not None:
            sides[each.pair.key].append(each.side)
    two = [list(combinations(found, 2)) for found in sides.values() if len(found) > 1]
    shares = [mean(a == b for a, b in each) for each in two]
    return bootstrap_mean(shares, len(sides) - len(shares), "no pair has two answers in this arm", share=True)


def _domain(each: PersonVerdict) -> str:
    return each.pair.example.domain


def _split(kind: str, by_arm: Mapping[str, Rows], of: Callable[[PersonVerdict], str]) -> Iterator[r.Table]:
    values = sorted({of(each) for rows in by_arm.values() for each in rows} - {""})
    if len(values) > 1:
        rows = [_row(value, tag(kind, value), by_arm, of) for value in values]
        yield r.table(f"Accuracy by {kind}", [kind.capitalize(), *ARMS.values(), "Difference"], rows)


def _people(by_arm: Mapping[str, Rows]) -> Iterator[r.Table]:
    people = sorted({each.given.rater for rows in by_arm.values() for each in rows})
    if 1 < len(people) <= MOST_PEOPLE:
        rows = [_row(rater, tag("rater", rater), by_arm, lambda each: each.given.rater)[:-1] for rater in people]
        yield r.table("Each person in either arm", ["Person", *ARMS.values()], rows, "On different pairs in each arm.")


def _row(value: str, mine: str, by_arm: Mapping[str, Rows], of: Callable[[PersonVerdict], str]) -> list[r.Cell]:
    kept = {arm: [each for each in rows if of(each) == value] for arm, rows in by_arm.items()}
    cells = [r.estimate(_accuracy(rows), mine, tag("arm", arm), "wrong") for arm, rows in kept.items()]
    return [r.text(value, mine), *cells, r.estimate(_difference(kept), mine, "both arms", unit="gap")]


def _case(each: PersonVerdict, both: set[str]) -> FoundCase:
    given = each.given
    tags = [tag("arm", given.arm), tag("rater", given.rater), "right" if each.right else "wrong"]
    tags += ["both arms" if each.pair.key in both else "one arm"]
    tags += ["no verdict"] if each.side is None else ["tie"] if each.side == 0 else []
    tags += [tag("domain", each.pair.example.domain)] if each.pair.example.domain else []
    subject = {"example": each.pair.key, "arm": ARMS[given.arm], "rater": given.rater}
    subject |= {"a": each.pair.a.id, "b": each.pair.b.id}
    values: dict[str, Any] = {"label": WORDS[each.pair.label], "verdict": WORDS[each.side], "seconds": given.seconds}
    return FoundCase(subject, values | {"rubric": list(given.rubric), "verdicts": []}, tags)


RECIPE = Recipe(
    name="study",
    title="Rubric study",
    question="Do people judge better by the human rubric or by the model's?",
    summary="People judged the same pairs in two arms, by either rubric, nobody by both: accuracy of each and the paired difference.",
    icon="users",
    schema=StudyConfig,
    run=run,
    measure="Human rubric minus the model's",
)
