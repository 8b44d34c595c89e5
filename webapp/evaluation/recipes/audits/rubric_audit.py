"""Rubric audit: does every criterion of a rubric make a difference?"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from trainer.config.errors import FieldProblem
from trainer.config.fields import knob
from trainer.contracts import Criterion, Example
from trainer.judges.combine import criterion_verdicts
from trainer.judges.inputs import JudgeInput
from trainer.metrics import rubric_audit as bench
from trainer.metrics.estimate import Estimate, bootstrap_mean, proportion
from trainer.metrics.rubricbench import alignment, alignments
from trainer.rubrics import verdicts as verified
from trainer.rubrics.structure import lines, structural_hints

from ... import report as r
from ..base import Context, FoundCase, JudgedQuestion, NothingToScore, Recipe, RecipeConfig, RecipeOutcome, tag
from ..pairs import NO_RUBRIC, WORDS, coverage_of
from .rubric_worth import worth

POWERS = {
    "discriminates": "Tells responses apart",
    "all_meet": "Every response meets it",
    "none_meets": "No response meets it",
    "unknown": "Not known",
}
HINTS = {
    "duplicate": "Says the same as another",
    "contradiction": "Contradicts another",
    "compound": "Checks two things",
    "vague": "Vague",
    "negated": "Costs points for avoiding a fault",
    "verifier": "Its verifier cannot run",
}


class RubricAuditConfig(RecipeConfig):
    """The audit of a dataset's rubrics on its responses. Verifiers decide what they can; a judge decides the rest."""

    tried: ClassVar[tuple[str, ...]] = ()

    judge: int | None = knob(None, "Decides criteria without a verifier", source="judges:criterion,checklist")
    lister: int | None = knob(
        None, "Lists what the instruction demands, to see what the rubric passes over", source="judges:rubric_generator"
    )
    matcher: int | None = knob(None, "Matches demands with criteria", source="judges:rubric_matcher")
    quality: int | None = knob(
        None, "Rates each rubric itself, 0 to 4, and names its faults", source="judges:rubric_quality"
    )
    likert: int | None = knob(
        None,
        "Rates both answers of each pair that people compared by its rubric: do the scores rank them as people did? (MaMs)",
        source="judges:likert",
    )
    pointwise: int | None = knob(
        None, "Rates the same answers without a rubric: the baseline that a rubric must beat", source="judges:pointwise"
    )
    max_examples: int | None = knob(None, "Only the first examples with a rubric; empty: all", unit="examples", ge=1)

    def problems(self) -> Iterator[FieldProblem]:
        if (self.lister is None) != (self.matcher is None):
            name = "matcher" if self.matcher is None else "lister"
            yield FieldProblem(name, "coverage needs both a lister and a matcher")


@dataclass
class AuditedRubric:
    """A rubric with its responses' verdicts: `met_RK` rows are responses, columns criteria."""

    example: Example
    criteria: tuple[Criterion, ...]
    met_RK: list[list[bool | None]] = field(default_factory=list)
    ids: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))  # by criterion
    demands: tuple[str, ...] | None = None
    listed: list[int] = field(default_factory=list)  # the verdicts that `demands` and `covered` rest on
    covered: frozenset[int] | None = None


def run(context: Context) -> RecipeOutcome:
    seen: list[AuditedRubric] = []
    bare: list[FoundCase] = []
    for example in context.examples():
        if example.rubric:
            seen.append(AuditedRubric(example, example.rubric.criteria))
        else:
            bare.append(FoundCase({"example": example.key}, {"left out": WORDS[NO_RUBRIC].lower()}, [NO_RUBRIC]))
        if len(seen) == context.config.max_examples:
            break
    if not seen:
        raise NothingToScore("no example has a rubric")
    _decide(context, seen)
    if context.config.lister:
        _cover(context, seen)
    cases = [case for each in seen for case in _cases(each)]
    powers = Counter(case.values["power"] for case in cases)
    known = len(cases) - powers["unknown"]
    idle = powers["all_meet"] + powers["none_meets"]
    share = proportion(idle, known, powers["unknown"], "no criterion has verdicts on two responses")
    blocks: list[Any] = [_powers(powers, len(cases)), _hints(cases)]
    blocks += [_weights(cases), *_pairs(cases)]
    blocks += [_coverage(seen)] if context.config.lister else []
    tables, worths = worth(context, [each.example for each in seen])
    blocks += tables
    undecided = sum(met is None for each in seen for row in each.met_RK for met in row)
    found = r.Report(
        headline=r.headline("Criteria that decide nothing", r.estimate(share, "idle")),
        coverage=[
            ("Rubrics", r.count(len(seen))),
            ("Criteria", r.count(len(cases))),
            ("Responses", r.count(sum(len(each.met_RK) for each in seen))),
            ("Undecided verdicts", r.count(undecided, "undecided", tone="warn" if undecided else "")),
            *coverage_of(bare),
        ],
        blocks=blocks,
    )
    return RecipeOutcome(found, [*cases, *(case for each in seen for case in _demands(each)), *worths, *bare])


