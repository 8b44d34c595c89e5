"""RubricBench (2025): does a rubric help a judge, and does the judge know which rubric is the right one?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from trainer.config.errors import FieldProblem
from trainer.config.fields import knob
from trainer.judges.combine import pair_verdicts
from trainer.judges.inputs import of_example
from trainer.metrics import rubricbench as bench

from ... import report as r
from ..base import Context, FoundCase, JudgeFacts, NothingToScore, Recipe, RecipeConfig, RecipeOutcome, tag
from ..pairs import coverage_of, labelled_pairs, left_out
from . import curves as scaling
from . import faults
from . import protocol as rubricbench_protocol
from .judged_pairs import HUMAN, SELF, VANILLA, SeenPair, criteria_of, ids_by_example, inputs_of, judged

ITEMS = {HUMAN: "human items", SELF: "own items"}
RATED = {"unnecessary": "not needed", "rigid": "rigid", "burdensome": "rigid, not needed"}
TITLES = {VANILLA: "No rubric", SELF: "Own rubric", HUMAN: "Human rubric"}


class RubricBenchConfig(RecipeConfig):
    """The three conditions ask about the same pairs: without a rubric, with the judge's own, with the human one."""

    tried: ClassVar[tuple[str, ...]] = ("judge", "rubric_judge", "generator")
    draws: ClassVar[int] = scaling.MOST_RUBRICS
    spared: ClassVar[tuple[str, ...]] = (*RecipeConfig.spared, "strict")

    judge: int | None = knob(None, "Judges without a rubric", source="judges:pairwise")
    rubric_judge: int = knob(..., "Judges with a rubric, human and own", source="judges:pairwise_rubric", ge=1)
    generator: int | None = knob(
        None, "Writes the judge's own rubrics, best on the same endpoint", source="judges:rubric_generator"
    )
    matcher: int | None = knob(None, "Matches generated items with human ones", source="judges:rubric_matcher")
    necessity: int | None = knob(None, "Rates how necessary and how rigid items are", source="judges:necessity")
    max_pairs: int | None = knob(None, "Only the first pairs with a rubric; empty: all", unit="pairs", ge=1)
    scaling_items: bool = knob(False, "Also judge with 2, 4, 6 and 8 items of each human rubric")
    sampled_items: int = knob(
        0,
        "Also judge with 4, 8, 16 and 32 items that the generator samples, up to this many",
        unit="items",
        ge=0,
        le=32,
    )
    sampled_rubrics: int = knob(
        0,
        "Also judge with 4, 8, 16 and 32 rubrics that the generator samples, up to this many: the majority of their verdicts counts",
        unit="rubrics",
        ge=0,
        le=scaling.MOST_RUBRICS,
    )
    rounds: int = knob(0, "Also judge after this many rounds of improving the own rubric", unit="rounds", ge=0, le=5)
    strict: bool = knob(
        True,
        "Refuse judges that may answer a tie, and conditions that differ in more than the rubric: model, decoding, order. Switch "
        "it off to try a rubric writer of another model, or a judge with five verdicts",
    )
    seed: int = knob(0, "Draws the items", ge=0, lt=2**31, advanced=True)

    def problems(self) -> Iterator[FieldProblem]:
        if self.generator is None:
            for name in ("matcher", "sampled_items", "sampled_rubrics", "rounds"):
                if getattr(self, name):
                    yield FieldProblem("generator", f"{name} needs a generator")
        if 0 < self.sampled_rubrics < scaling.RUBRIC_SIZES[1]:
            yield FieldProblem("sampled_rubrics", f"the curve begins at {scaling.RUBRIC_SIZES[1]}; 0 draws none")

    def judge_problems(self, judges: Mapping[str, JudgeFacts]) -> Iterator[FieldProblem]:
        if self.strict:
            yield from rubricbench_protocol.problems(judges)


