"""Criterion audit: does a judge decide single criteria as people do?"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from trainer.config.errors import FieldProblem
from trainer.config.fields import Section, knob
from trainer.contracts import Example
from trainer.contracts.plurals import with_noun
from trainer.judges.combine import criterion_verdicts
from trainer.judges.inputs import JudgeInput
from trainer.metrics.audit import HumanRange, human_range
from trainer.metrics.compare import mcnemar, paired_difference
from trainer.metrics.criteria import MET, NOT_MET, Agreement, agreement

from ... import report as r
from ..base import (
    Context,
    FoundCase,
    NothingToScore,
    Recipe,
    RecipeConfig,
    RecipeOutcome,
    StoredCase,
    listed_twice,
    tag,
)
from ..grades import Graded, graded
from .blocks import ALONE, DISAGREE, SEVERAL, against, beside_people, disagreement, human_tables, named, spending

NOT_GRADED = "not graded"
WORDS = {True: "met", False: "not met", None: None}
SAID = {words: met for met, words in WORDS.items()}
MOST_CRITERIA = 40  # rows of a table by criterion
# (columns' words, (what people say, what the judge says))
CELLS = (
    ("Both met", (True, True)),
    ("Only the judge", (False, True)),
    ("Only people", (True, False)),
    ("Neither", (False, False)),
)


class GraderChoice(Section):
    version: int = knob(
        ...,
        "A judge that decides criteria one by one or all at once, at one of its versions",
        source="judges:criterion,checklist",
        ge=1,
    )


class CriterionAuditConfig(RecipeConfig):
    """Judges decide the criteria that people have graded, on the same responses."""

    judges: list[GraderChoice] = knob([], "Judges to ask about the graded responses", min_length=1, max_length=8)
    max_responses: int | None = knob(None, "Only the first graded responses; empty: all", unit="responses", ge=1)

    def problems(self) -> Iterator[FieldProblem]:
        yield from listed_twice("judges", [each.version for each in self.judges])


@dataclass(frozen=True)
class AuditedCriterion:
    """One graded criterion of a response, as one judge sees it."""

    judge: str
    graded: Graded
    met: bool | None
    note: str
    verdicts: tuple[int, ...]
    beside: list[str] = field(default_factory=list)  # of this judge and the best one, the only one that is right

    @property
    def item(self) -> str:
        return "\n".join((self.graded.example.key, self.graded.response.id, self.graded.criterion.id))

    @property
    def right(self) -> bool:
        return self.met is not None and self.met == self.graded.met


Audits = Mapping[str, Sequence[AuditedCriterion]]


def run(context: Context) -> RecipeOutcome:
    people, verified, bare = _people(context)
    if not people:
        raise NothingToScore("no criterion that a judge decides has been graded by a person")
    by_judge: dict[str, list[AuditedCriterion]] = {}
    for choice in context.config.judges:
        facts = context.judge_facts(choice.version)
        by_judge[facts.key] = list(_asked(context, choice.version, facts.key, people))
    people_named = named(each.raters for each in people)
    apart = disagreement({judge: {each.item: each.met for each in rows} for judge, rows in by_judge.items()})
    found = {judge: _agreement(rows) for judge, rows in by_judge.items()}
    best = max(found, key=lambda judge: found[judge].accuracy.value or 0.0)
    ranges = _ranges(by_judge)
    report = r.Report(
        headline=r.headline(f"Agreement of {best} with people", _accuracy(found[best], best)),
        coverage=_coverage(by_judge, people, verified, bare, apart),
        blocks=[
            _table(found),
            *_comparisons(by_judge, best),
            *human_tables(ranges, "criteria", people_named),
            _confusion("Where they part", found),
            *(table for judge, rows in by_judge.items() for table in _by_criterion(judge, rows)),
            *_by("importance", by_judge, lambda each: [each.graded.criterion.importance]),
            *_by("kind", by_judge, lambda each: [each.graded.criterion.kind]),
            *_by("axis", by_judge, lambda each: list(each.graded.criterion.tags)),
            *_by("domain", by_judge, lambda each: [each.graded.example.domain]),
            *spending(
                {j: list(dict.fromkeys(v for e in rows for v in e.verdicts)) for j, rows in by_judge.items()}, context
            ),
        ],
    )
    for choice in context.config.judges:
        facts = context.judge_facts(choice.version)
        cell, items = _accuracy(found[facts.key], facts.key), r.measured_on(each.item for each in by_judge[facts.key])
        shown = _known(found[facts.key], ranges.get(facts.key))
        report.entries.append(r.Entry(facts.key, cell, facts.version, facts.judge, known=shown, **items))
    return RecipeOutcome(
        report, [*(_case(each, apart, people_named) for rows in by_judge.values() for each in rows), *bare]
    )


def _people(context: Context) -> tuple[list[Graded], int, list[FoundCase]]:
    """Graded criteria for a judge to decide, how many are left to their verifiers, and a case for each response that
    nobody graded."""
    found: list[Graded] = []
    bare: list[FoundCase] = []
    verified = 0
    responses: set[tuple[str, str]] = set()
    for example in context.examples():
        grades = graded(example)
        known = {each.response.id for each in grades}
        bare += [_bare(example.key, response.id) for response in example.responses if response.id not in known]
        for each in grades:
            place = (example.key, each.response.id)
            if each.criterion.verifier is not None:
                verified += 1
            elif (
                place in responses
                or context.config.max_responses is None
                or len(responses) < context.config.max_responses
            ):
                responses.add(place)
                found.append(each)
    return found, verified, bare


def _bare(example: str, response: str) -> FoundCase:
    return FoundCase({"example": example, "response": response}, {"left out": NOT_GRADED}, [NOT_GRADED])


def _asked(context: Context, version: int, judge: str, people: Sequence[Graded]) -> Iterator[AuditedCriterion]:
    by_response: dict[tuple[str, str], list[Graded]] = defaultdict(list)
    for each in people:
        by_response[each.example.key, each.response.id].append(each)
    inputs = [
        JudgeInput(
            key,
            rows[0].example.prompt,
            {response: rows[0].response.text},
            tuple(each.criterion for each in rows),
            rows[0].example.reference or "",
        )
        for (key, response), rows in by_response.items()
    ]
    answers = context.judge(version, inputs, f"{judge} on {with_noun(len(inputs), 'responses')}")
    said = {key: {v.criterion_id: v for v in found} for key, found in criterion_verdicts(answers).items()}
    ids: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for answer in answers:
        subject = answer.subject
        for criterion in subject["criteria"] if "criteria" in subject else [subject["criterion"]]:
            ids[subject["example"], subject["response"], criterion] += [answer.id] if answer.id else []
    for each in people:
        key = (each.example.key, each.response.id)
        verdict = said.get(key, {}).get(each.criterion.id)
        found = ids[*key, each.criterion.id]
        met, note = (verdict.met, verdict.note) if verdict else (None, "it could not be asked")
        yield AuditedCriterion(judge, each, met, note, tuple(found))


def _agreement(rows: Sequence[AuditedCriterion]) -> Agreement:
    return agreement([each.graded.met for each in rows], [each.met for each in rows], _clusters(rows))


def _clusters(rows: Sequence[AuditedCriterion]) -> list[str]:
    """The cluster of each row: its prompt; its response if there is only one prompt; the row itself if there is one response."""
    prompts = [each.graded.example.key for each in rows]
    responses = [each.graded.response.id for each in rows]
    return next((found for found in (prompts, responses) if len(set(found)) > 1), [each.item for each in rows])


def _accuracy(found: Agreement, judge: str, *tags: str) -> r.Cell:
    return r.estimate(found.accuracy, tag("judge", judge), *tags, "wrong")


def _coverage(
    by_judge: Audits, people: Sequence[Graded], verified: int, bare: Sequence[FoundCase], apart: Set[object]
) -> list[tuple[str, r.Cell]]:
    decided = [each for rows in by_judge.values() for each in rows if each.graded.met is not None]
    missing = sum(each.met is None for each in decided)
    split = sum(each.met is None for each in people)
    return [
        ("Judges", r.count(len(by_judge))),
        ("Responses", r.count(len({(each.example.key, each.response.id) for each in people}))),
        ("Graded criteria", r.count(len(people))),
        ("Missing verdicts", r.count(missing, "missing", tone="warn" if missing else "")),
        ("People evenly split", r.count(split, "people split", tone="warn" if split else "")),
        *([("Judges disagree", r.count(len(apart) * len(by_judge), DISAGREE))] if len(by_judge) > 1 else []),
        *([("Left to verifiers", r.number(verified, "count"))] if verified else []),
        *([("Responses nobody graded", r.count(len(bare), NOT_GRADED, tone="warn"))] if bare else []),
    ]


def _table(found: Mapping[str, Agreement]) -> r.Table:
    rows = []
    for judge, each in found.items():
        mine = tag("judge", judge)
        cells = [r.text(judge, mine), _accuracy(each, judge), r.estimate(each.kappa, mine, "wrong", unit="points")]
        cells += [
            r.estimate(each.precision, mine, "people: not met", "judge: met"),
            r.estimate(each.recall, mine, "people: met", "wrong"),
        ]
        rows.append([*cells, r.estimate(each.lean, mine, unit="gap"), r.count(each.table.missing, mine, "missing")])
    columns = [
        ("Judge", ""),
        ("Agreement", "verdicts that agree with most people; a missing one is wrong"),
        ("Kappa", "Cohen's kappa, over the verdicts that exist"),
        ("Precision", "share of the criteria that the judge calls met that people call met too"),
        ("Recall", "share of the criteria that people call met that the judge calls met too"),
        (
            "Lean",
            "share of criteria that the judge calls met, minus the share that people call met: above 0, the judge is milder",
        ),
        ("Missing", "criteria without a verdict of the judge"),
    ]
    note = "Criteria on which people are evenly split are left out and counted. The criteria of one prompt are resampled together, where there are several."
    return r.Table("Judges against people", columns, rows, note)


def _confusion(title: str, found: Mapping[str, Agreement]) -> r.Table:
    rows = [[r.text(judge, tag("judge", judge)), *_cells(each, tag("judge", judge))] for judge, each in found.items()]
    note = "Criteria by the verdicts of people and of the judge; each number leads to its cases."
    return r.table(title, ["Judge", *[words for words, _ in CELLS], "No verdict"], rows, note)


def _cells(found: Agreement, *tags: str) -> list[r.Cell]:
    cells = [
        r.count(found.table.cells_VV[people][judge], *tags, f"people: {WORDS[people]}", f"judge: {WORDS[judge]}")
        for _, (people, judge) in CELLS
    ]
    missing = found.table.missing_V[MET] + found.table.missing_V[NOT_MET]
    return [*cells, r.count(missing, *tags, "missing", tone="warn" if missing else "")]


def _by_criterion(judge: str, rows: Sequence[AuditedCriterion]) -> Iterator[r.Table]:
    """Tables by criterion. A criterion is identified by its words: the same words in two rubrics are one criterion."""
    grouped: dict[str, list[AuditedCriterion]] = defaultdict(list)
    for each in rows:
        grouped[each.graded.criterion.text].append(each)
    order = sorted(grouped, key=lambda text: (-_apart(grouped[text]), -len(grouped[text]), text))
    shown = []
    for text in order[:MOST_CRITERIA]:
        found, mine = _agreement(grouped[text]), (tag("judge", judge), tag("criterion", text))
        kappa = r.estimate(found.kappa, *mine, "wrong", unit="points")
        shown.append([r.text(text, *mine), *_cells(found, *mine), _accuracy(found, judge, mine[1]), kappa])
    columns = ["Criterion", *[words for words, _ in CELLS], "No verdict", "Agreement", "Kappa"]
    note = "The criteria on which judge and people differ most often come first." + _left_out(
        len(order), "criteria, with as few or fewer of them,"
    )
    yield r.table(f"By criterion: {judge}", columns, shown, note)


def _apart(rows: Sequence[AuditedCriterion]) -> int:
    return sum(each.graded.met is not None and each.met is not None and not each.right for each in rows)


def _left_out(found: int, what: str) -> str:
    return f" {found - MOST_CRITERIA:,} more {what} are in the cases." if found > MOST_CRITERIA else ""


def _by(kind: str, by_judge: Audits, of: Callable[[AuditedCriterion], list[str]]) -> Iterator[r.Table]:
    """Agreement for each value of `of`; nothing if there are not two values."""
    counts = Counter(value for rows in by_judge.values() for each in rows for value in of(each) if value)
    if len(counts) < 2:
        return
    rows = []
    for value in sorted(value for value, _ in counts.most_common(MOST_CRITERIA)):
        cells = [r.text(value, tag(kind, value))]
        for judge, audited in by_judge.items():
            mine = [each for each in audited if value in of(each)]
            cells.append(_accuracy(_agreement(mine), judge, tag(kind, value)))
        rows.append(cells)
    note = _left_out(len(counts), "values, with fewer graded criteria,").strip()
    yield r.table(f"Agreement by {kind}", [kind.capitalize(), *by_judge], rows, note)


def _comparisons(by_judge: Audits, best: str) -> Iterator[r.Table]:
    """Every judge against the best on the same criteria."""
    first = [each for each in by_judge[best] if each.graded.met is not None]
    rows = []
    for judge, audited in by_judge.items():
        second = [each for each in audited if each.graded.met is not None]
        if judge == best:
            continue
        for one, two in zip(first, second, strict=True):
            if one.right != two.right:
                two.beside.append(judge if two.right else best)
        right, other = [each.right for each in first], [each.right for each in second]
        test, difference = mcnemar(right, other), paired_difference(right, other, _clusters(first))
        rows.append(against(judge, best, difference, test))
    if rows:
        columns = ["Judge", "Difference", "p (McNemar)", f"Only {best} right", "Only this one right"]
        note = (
            f"Agreement minus that of {best}, on the same criteria; the interval is a paired bootstrap over prompts, p the "
            "exact test of those that only one of them has right."
        )
        yield r.table(f"Against {best}", columns, rows, note)


def _ranges(by_judge: Audits) -> dict[str, HumanRange]:
    found = {}
    for judge, rows in by_judge.items():
        humans = {each.item: each.graded.raters for each in rows if len(each.graded.raters) > 1}
        if humans:
            clusters = dict(zip([each.item for each in rows], _clusters(rows), strict=True))
            found[judge] = human_range({each.item: each.met for each in rows}, humans, clusters)
    return found


def _known(found: Agreement, people: HumanRange | None) -> dict[str, Any]:
    """The numbers that a licence shows of one judge, besides its agreement."""
    return {"kappa": r.estimate(found.kappa, unit="points")} | beside_people(people, "criteria")


def known_again(examples: Iterable[Example], cases: Iterable[StoredCase]) -> dict[str, dict[str, Any]]:
    """The numbers that a licence shows of each judge, for an evaluation that has only its cases."""
    grades = {
        (example.key, each.response.id, each.criterion.id): each for example in examples for each in graded(example)
    }
    by_judge: dict[str, list[AuditedCriterion]] = defaultdict(list)
    for case in cases:
        about = grades.get(tuple(case.subject.get(name, "") for name in ("example", "response", "criterion id")))
        if about is not None and "judge" in case.subject and case.values.get("judge") in SAID:
            judge, met = case.subject["judge"], SAID[case.values["judge"]]
            by_judge[judge].append(AuditedCriterion(judge, about, met, "", ()))
    ranges = _ranges(by_judge)
    return {judge: _known(_agreement(rows), ranges.get(judge)) for judge, rows in by_judge.items()}


def _case(each: AuditedCriterion, apart: Set[object], people: Set[str]) -> FoundCase:
    about, criterion = each.graded, each.graded.criterion
    tags = [tag("judge", each.judge), tag("criterion", criterion.text)]
    if about.met is None:
        tags.append("people split")
    else:
        tags += ["right" if each.right else "wrong", f"people: {WORDS[about.met]}"]
        tags += ["missing"] if each.met is None else [f"judge: {WORDS[each.met]}"]
    tags += [DISAGREE] if each.item in apart else []
    tags += [tag(ALONE, judge) for judge in each.beside]
    if len(about.raters) > 1:
        tags += [SEVERAL, *(["people disagree"] if len(set(about.raters.values())) > 1 else [])]
        tags += [tag("rater", name) for name in about.raters if name in people]
    tags += [tag("importance", criterion.importance), tag("kind", criterion.kind)]
    tags += [tag("axis", each_tag) for each_tag in criterion.tags]
    tags += [tag("domain", about.example.domain)] if about.example.domain else []
    subject = {"judge": each.judge, "example": about.example.key, "response": about.response.id}
    subject |= {"criterion": criterion.text, "criterion id": criterion.id}
    met = sum(about.raters.values())
    values = {
        "people": WORDS[about.met],
        "judge": WORDS[each.met],
        "raters": f"{met} met, {len(about.raters) - met} not met",
        "why": each.note,
        "verdicts": list(each.verdicts),
    }
    return FoundCase(subject, values, tags)


RECIPE = Recipe(
    name="criterion_audit",
    title="Criterion audit",
    question="Does the judge decide single criteria as people do?",
    summary="Met or not met of judges against people's grading: confusion and kappa per criterion, and agreement beside that among people.",
    icon="check-check",
    schema=CriterionAuditConfig,
    run=run,
    tasks="grading",
    measure="Agreement with people",
    known_again=known_again,
)
