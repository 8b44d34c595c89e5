"""Rationale consistency (MetaJudge, 2025): is a judge right for the reasons people have?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from trainer.config.errors import FieldProblem
from trainer.config.fields import Section, knob
from trainer.contracts.plurals import with_noun
from trainer.judges.combine import unswapped
from trainer.judges.inputs import JudgeInput, of_example
from trainer.judges.kinds.rationales import FLAWS
from trainer.metrics import rationale as bench
from trainer.metrics.estimate import proportion
from trainer.rewards.rationale import HIT_THRESHOLD, REASONS_AT_EVALUATION, match, rationale_consistency

from .. import report as r
from .base import Context, FoundCase, JudgedQuestion, NothingToScore, Recipe, RecipeConfig, RecipeOutcome, tag
from .pairs import FirstComparison, coverage_of, labelled_pairs, left_out

CLASSES = {"evidence": "Evidence", "criterion": "Criterion", "generic": "Generic"}
UNLIKE = "too few or many reasons"
LOW = 0.5  # RC below which a right verdict is tagged as right for other reasons


class MetaJudgeChoice(Section):
    version: int = knob(..., "A pairwise judge that gives reasons", source="judges:pairwise", ge=1)


class MetaJudgeConfig(RecipeConfig):
    """Judges compare the pairs of a dataset whose labels come with human reasons; a matcher scores reason against reason."""

    tried: ClassVar[tuple[str, ...]] = ("judges", "flaws")

    judges: list[MetaJudgeChoice] = knob([], "Judges to compare", min_length=1, max_length=8)
    matcher: int = knob(..., "Scores whether two reasons say the same", source="judges:reason_matcher", ge=1)
    second_matcher: int | None = knob(
        None, "Another matcher, to see whether both give the same result", source="judges:reason_matcher"
    )
    decomposer: int | None = knob(
        None,
        "Splits human rationales into reasons first; empty: reasons are used as they are stored",
        source="judges:reasons",
    )
    flaws: int | None = knob(None, "Tags the grounds and the flaws of reasons", source="judges:flaws")
    min_reasons: int = knob(1, "Pairs with fewer human reasons are left out; the paper keeps 3 to 7", ge=1, le=50)
    max_reasons: int = knob(20, "Pairs with more human reasons are left out", ge=1, le=200)
    threshold: float = knob(HIT_THRESHOLD, "Score above which a matched reason is a hit", ge=0, lt=1)
    max_pairs: int | None = knob(None, "Only the first pairs; empty: all", unit="pairs", ge=1)

    def problems(self) -> Iterator[FieldProblem]:
        if self.min_reasons > self.max_reasons:
            yield FieldProblem("max_reasons", f"must not be below min_reasons, which is {self.min_reasons}")
        if self.second_matcher is not None and self.second_matcher == self.matcher:
            yield FieldProblem("second_matcher", "is the first matcher already; choose another")


@dataclass
class JudgedReasons:
    """One pair as one judge sees it. `scores` None: the reasons could not be matched."""

    judge: str
    pair: FirstComparison
    human: tuple[str, ...]
    model: tuple[str, ...] | None
    verdict: int | None
    ids: list[int] = field(default_factory=list)
    scores: np.ndarray[Any, Any] | None = None
    second: np.ndarray[Any, Any] | None = None
    tagged: list[dict[str, Any]] | None = None

    @property
    def rc(self) -> float | None:
        return None if self.scores is None else rationale_consistency(self.scores, len(self.human))


def run(context: Context) -> RecipeOutcome:
    config = context.config
    pairs, unlike = _pairs(context)
    if not pairs:
        raise NothingToScore("no labelled pair has human reasons of the number asked for")
    by_judge: dict[str, list[JudgedReasons]] = {}
    for choice in config.judges:
        facts = context.judge_facts(choice.version)
        by_judge[facts.key] = _said(context, choice.version, facts.key, pairs)
    everything = [each for rows in by_judge.values() for each in rows]
    _match(context, config.matcher, everything, "scores")
    if config.second_matcher:
        _match(context, config.second_matcher, everything, "second")
    if config.flaws:
        _tag_flaws(context, everything)
    found = {judge: _consistency(rows, config.threshold) for judge, rows in by_judge.items()}
    blocks: list[Any] = [_table(found, by_judge), _scatter(found)]
    blocks += _reliability(by_judge) if config.second_matcher else []
    blocks += _shares(by_judge) if config.flaws else []
    best = max(found, key=lambda judge: found[judge].rc.value or 0.0)
    left = [*left_out(context.examples(), ties=False), *unlike]
    return RecipeOutcome(_report(context, found, by_judge, blocks, best, left), [*map(_case, everything), *left])


def _pairs(context: Context) -> tuple[list[tuple[FirstComparison, tuple[str, ...]]], list[FoundCase]]:
    """Labelled pairs with their human reasons, and a case for each that has too few or too many."""
    config = context.config
    listed = list(labelled_pairs(context.examples(), config.max_pairs, ties=False))
    given = {pair.key: of_example(pair.example, pair=True) for pair in listed}
    reasons = {key: each.human_reasons for key, each in given.items()}
    if config.decomposer:
        written = [replace(e, rationale=_rationale(p, e)) for p, e in zip(listed, given.values(), strict=True)]
        asked = [each for each in written if each.rationale.strip()]
        answers = context.judge(config.decomposer, asked, "taking rationales apart")
        reasons = {a.subject["example"]: tuple(a.parsed["reasons"]) for a in answers if a.parsed is not None}
    kept = [
        (pair, reasons[pair.key])
        for pair in listed
        if config.min_reasons <= len(reasons.get(pair.key, ())) <= config.max_reasons
    ]
    taken = {pair.key for pair, _ in kept}
    unlike = [_unlike(pair, reasons.get(pair.key)) for pair in listed if pair.key not in taken]
    return kept, unlike


def _unlike(pair: FirstComparison, reasons: tuple[str, ...] | None) -> FoundCase:
    why = "its rationale could not be split into reasons" if reasons is None else f"{len(reasons)} human reasons"
    return FoundCase({"example": pair.key, "a": pair.a.id, "b": pair.b.id}, {"left out": why}, [UNLIKE])


def _rationale(pair: FirstComparison, given: JudgeInput) -> str:
    found = pair.example.meta.get("rationale")
    return found if isinstance(found, str) and found.strip() else given.rationale


def _said(
    context: Context, version: int, judge: str, pairs: Sequence[tuple[FirstComparison, tuple[str, ...]]]
) -> list[JudgedReasons]:
    """Reasons and verdict of the first sample in the order that the judge saw first: both belong to one answer."""
    inputs = [of_example(pair.example, pair=True) for pair, _ in pairs]
    answers = context.judge(version, inputs, f"{judge} on {with_noun(len(inputs), 'pairs')}")
    first: dict[str, JudgedQuestion] = {}
    for answer in answers:
        first.setdefault(answer.subject["example"], answer)
    found = []
    for pair, human in pairs:
        given = first.get(pair.key)
        parsed = None if given is None or given.parsed is None else unswapped(given.parsed, given.subject["order"])
        model = None if parsed is None else tuple(parsed["reasons"])
        ids = [given.id] if given and given.id else []
        found.append(JudgedReasons(judge, pair, human, model, None if parsed is None else parsed["strength"], ids))
    return found


def _match(context: Context, version: int, sampled: Sequence[JudgedReasons], name: str) -> None:
    """Fills `name` with the matrix, human x model; a judge without reasons has a matrix without columns."""
    asked = []
    for place, each in enumerate(sampled):
        if each.model == ():
            setattr(each, name, np.zeros((len(each.human), 0)))
        elif each.model:
            subject = {"place": place}
            conversation = each.pair.example.prompt
            asked.append(
                JudgeInput(
                    each.pair.key, conversation, human_reasons=each.human, model_reasons=each.model, subject=subject
                )
            )
    for answer in context.judge(version, asked, "matching reasons"):
        each = sampled[answer.subject["place"]]
        each.ids += [answer.id] if answer.id else []
        if answer.parsed is not None:
            setattr(each, name, np.asarray(answer.parsed["scores"], dtype=np.float64))


def _tag_flaws(context: Context, sampled: Sequence[JudgedReasons]) -> None:
    asked = []
    words = {-2: "A much better", -1: "A better", 0: "tie", 1: "B better", 2: "B much better"}
    for place, each in enumerate(sampled):
        if each.model:
            given = of_example(each.pair.example, pair=True)
            verdict = words.get(each.verdict, "") if each.verdict is not None else ""
            asked.append(replace(given, model_reasons=each.model, verdict=verdict, subject={"place": place}))
    for answer in context.judge(context.config.flaws, asked, "tagging reasons"):
        each = sampled[answer.subject["place"]]
        each.ids += [answer.id] if answer.id else []
        if answer.parsed is not None:
            each.tagged = [answer.parsed["items"].get(str(m)) for m in range(len(each.model or ()))]


def _samples(rows: Sequence[JudgedReasons]) -> list[bench.RationaleSample]:
    """Samples whose reasons could not be matched are left out, and counted in the report."""
    return [
        bench.RationaleSample(each.pair.key, each.scores, len(each.human), each.pair.label, each.verdict)
        for each in rows
        if each.scores is not None
    ]


def _consistency(rows: Sequence[JudgedReasons], threshold: float) -> bench.Consistency:
    """Accuracy counts every answer, a missing one as wrong; unmatched reasons are missing in the other numbers."""
    found = bench.consistency(_samples(rows), threshold)
    lost = sum(each.scores is None for each in rows)
    accuracy = proportion(sum(map(_right, rows)), len(rows), sum(each.verdict is None for each in rows))
    means = {name: getattr(found, name) for name in ("rc", "ap", "hybrid")}
    return replace(found, accuracy=accuracy, **{n: replace(e, missing=e.missing + lost) for n, e in means.items()})


def _table(found: dict[str, bench.Consistency], by_judge: dict[str, list[JudgedReasons]]) -> r.Table:
    rows = []
    for judge, each in found.items():
        mine = tag("judge", judge)
        cells = [
            r.text(judge, mine),
            r.estimate(each.rc, mine, unit="points"),
            r.estimate(each.ap, mine, unit="points"),
        ]
        cells += [r.estimate(each.hybrid, mine, unit="points"), r.estimate(each.accuracy, mine, "wrong")]
        cells.append(
            r.count(sum(e.rc is not None and _hollow(e) for e in by_judge[judge]), mine, "right, other reasons")
        )
        cells += [r.count(each.no_model_reasons, mine, "no reasons")]
        rows.append([*cells, r.count(sum(e.scores is None for e in by_judge[judge]), mine, "not matched")])
    columns = [
        ("Judge", ""),
        ("RC", "share of the human reasons that the judge's first five cover, by the best one-to-one matching"),
        ("AP", "average precision of its reasons in their order"),
        ("Hybrid", "AP where the verdict is right, 0 where it is wrong"),
        ("Accuracy", "verdicts that agree with the label; a missing one is wrong"),
        ("Right, other reasons", f"right with an RC below {LOW:g}"),
        ("No reasons", "answers that give none"),
        ("Not matched", "answers that are missing or that the matcher could not score; left out of RC, AP and hybrid"),
    ]
    note = "Means over pairs with human reasons. Reasons and verdict are those of the judge's first answer."
    return r.Table("Right, and for the right reasons", columns, rows, note)


def _hollow(each: JudgedReasons) -> bool:
    return _right(each) and (each.rc or 0.0) < LOW


def _right(each: JudgedReasons) -> bool:
    return each.verdict is not None and bool(np.sign(each.verdict) == each.pair.label)


def _scatter(found: dict[str, bench.Consistency]) -> r.Scatter:
    points = [
        {"name": j, "x": r.estimate(e.accuracy, tag("judge", j)), "y": r.estimate(e.rc, tag("judge", j), unit="points")}
        for j, e in found.items()
    ]
    note = "Low RC at high accuracy: right for the wrong reasons."
    return r.Scatter("Reasons against verdicts", "accuracy", "rationale consistency (RC)", points, note)


def _reliability(by_judge: dict[str, list[JudgedReasons]]) -> Iterator[r.Table]:
    first, second = {}, {}
    for judge, rows in by_judge.items():
        for each in rows:
            key = f"{judge}\n{each.pair.key}"
            first[key] = each.rc
            second[key] = None if each.second is None else rationale_consistency(each.second, len(each.human))
    found = bench.reliability(first, second)
    cells = [r.estimate(found.r_squared, unit="points"), r.estimate(found.rmse, unit="points")]
    ranks = [
        {judge: _mean([values.get(f"{judge}\n{e.pair.key}") for e in rows]) for judge, rows in by_judge.items()}
        for values in (first, second)
    ]
    ranking = bench.reliability(*ranks).ranking
    note = "RC of each answer by both matchers; the ranking compares the judges by their mean RC."
    yield r.table(
        "Would another matcher say the same?",
        ["Matchers", "R²", "RMSE", "Ranking (Spearman)"],
        [[r.text("Both on the same answers"), *cells, r.estimate(ranking, unit="points")]],
        note,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _shares(by_judge: dict[str, list[JudgedReasons]]) -> Iterator[r.Table]:
    for title, names, key in (
        ("Basis of the reasons", list(CLASSES), "rests_on"),
        ("Flaws of reasons", list(FLAWS), "flaws"),
    ):
        rows = []
        for judge, sampled in by_judge.items():
            tags = [None if item is None else item[key] for each in sampled for item in _items(each)]
            found = bench.shares(tags, names)
            rows.append(
                [
                    r.text(judge, tag("judge", judge)),
                    *[r.estimate(found[name], tag("judge", judge), tag("reason", name)) for name in names],
                ]
            )
        columns = [("Judge", ""), *[(CLASSES.get(name, name), FLAWS.get(name, "")) for name in names]]
        meanings = "; ".join(f"{name} {meaning.partition(':')[0]}" for name, meaning in FLAWS.items())
        note = (
            f"Share of all reasons; a reason may have several: {meanings}."
            if key == "flaws"
            else "Share of all reasons."
        )
        yield r.Table(title, columns, rows, note)


def _items(each: JudgedReasons) -> list[dict[str, Any] | None]:
    return list(each.tagged) if each.tagged is not None else [None] * len(each.model or ())


def _report(
    context: Context,
    found: dict[str, bench.Consistency],
    by_judge: dict[str, list[JudgedReasons]],
    blocks: list[Any],
    best: str,
    left: Sequence[FoundCase],
) -> r.Report:
    entries = []
    for choice in context.config.judges:
        facts = context.judge_facts(choice.version)
        cell = r.estimate(found[facts.key].rc, tag("judge", facts.key), unit="points")
        items = r.measured_on(each.pair.key for each in by_judge[facts.key])
        protocol = str(facts.spec.get("order", ""))
        entries.append(r.Entry(facts.key, cell, facts.version, facts.judge, protocol, **items))
    missing = sum(each.scores is None for rows in by_judge.values() for each in rows)
    unlike = sum(UNLIKE in each.tags for each in left)
    coverage = [
        ("Judges", r.count(len(by_judge))),
        ("Pairs with reasons", r.count(len(by_judge[best]))),
        ("Too few or many reasons", r.count(unlike, UNLIKE, tone="warn" if unlike else "")),
        ("Not matched", r.count(missing, "not matched", tone="warn" if missing else "")),
        *coverage_of(left),
    ]
    shown = r.headline(f"RC of {best}", r.estimate(found[best].rc, tag("judge", best), unit="points"))
    return r.Report(shown, coverage, blocks, entries)


def _case(each: JudgedReasons) -> FoundCase:
    tags = [tag("judge", each.judge), "right" if _right(each) else "wrong"]
    tags += [tag("domain", each.pair.example.domain)] if each.pair.example.domain else []
    tags += ["no reasons"] if each.model == () else []
    tags += ["not matched"] if each.scores is None else ["right, other reasons"] if _hollow(each) else []
    for item in _items(each):
        if item is not None:
            tags += [tag("reason", name) for name in (item["rests_on"], *item["flaws"])]
    words = {-1: "A", 0: "tie", 1: "B"}
    values: dict[str, Any] = {
        "label": words[each.pair.label or 0],
        "verdict": None if each.verdict is None else words[int(np.sign(each.verdict))],
        "RC": each.rc,
        "verdicts": each.ids,
    }
    if each.scores is not None:
        found = match(each.scores[:, :REASONS_AT_EVALUATION])
        values["grid"] = {
            "rows": list(each.human),
            "columns": list(each.model or ()),
            "scores": each.scores.tolist(),
            "matched": [[h, m] for m, h in enumerate(found.human_of_M) if h >= 0],
            "down": "Human reasons",
            "across": "The judge's reasons",
        }
    subject = {"judge": each.judge, "example": each.pair.key, "a": each.pair.a.id, "b": each.pair.b.id}
    return FoundCase(subject, values, tags)


RECIPE = Recipe(
    name="metajudge",
    title="Rationale consistency",
    question="Is the judge right for the reasons people have?",
    summary="Human reasons matched one to one with the judge's: RC, AP and hybrid beside accuracy, the matrix of every pair, classes and flaws.",
    icon="list-checks",
    schema=MetaJudgeConfig,
    run=run,
    measure="Rationale consistency (RC)",
)