def _decide(context: Context, seen: Sequence[AuditedRubric]) -> None:
    """Decides the criteria: verifiers first, then the judge for the rest, if there is one."""
    judged: dict[tuple[str, str], dict[str, bool | None]] = {}
    if context.config.judge:
        inputs = [_input(each.example) for each in seen if each.example.responses]
        answers = context.judge(context.config.judge, inputs, "deciding criteria")
        judged = {key: {v.criterion_id: v.met for v in found} for key, found in criterion_verdicts(answers).items()}
        _keep_ids(seen, answers)
    for each in seen:
        rubric = each.example.rubric
        if rubric is None:
            continue
        for response in each.example.responses:
            said = judged.get((each.example.key, response.id), {})
            row = [said.get(v.criterion_id) if v.met is None else v.met for v in verified(rubric, response.text)]
            each.met_RK.append(row)


def _input(example: Example) -> JudgeInput:
    return JudgeInput(
        example.key,
        example.prompt,
        {response.id: response.text for response in example.responses},
        example.rubric.criteria if example.rubric else (),
        example.reference or "",
    )


def _keep_ids(seen: Sequence[AuditedRubric], answers: Sequence[JudgedQuestion]) -> None:
    by_key = {each.example.key: each for each in seen}
    for answer in answers:
        subject = answer.subject
        for criterion in subject["criteria"] if "criteria" in subject else [subject["criterion"]]:
            by_key[subject["example"]].ids[criterion] += [answer.id] if answer.id else []


def _cover(context: Context, seen: Sequence[AuditedRubric]) -> None:
    by_key = {each.example.key: each for each in seen}
    asked = [JudgeInput(each.example.key, each.example.prompt) for each in seen]
    for answer in context.judge(context.config.lister, asked, "listing demands"):
        each = by_key[answer.subject["example"]]
        each.listed += [answer.id] if answer.id else []
        if answer.parsed is not None:
            each.demands = tuple(item["text"] for item in answer.parsed["items"])
    inputs = [
        JudgeInput(
            each.example.key,
            each.example.prompt,
            generated=tuple(criterion.text for criterion in each.criteria),
            reference_items=each.demands,
        )
        for each in seen
        if each.demands
    ]
    for answer in context.judge(context.config.matcher, inputs, "matching demands"):
        each = by_key[answer.subject["example"]]
        each.listed += [answer.id] if answer.id else []
        if answer.parsed is not None:
            each.covered = frozenset(demand for _, demand in answer.parsed["matches"])


def _demands(each: AuditedRubric) -> Iterator[FoundCase]:
    """One case per demand of the instruction."""
    for d, demand in enumerate(each.demands or ()):
        state = "not matched" if each.covered is None else "covered" if d in each.covered else "passed over"
        subject = {"example": each.example.key, "demand": demand}
        yield FoundCase(subject, {"demand": state, "verdicts": each.listed}, ["demand", state])


def _cases(each: AuditedRubric) -> Iterator[FoundCase]:
    """One case per criterion."""
    held = bench.criterion_powers(each.met_RK) if each.met_RK else []
    points = [criterion.points for criterion in each.criteria]
    sensitive = bench.sensitivity(each.met_RK, points) if each.met_RK else []
    related = bench.related(each.met_RK, points)
    hints = structural_hints(lines(each.example.rubric)) if each.example.rubric else []
    for k, criterion in enumerate(each.criteria):
        power = held[k].power if held else "unknown"
        codes = list(dict.fromkeys(hint.code for hint in hints if hint.criterion == k))
        moves = list(dict.fromkeys(pair.kind for pair in related if k in (pair.first, pair.second)))
        tags = [
            power,
            *(["idle"] if power in ("all_meet", "none_meets") else []),
            *(tag("hint", code) for code in codes),
        ]
        tags += [*moves, tag("importance", criterion.importance), tag("kind", criterion.kind)]
        tags += ["undecided"] if any(row[k] is None for row in each.met_RK) else []
        values: dict[str, Any] = {"power": power, "points": criterion.points, "responses": len(each.met_RK)}
        if held:
            values |= _with_interval("met", held[k].share)
            values |= {"weight": sensitive[k].weight} | _with_interval("swing", sensitive[k].swing)
            values |= _with_interval("order changes without it", sensitive[k].flips)
        told = [hint.message for hint in hints if hint.criterion == k]
        values |= {"hints": told, "verdicts": each.ids[criterion.id]}
        subject = {"example": each.example.key, "criterion": criterion.text, "criterion id": criterion.id}
        yield FoundCase(subject, values, tags)


