"""RubricBench (2025; METHODS 3): does a rubric help a judge, and does the judge know which rubric is the right one?"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from trainer.benchmarks import rubricbench as bench
from trainer.config.errors import FieldProblem
from trainer.config.fields import knob
from trainer.contracts import Criterion
from trainer.judges.combine import pair_verdicts
from trainer.judges.inputs import JudgeInput, of_example

from .. import report as r
from .base import Context, Found, Judged, NothingToScore, Outcome, Recipe, RecipeConfig, tag
from .pairs import Pair, labelled

VANILLA, SELF, HUMAN = "vanilla", "self", "human"
TITLES = {VANILLA: "No rubric", SELF: "Own rubric", HUMAN: "Human rubric"}
SIZES = (2, 4, 6, 8)


class RubricBenchConfig(RecipeConfig):
    """The three conditions ask the same pairs: without a rubric, with one the judge wrote, with the human one."""

    tried: ClassVar[tuple[str, ...]] = ("judge", "rubric_judge", "generator")

    judge: int | None = knob(None, "Judges without a rubric", source="judges:pairwise")
    rubric_judge: int = knob(..., "Judges with a rubric, human and own", source="judges:pairwise_rubric", ge=1)
    generator: int | None = knob(
        None, "Writes the judge's own rubrics, best on the same endpoint", source="judges:rubric_generator"
    )
    matcher: int | None = knob(None, "Matches generated items with human ones", source="judges:rubric_matcher")
    necessity: int | None = knob(None, "Rates how necessary and how rigid items are", source="judges:necessity")
    max_pairs: int | None = knob(None, "Only the first pairs with a rubric; empty: all", unit="pairs", ge=1)
    scaling_items: bool = knob(False, "Also judge with 2, 4, 6 and 8 items of each human rubric")
    rounds: int = knob(0, "Also judge after so many rounds of improving the own rubric", unit="rounds", ge=0, le=5)
    seed: int = knob(0, "Draws the items", ge=0, lt=2**31, advanced=True)

    def problems(self) -> Iterator[FieldProblem]:
        if self.generator is None:
            for name in ("matcher", "rounds"):
                if getattr(self, name):
                    yield FieldProblem("generator", f"{name} needs a generator")


@dataclass
class Seen:
    """One pair with everything that was found on it. `own`: the generated rubric, None where there is none."""

    pair: Pair
    human: tuple[Criterion, ...]
    own: tuple[Criterion, ...] | None = None
    verdicts: dict[str, int | None] = field(default_factory=dict)
    ids: list[int] = field(default_factory=list)
    matches: list[list[int]] | None = None
    aligned: bench.Alignment | None = None

    @property
    def label(self) -> int:
        return self.pair.label or 0


def run(context: Context) -> Outcome:
    config = context.config
    with_rubric = (example for example in context.examples() if example.rubric)
    seen = [
        Seen(pair, pair.example.rubric.criteria)
        for pair in labelled(with_rubric, config.max_pairs, ties=False)
        if pair.example.rubric
    ]
    if not seen:
        raise NothingToScore("no example has a pair with a label that is a side, and a human rubric")
    if config.judge:
        _condition(context, config.judge, VANILLA, seen, lambda each: ())
    _condition(context, config.rubric_judge, HUMAN, seen, lambda each: each.human)
    blocks: list[Any] = []
    if config.generator:
        _generate(context, seen)
        _condition(context, config.rubric_judge, SELF, seen, lambda each: each.own)
    blocks += [_conditions(seen), _domains(seen)]
    if config.matcher:
        _match(context, seen)
        blocks.append(_alignment(seen))
    if config.necessity:
        blocks.append(_necessity(context, seen))
    if config.scaling_items:
        blocks.append(_by_items(context, seen))
    if config.rounds:
        blocks.append(_by_rounds(context, seen))
    return Outcome(_report(context, seen, blocks), [_case(each) for each in seen])


def _inputs(seen: Iterable[Seen], criteria: Any) -> list[JudgeInput]:
    """Pairs without a rubric of this condition are not asked about; they count as invalid there."""
    listed = []
    for each in seen:
        chosen = criteria(each)
        if chosen is not None:
            listed.append(replace(of_example(each.pair.example, pair=True), criteria=chosen))
    return listed


def _condition(context: Context, version: int, name: str, seen: Sequence[Seen], criteria: Any) -> None:
    answers = context.judge(version, _inputs(seen, criteria), f"{TITLES[name].lower()}: judging")
    found = {key[0]: verdict for key, verdict in pair_verdicts(answers).items()}
    ids = _ids(answers)
    for each in seen:
        verdict = found.get(each.pair.key)
        each.verdicts[name] = verdict.verdict if verdict else None
        each.ids += ids.get(each.pair.key, [])


def _ids(answers: Iterable[Judged]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for answer in answers:
        if answer.id:
            found.setdefault(answer.subject["example"], []).append(answer.id)
    return found


def _generate(context: Context, seen: Sequence[Seen]) -> None:
    inputs = [replace(of_example(each.pair.example, pair=True), criteria=()) for each in seen]
    answers = context.judge(context.config.generator, inputs, "writing own rubrics")
    rubrics = {each.subject["example"]: each for each in reversed(answers)}
    for each in seen:
        answer = rubrics.get(each.pair.key)
        each.own = _criteria(answer)
        each.ids += [answer.id] if answer and answer.id else []


def _criteria(answer: Judged | None) -> tuple[Criterion, ...] | None:
    if answer is None or answer.parsed is None:
        return None
    items = answer.parsed["items"]
    return tuple(
        Criterion(id=f"g{i}", text=e["text"], points=e["points"], kind=e["kind"], importance=e["importance"])
        for i, e in enumerate(items, 1)
    )


def _judged(seen: Iterable[Seen], name: str) -> list[bench.Judged]:
    return [bench.Judged(e.pair.key, e.pair.example.domain or "no domain", e.label, e.verdicts[name]) for e in seen]


def _names(seen: Sequence[Seen]) -> list[str]:
    return [name for name in TITLES if name in seen[0].verdicts]


def _conditions(seen: Sequence[Seen]) -> r.Table:
    rows = []
    for name in _names(seen):
        found = bench.accuracy(_judged(seen, name))
        cells = [r.text(TITLES[name]), r.estimate(found.overall, f"{name}:wrong"), r.estimate(found.mean_of_domains)]
        rows.append([*cells, r.count(found.ties, f"{name}:tie"), r.count(found.invalid, f"{name}:invalid")])
    columns = ["Condition", "Accuracy", "Mean of domains", "Ties", "Invalid"]
    return r.table("Three conditions", columns, rows, "Ties and invalid verdicts count as wrong.")


def _domains(seen: Sequence[Seen]) -> r.Table:
    found = {name: bench.accuracy(_judged(seen, name)).domains for name in _names(seen)}
    domains = sorted({domain for each in found.values() for domain in each})
    rows = []
    for domain in domains:
        cells = [r.text(domain, tag("domain", domain))]
        cells += [r.estimate(found[name][domain], tag("domain", domain), f"{name}:wrong") for name in found]
        rows.append(cells)
    return r.table("Accuracy by domain", ["Domain", *[TITLES[name] for name in found]], rows)


def _match(context: Context, seen: Sequence[Seen]) -> None:
    inputs = [
        replace(
            of_example(each.pair.example, pair=True),
            generated=tuple(item.text for item in each.own),
            reference_items=tuple(item.text for item in each.human),
        )
        for each in seen
        if each.own
    ]
    answers = context.judge(context.config.matcher, inputs, "matching items")
    found = {each.subject["example"]: each for each in reversed(answers)}
    for each in seen:
        answer = found.get(each.pair.key)
        if answer and answer.id:
            each.ids.append(answer.id)
        if answer and answer.parsed is not None and each.own:
            each.matches = [list(pair) for pair in answer.parsed["matches"]]
            pairs = [(generated, reference) for generated, reference in each.matches]
            each.aligned = bench.alignment(pairs, len(each.own), len(each.human))


def _alignment(seen: Sequence[Seen]) -> r.Table:
    found = bench.alignments([each.aligned for each in seen])
    words = {
        "recall": "human items that a generated item says too",
        "precision": "generated items that match a human one",
        "hallucination": "generated items that match nothing",
        "f1": "structural F1, the harmonic mean of precision and recall",
    }
    leads = {"recall": "low recall", "hallucination": "hallucinates"}
    rows = [
        [r.text(name.capitalize()), r.estimate(found[name], *([leads[name]] if name in leads else [])), r.text(meaning)]
        for name, meaning in words.items()
    ]
    return r.table("Own rubrics against human ones", ["Measure", "Mean over rubrics", "Meaning"], rows)


def _necessity(context: Context, seen: Sequence[Seen]) -> r.Table:
    rows = []
    for title, criteria in (("Human items", lambda each: each.human), ("Own items", lambda each: each.own)):
        inputs = [given for given in _inputs(seen, criteria) if given.criteria]
        if not inputs:
            continue
        answers = context.judge(context.config.necessity, inputs, f"rating {title.lower()}")
        rated: list[tuple[int | None, int | None, str]] = []
        for answer in answers:
            for item in answer.subject["criteria"]:
                found = (answer.parsed or {"items": {}})["items"].get(item)
                rated.append((found and found["necessity"], found and found["rigidity"], answer.subject["example"]))
        n, rigid, keys = zip(*rated, strict=True)
        diagnosis = bench.diagnose(n, rigid, keys)
        cells = [r.estimate(getattr(diagnosis, name), unit="number") for name in ("necessity", "rigidity")]
        cells += [r.estimate(getattr(diagnosis, name)) for name in ("unnecessary", "rigid", "burdensome")]
        rows.append([r.text(title), *cells, r.estimate(diagnosis.correlation, unit="points")])
    columns = ["Items", "Necessity", "Rigidity", "Necessity 1", "Rigidity 5", "Rigid and not needed", "Correlation"]
    return r.table(
        "Necessity and rigidity",
        columns,
        rows,
        "Each item is rated 1 to 5 twice; items of a rubric are resampled together.",
    )


def _asked(context: Context, seen: Sequence[Seen], criteria: Any, phase: str) -> list[bench.Judged]:
    """Another condition, for a curve: pairs that have no such rubric are left out of it."""
    inputs = _inputs(seen, criteria)
    found = pair_verdicts(context.judge(context.config.rubric_judge, inputs, phase))
    verdicts = {key[0]: verdict.verdict for key, verdict in found.items()}
    asked = {given.example for given in inputs}
    return [
        bench.Judged(each.pair.key, each.pair.example.domain, each.label, verdicts.get(each.pair.key))
        for each in seen
        if each.pair.key in asked
    ]


def _by_items(context: Context, seen: Sequence[Seen]) -> r.Curve:
    def drawn(size: int) -> Any:
        def criteria(each: Seen) -> tuple[Criterion, ...] | None:
            found = bench.subsample(each.human, size, context.config.seed, each.pair.key)
            return None if found is None else tuple(found)

        return criteria

    sizes = [size for size in SIZES if any(len(each.human) >= size for each in seen)]
    found = bench.scaling({size: _asked(context, seen, drawn(size), f"with {size} human items") for size in sizes})
    series = [{"name": "human items", "points": [r.point(size, estimate) for size, estimate in found.items()]}]
    note = "Items are drawn from each human rubric; the same pairs at every size."
    return r.Curve("Accuracy by number of items", "items", "accuracy", series, note)


def _by_rounds(context: Context, seen: Sequence[Seen]) -> r.Curve:
    cases = {0: _judged([each for each in seen if each.own], SELF)}
    rubrics = {each.pair.key: each.own for each in seen}

    def criteria(each: Seen) -> tuple[Criterion, ...] | None:
        return rubrics[each.pair.key]

    for number in range(1, context.config.rounds + 1):
        inputs = []
        for each in seen:
            if own := rubrics[each.pair.key]:
                given = of_example(each.pair.example, pair=True)
                inputs.append(replace(given, criteria=(), generated=tuple(item.text for item in own)))
        answers = context.judge(context.config.generator, inputs, f"round {number}: improving rubrics")
        better = {answer.subject["example"]: _criteria(answer) for answer in reversed(answers)}
        rubrics.update({key: better.get(key) for key in rubrics})
        cases[number] = _asked(context, seen, criteria, f"round {number}: judging")
    found = bench.scaling(cases)
    series = [{"name": "own rubric", "points": [r.point(size, estimate) for size, estimate in found.items()]}]
    return r.Curve(
        "Accuracy by rounds of refinement", "rounds", "accuracy", series, "The same pairs after every round."
    )


def _report(context: Context, seen: Sequence[Seen], blocks: list[Any]) -> r.Report:
    config = context.config
    human = r.estimate(bench.accuracy(_judged(seen, HUMAN)).overall, f"{HUMAN}:wrong")
    shown = r.headline("Accuracy with the human rubric", human)
    if config.generator:
        gap = bench.rubric_gap(_judged(seen, HUMAN), _judged(seen, SELF))
        shown = r.headline("Rubric gap: human minus own", r.estimate(gap, "helped"))
    coverage = [("Pairs", r.count(len(seen)))]
    if config.generator:
        lost = sum(each.own is None for each in seen)
        coverage.append(("Without an own rubric", r.count(lost, "no own rubric", tone="warn" if lost else "")))
    if config.matcher:
        lost = sum(each.own is not None and each.matches is None for each in seen)
        coverage.append(("Not matched", r.count(lost, "not matched", tone="warn" if lost else "")))
    invalid = sum(each.verdicts[name] is None for each in seen for name in _names(seen))
    coverage.append(("Invalid verdicts", r.count(invalid, "invalid", tone="warn" if invalid else "")))
    facts = context.judge_facts(config.rubric_judge)
    return r.Report(shown, coverage, blocks, [r.Entry(facts.key, human, facts.version, facts.judge)])


def _case(each: Seen) -> Found:
    tags = [tag("domain", each.pair.example.domain or "no domain")]
    right = {}
    for name, verdict in each.verdicts.items():
        right[name] = verdict == each.label
        tags.append(f"{name}:{'right' if right[name] else 'wrong'}")
        if not verdict:
            tags += [f"{name}:invalid", "invalid"] if verdict is None else [f"{name}:tie"]
    if SELF in right:
        tags += ["helped"] if right[HUMAN] and not right[SELF] else []
        tags += ["hurt"] if right[SELF] and not right[HUMAN] else []
        tags += ["no own rubric"] if each.own is None else []
    if each.aligned:
        tags += ["low recall"] if (each.aligned.recall or 0) < 0.5 else []
        tags += ["hallucinates"] if each.aligned.hallucination else []
    elif each.own is not None:
        tags.append("not matched")
    words = {-1: "A", 0: "tie", 1: "B", None: None}
    values: dict[str, Any] = {"label": words[each.label]}
    values |= {TITLES[name].lower(): words[verdict] for name, verdict in each.verdicts.items()}
    if each.aligned:
        values |= {"recall": each.aligned.recall, "hallucination": each.aligned.hallucination, "f1": each.aligned.f1}
    if each.own is not None:
        values["grid"] = _grid(each)
    values["verdicts"] = each.ids
    subject = {"example": each.pair.key, "a": each.pair.a.id, "b": each.pair.b.id}
    return Found(subject, values, tags)


def _grid(each: Seen) -> dict[str, Any]:
    """Human items down, own items across; a cell is 1 where the matcher says that they are the same check."""
    own = each.own or ()
    matched = {(reference, generated) for generated, reference in each.matches or []}
    scores = [[float((h, g) in matched) for g in range(len(own))] for h in range(len(each.human))]
    return {
        "rows": [item.text for item in each.human],
        "columns": [item.text for item in own],
        "scores": scores if each.matches is not None else None,
        "matched": sorted([h, g] for h, g in matched),
        "down": "Human items",
        "across": "Own items",
    }


RECIPE = Recipe(
    name="rubricbench",
    title="RubricBench protocol",
    question="Does a rubric help the judge, and can it write the right one itself?",
    summary="Accuracy without a rubric, with the judge's own and with the human one on the same pairs, and how far the two rubrics agree.",
    icon="scale",
    schema=RubricBenchConfig,
    run=run,
    measure="Accuracy with the human rubric",
)