def run(context: Context) -> RecipeOutcome:
    config = context.config
    with_rubric = (example for example in context.examples() if example.rubric)
    seen = [
        SeenPair(pair, pair.example.rubric.criteria)
        for pair in labelled_pairs(with_rubric, config.max_pairs, ties=False)
        if pair.example.rubric
    ]
    if not seen:
        raise NothingToScore(
            "no example has both a human rubric and a pair whose label prefers one of the two responses"
        )
    left = list(left_out(context.examples(), ties=False, rubric=True))
    if config.judge:
        _condition(context, config.judge, VANILLA, seen, lambda each: ())
    _condition(context, config.rubric_judge, HUMAN, seen, lambda each: each.human)
    blocks: list[Any] = []
    if config.generator:
        _generate(context, seen)
        _condition(context, config.rubric_judge, SELF, seen, lambda each: each.own)
    blocks += [_conditions(seen), _domains(seen), faults.table(seen)]
    if config.matcher:
        _match(context, seen)
        blocks.append(_alignment(seen))
    if config.necessity:
        blocks.append(_necessity(context, seen))
    blocks += scaling.curves(context, seen)
    report = _report(context, seen, blocks)
    report.coverage += coverage_of(left)
    return RecipeOutcome(report, [*map(_case, seen), *left])


def _condition(context: Context, version: int, name: str, seen: Sequence[SeenPair], criteria: Any) -> None:
    answers = context.judge(version, inputs_of(seen, criteria), f"{TITLES[name].lower()}: judging")
    found = {key[0]: verdict for key, verdict in pair_verdicts(answers).items()}
    ids = ids_by_example(answers)
    if name == HUMAN:
        leaning = faults.favoured_responses(answers, {each.pair.key: each.human for each in seen})
        for each in seen:
            each.leaning = leaning.get(each.pair.key)
    for each in seen:
        verdict = found.get(each.pair.key)
        each.verdicts[name] = verdict.verdict if verdict else None
        each.ids += ids.get(each.pair.key, [])


def _generate(context: Context, seen: Sequence[SeenPair]) -> None:
    inputs = [replace(of_example(each.pair.example, pair=True), criteria=()) for each in seen]
    answers = context.judge(context.config.generator, inputs, "writing own rubrics")
    rubrics = {each.subject["example"]: each for each in reversed(answers)}
    for each in seen:
        answer = rubrics.get(each.pair.key)
        each.own = criteria_of(answer)
        each.ids += [answer.id] if answer and answer.id else []


def _names(seen: Sequence[SeenPair]) -> list[str]:
    return [name for name in TITLES if name in seen[0].verdicts]


def _conditions(seen: Sequence[SeenPair]) -> r.Table:
    rows = []
    for name in _names(seen):
        found = bench.accuracy(judged(seen, name))
        cells = [r.text(TITLES[name])]
        cells += [r.estimate(each, f"{name}:wrong") for each in (found.overall, found.mean_of_domains)]
        rows.append([*cells, r.count(found.ties, f"{name}:tie"), r.count(found.invalid, f"{name}:invalid")])
    columns = ["Condition", "Accuracy", "Mean of domains", "Ties", "Invalid"]
    return r.table("Three conditions", columns, rows, "Ties and invalid verdicts count as wrong.")


def _domains(seen: Sequence[SeenPair]) -> r.Table:
    found = {name: bench.accuracy(judged(seen, name)).domains for name in _names(seen)}
    domains = sorted({domain for each in found.values() for domain in each})
    rows = []
    for domain in domains:
        cells = [r.text(domain, tag("domain", domain))]
        cells += [r.estimate(found[name][domain], tag("domain", domain), f"{name}:wrong") for name in found]
        rows.append(cells)
    return r.table("Accuracy by domain", ["Domain", *[TITLES[name] for name in found]], rows)


def _match(context: Context, seen: Sequence[SeenPair]) -> None:
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


def _alignment(seen: Sequence[SeenPair]) -> r.Table:
    found = bench.alignments([each.aligned for each in seen])
    words = {
        "recall": "human items that a generated item says too",
        "precision": "generated items that match a human one",
        "hallucination": "generated items that match nothing",
        "f1": "structural F1, the harmonic mean of precision and recall",
    }
    leads = {
        "recall": "misses human items",
        "precision": "hallucinates",
        "hallucination": "hallucinates",
        "f1": "matched",
    }
    rows = [
        [r.text(name.capitalize()), r.estimate(found[name], leads[name]), r.text(meaning)]
        for name, meaning in words.items()
    ]
    return r.table("Own rubrics against human ones", ["Measure", "Mean over rubrics", "Meaning"], rows)