def _with_interval(name: str, found: Estimate) -> dict[str, Any]:
    """The value of a case under its name, and beside it the number of cases on which it rests and its 95% interval, or why it has none."""
    if found.value is None:
        return {name: None, f"{name}: why": found.undefined}
    interval = f"{found.low:.3f} to {found.high:.3f}" if found.low is not None else found.interval
    return {name: found.value, f"{name}: n": found.n, f"{name}: 95% interval": interval}


def _powers(powers: Counter[str], total: int) -> r.Table:
    rows = [[r.text(words), r.estimate(proportion(powers[name], total), name)] for name, words in POWERS.items()]
    note = "A criterion that all responses to its prompt meet, or none meets, does not distinguish them."
    return r.table("Do criteria tell responses apart?", ["Criteria", "Share"], rows, note)


def _hints(cases: Sequence[FoundCase]) -> r.Table:
    found = Counter(each for case in cases for each in case.tags)
    rows = [
        [r.text(words), r.estimate(proportion(found[f"hint:{code}"], len(cases)), f"hint:{code}")]
        for code, words in HINTS.items()
    ]
    return r.table(
        "Wording of the criteria", ["Feature", "Share"], rows, "Read from the words alone: hints, not verdicts."
    )


def _pairs(cases: Sequence[FoundCase]) -> Iterator[r.Table]:
    found = Counter(each for case in cases for each in case.tags)
    decided = [case for case in cases if case.values["responses"] >= bench.FEWEST]
    few = f"no prompt has {bench.FEWEST} responses"
    rows = [
        [r.text(words), r.estimate(proportion(found[kind], len(decided), len(cases) - len(decided), few), kind)]
        for kind, words in (("redundant", "Moves with another"), ("conflicting", "Moves against another"))
    ]
    note = (
        f"From the verdicts on at least {bench.FEWEST} responses to one prompt; criteria with fewer are missing here."
    )
    yield r.table("Redundant and in conflict", ["Criteria", "Share"], rows, note)


def _weights(cases: Sequence[FoundCase]) -> r.Table:
    """The change of the score of responses without a criterion, by importance."""
    rows = []
    for importance in ("essential", "important", "optional", "pitfall"):
        mine = [case for case in cases if tag("importance", importance) in case.tags]
        if not mine:
            continue
        cells = [r.text(importance.capitalize(), tag("importance", importance))]
        cells.append(r.count(len(mine), tag("importance", importance)))
        for name in ("met", "swing", "order changes without it"):
            known = [case.values[name] for case in mine if case.values.get(name) is not None]
            found = bootstrap_mean(known, len(mine) - len(known), "no response has every verdict")
            cells.append(r.estimate(found, tag("importance", importance)))
        rows.append(cells)
    columns = ["Importance", "Criteria", "Met", "Change of the score without it", "Pairs it puts in order"]
    return r.table("Effect of one criterion on the score", columns, rows, "Means over criteria.")


def _coverage(seen: Sequence[AuditedRubric]) -> r.Table:
    found = []
    for each in seen:
        matched = None if each.covered is None or not each.demands else each.covered
        pairs = [(0, demand) for demand in matched or ()]
        found.append(None if matched is None else alignment(pairs, len(each.criteria), len(each.demands or ())))
    recall = alignments(found)["recall"]
    note = (
        "Demands of the instruction that some criterion checks, as the lister and the matcher see them. The number leads "
        "to those that the rubrics pass over."
    )
    return r.table(
        "Coverage of the instruction",
        ["Measure", "Mean over rubrics"],
        [[r.text("Demands covered", "demand"), r.estimate(recall, "passed over")]],
        note,
    )


RECIPE = Recipe(
    name="rubric_audit",
    title="Rubric audit",
    question="Does every criterion of a rubric make a difference?",
    summary="Criteria that always or never hold, say the same twice, contradict each other or decide nothing, and what the rubrics pass over.",
    icon="clipboard-check",
    schema=RubricAuditConfig,
    run=run,
    tasks="grading",
    measure="Criteria that decide nothing",
)