def _necessity(context: Context, seen: Sequence[SeenPair]) -> r.Table:
    rows = []
    for whose, criteria in ((HUMAN, lambda each: each.human), (SELF, lambda each: each.own)):
        mine = _rate(context, seen, whose, criteria)
        if not mine:
            continue
        n, rigid, keys = zip(*mine, strict=True)
        diagnosis = bench.diagnose(n, rigid, keys)
        every = tag("rated", ITEMS[whose])
        cells = [r.text(ITEMS[whose].capitalize(), every)]
        cells += [r.estimate(getattr(diagnosis, name), every, unit="number") for name in ("necessity", "rigidity")]
        cells += [r.estimate(getattr(diagnosis, name), tag(words, ITEMS[whose])) for name, words in RATED.items()]
        rows.append([*cells, r.estimate(diagnosis.correlation, every, unit="points")])
    columns = ["Items", "Necessity", "Rigidity", "Necessity 1", "Rigidity 5", "Rigid and not needed", "Correlation"]
    return r.table(
        "Necessity and rigidity",
        columns,
        rows,
        "Each item is rated 1 to 5 twice; items of a rubric are resampled together.",
    )


def _rate(
    context: Context, seen: Sequence[SeenPair], whose: str, criteria: Any
) -> list[tuple[int | None, int | None, str]]:
    """(necessity, rigidity, pair) of every item; the pairs keep the ratings of their items."""
    inputs = [given for given in inputs_of(seen, criteria) if given.criteria]
    if not inputs:
        return []
    by_key = {each.pair.key: each for each in seen}
    texts = {given.example: {item.id: item.text for item in given.criteria} for given in inputs}
    found = []
    for answer in context.judge(context.config.necessity, inputs, f"rating {ITEMS[whose]}"):
        key = answer.subject["example"]
        by_key[key].ids += [answer.id] if answer.id else []
        said = (answer.parsed or {"items": {}})["items"]
        for item in answer.subject["criteria"]:
            rated = said.get(item) or {}
            n, rigid = rated.get("necessity"), rated.get("rigidity")
            found.append((n, rigid, key))
            by_key[key].rated.append(
                {"whose": ITEMS[whose], "text": texts[key][item], "necessity": n, "rigidity": rigid}
            )
    return found


def _report(context: Context, seen: Sequence[SeenPair], blocks: list[Any]) -> r.Report:
    config = context.config
    human = r.estimate(bench.accuracy(judged(seen, HUMAN)).overall, f"{HUMAN}:wrong")
    shown = r.headline("Accuracy with the human rubric", human)
    if config.generator:
        gap = bench.rubric_gap(judged(seen, HUMAN), judged(seen, SELF))
        shown = r.headline("Rubric gap: human minus own", r.estimate(gap, "helped", unit="gap"))
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
    protocol, items = str(facts.spec.get("order", "")), r.measured_on(each.pair.key for each in seen)
    return r.Report(shown, coverage, blocks, [r.Entry(facts.key, human, facts.version, facts.judge, protocol, **items)])


def _case(each: SeenPair) -> FoundCase:
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
    tags += faults.faults(each)
    tags += [tag(name, "right" if verdict == each.label else "wrong") for name, verdict in each.sized.items()]
    tags += [tag(words, item["whose"]) for item in each.rated for words in _rated(item)]
    if each.aligned:
        tags += ["matched"]
        tags += ["misses human items"] if each.aligned.recall != 1 else []
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
        values["own"] = [item.model_dump(mode="json", exclude_defaults=True) for item in each.own]
    values |= {name: words[verdict] for name, verdict in each.sized.items()}
    values |= {"rated": each.rated} if each.rated else {}
    values["verdicts"] = each.ids
    subject = {"example": each.pair.key, "a": each.pair.a.id, "b": each.pair.b.id}
    return FoundCase(subject, values, tags)


def _rated(item: dict[str, Any]) -> Iterator[str]:
    """The tags of an item, as `bench.diagnose` counts it."""
    yield "rated"
    n, rigid = item["necessity"], item["rigidity"]
    if n is None or rigid is None:
        return
    yield from ("not needed",) if n == 1 else ()
    yield from ("rigid",) if rigid == 5 else ()
    yield from ("rigid, not needed",) if rigid >= 4 and n <= 2 else ()


def _grid(each: SeenPair) -> dict[str, Any]:
    """Human items are rows, own items are columns; a cell is 1 if the matcher says that they are the same check."""
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
