"""Measures accuracy by the number of rubric items and by rounds of refinement (RubricBench, 2025)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainer.contracts import Criterion
from trainer.contracts.plurals import with_noun
from trainer.judges.combine import pair_verdicts
from trainer.judges.inputs import of_example
from trainer.metrics import rubricbench as bench

from ... import report as r
from ..base import Context, tag
from .judged_pairs import SeenPair, criteria_of, ids_by_example, inputs_of

HUMAN_SIZES = (2, 4, 6, 8)
OWN_SIZES = (4, 8, 16, 32)
RUBRIC_SIZES = (1, 4, 8, 16, 32)
MOST_RUBRICS = RUBRIC_SIZES[-1]
MOST_DRAWS = 16  # rubrics per pair; a generator that repeats itself never fills the larger sizes
Criteria = Callable[[SeenPair], tuple[Criterion, ...] | None]


def curves(context: Context, seen: Sequence[SeenPair]) -> Iterator[r.Curve]:
    """The curves that the config asks for."""
    series, notes = [], []
    if context.config.scaling_items:
        series.append(_human_items(context, seen))
        notes.append(
            "Human items are drawn from each rubric."
            if series[-1]["points"]
            else f"No human rubric has {HUMAN_SIZES[0]} items to draw from."
        )
    if context.config.sampled_items:
        found, note = _sampled_items(context, seen)
        series.append(found)
        notes.append(note)
    if series:
        notes.append(
            "Every point of a line rests on the same pairs: those that have this many items at its largest size."
        )
        yield r.Curve("Accuracy by number of items", "items", "accuracy", series, " ".join(notes))
    if context.config.sampled_rubrics:
        yield _by_rubrics(context, seen)
    if context.config.rounds:
        yield _by_rounds(context, seen)


def _asked(context: Context, seen: Sequence[SeenPair], criteria: Criteria, phase: str) -> list[bench.JudgedPair]:
    """Another condition, for a curve; pairs without such a rubric are left out."""
    inputs = inputs_of(seen, criteria)
    answers = context.judge(context.config.rubric_judge, inputs, phase)
    ids = ids_by_example(answers)
    verdicts = {key[0]: verdict.verdict for key, verdict in pair_verdicts(answers).items()}
    asked = {given.example for given in inputs}
    for each in seen:
        each.ids += ids.get(each.pair.key, [])
    return [
        bench.JudgedPair(each.pair.key, each.pair.example.domain, each.label, verdicts.get(each.pair.key))
        for each in seen
        if each.pair.key in asked
    ]


def _series(
    name: str, cases: dict[int, list[bench.JudgedPair]], seen: Sequence[SeenPair], at: str = ""
) -> dict[str, Any]:
    """The series of `cases`; its pairs keep the verdict of every point, so that a point leads to its wrong ones."""
    common = set.intersection(*({each.key for each in listed} for listed in cases.values())) if cases else set()
    by_key = {each.pair.key: each for each in seen if each.pair.key in common}
    points = []
    for size, found in bench.scaling(cases).items():
        words = f"{name}{at} {size}"
        for each in cases[size]:
            if each.key in by_key:
                by_key[each.key].sized[words] = each.verdict
        points.append(r.point(size, found, tag(words, "wrong")))
    return {"name": name, "points": points}


def _human_items(context: Context, seen: Sequence[SeenPair]) -> dict[str, Any]:
    def drawn(size: int) -> Criteria:
        def criteria(each: SeenPair) -> tuple[Criterion, ...] | None:
            found = bench.subsample(each.human, size, context.config.seed, each.pair.key)
            return None if found is None else tuple(found)

        return criteria

    sizes = [size for size in HUMAN_SIZES if any(len(each.human) >= size for each in seen)]
    cases = {size: _asked(context, seen, drawn(size), f"with {size} human items") for size in sizes}
    return _series("human items", cases, seen)


def _sampled_items(context: Context, seen: Sequence[SeenPair]) -> tuple[dict[str, Any], str]:
    """The first this many distinct items of rubrics sampled one after the other; smaller sizes are part of larger ones."""
    most = context.config.sampled_items
    pools, rubrics, note = _pools(context, seen, most)

    def first(size: int) -> Criteria:
        def criteria(each: SeenPair) -> tuple[Criterion, ...] | None:
            pool = pools[each.pair.key]
            return tuple(pool[:size]) if len(pool) >= size else None

        return criteria

    sizes = [size for size in OWN_SIZES if size <= most and any(len(pool) >= size for pool in pools.values())]
    cases = {size: _asked(context, seen, first(size), f"with {size} own items") for size in sizes}
    short = sum(len(pool) < most for pool in pools.values())
    told = f"Own items are those of up to {with_noun(rubrics, 'rubrics')} sampled per pair, each item once."
    if short:
        told += f" {short:,} of {len(pools):,} pairs did not come to {most} different items."
    return _series("own items", cases, seen), f"{told}{note}"


def _pools(context: Context, seen: Sequence[SeenPair], most: int) -> tuple[dict[str, list[Criterion]], int, str]:
    """Distinct items per pair, the largest number of rubrics sampled for them, and a remark."""
    pools: dict[str, list[Criterion]] = {each.pair.key: [] for each in seen}
    for each in seen:
        _pour(pools[each.pair.key], each.own)
    if not _samples(context):
        return pools, 1, " The generator samples at temperature 0, so all its rubrics would be the same."
    draw = 1
    while draw < MOST_DRAWS and (short := [each for each in seen if len(pools[each.pair.key]) < most]):
        inputs = [replace(of_example(each.pair.example, pair=True), criteria=()) for each in short]
        for answer in context.judge(context.config.generator, inputs, f"sampling rubric {draw + 1}", draw):
            _pour(pools[answer.subject["example"]], criteria_of(answer))
        draw += 1
    return pools, draw, ""


def _samples(context: Context) -> bool:
    """Whether another draw of the generator can give another rubric."""
    sampling = context.judge_facts(context.config.generator).spec.get("sampling") or {}
    return bool(sampling.get("temperature"))


def _by_rubrics(context: Context, seen: Sequence[SeenPair]) -> r.Curve:
    """Each rubric is used alone for a verdict, and the majority of the verdicts counts; a tie among them is a tie, which is wrong."""
    title, x = "Accuracy by number of rubrics", "rubrics"
    if not _samples(context):
        note = "The generator samples at temperature 0, so all its rubrics would be the same."
        return r.Curve(title, x, "accuracy", [{"name": "own rubrics", "points": []}], note)
    # rubrics beyond the last point of the curve would not be used
    most = max(size for size in RUBRIC_SIZES if size <= context.config.sampled_rubrics)
    asked = [bench.JudgedPair(each.pair.key, each.pair.example.domain, each.label, None) for each in seen]
    votes: dict[str, list[int]] = {}
    cases: dict[int, list[bench.JudgedPair]] = {}
    for draw in range(most):
        rubrics = _drawn(context, seen, draw)
        for case in _asked(context, seen, _of(rubrics), f"rubric {draw + 1}: judging"):
            votes.setdefault(case.key, []).extend([] if case.verdict is None else [case.verdict])
        if draw + 1 in RUBRIC_SIZES:
            cases[draw + 1] = [replace(case, verdict=_majority(votes[case.key])) for case in asked if case.key in votes]
    note = (
        "The judge judges once with each rubric. The majority of the verdicts counts; a draw is a tie, which is wrong."
    )
    return r.Curve(title, x, "accuracy", [_series("own rubrics", cases, seen)], note)


def _of(rubrics: Mapping[str, tuple[Criterion, ...] | None]) -> Criteria:
    return lambda each: rubrics.get(each.pair.key)


def _drawn(context: Context, seen: Sequence[SeenPair], draw: int) -> dict[str, tuple[Criterion, ...] | None]:
    """The rubrics of one draw by pair; draw 0 is the one of the condition."""
    if not draw:
        return {each.pair.key: each.own for each in seen}
    inputs = [replace(of_example(each.pair.example, pair=True), criteria=()) for each in seen]
    answers = context.judge(context.config.generator, inputs, f"sampling rubric {draw + 1}", draw)
    return {answer.subject["example"]: criteria_of(answer) for answer in reversed(answers)}


def _majority(votes: Sequence[int]) -> int | None:
    """-1 A, 0 a draw, 1 B; None without a verdict."""
    return (sum(votes) > 0) - (sum(votes) < 0) if votes else None


def _pour(pool: list[Criterion], items: tuple[Criterion, ...] | None) -> None:
    """Adds the items whose words are not in the pool yet."""
    known = {_words(item.text) for item in pool}
    for item in items or ():
        if _words(item.text) not in known:
            known.add(_words(item.text))
            pool.append(item.model_copy(update={"id": f"g{len(pool) + 1}"}))


def _words(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")


def _by_rounds(context: Context, seen: Sequence[SeenPair]) -> r.Curve:
    """The generator gets its rubric so far, and is asked to drop vague, doubled or too strict criteria and to add missing ones; it sees
    neither responses nor label."""
    rubrics = {each.pair.key: each.own for each in seen}
    cases = {0: _asked(context, seen, lambda each: each.own, "round 0: judging")}

    def criteria(each: SeenPair) -> tuple[Criterion, ...] | None:
        return rubrics[each.pair.key]

    for number in range(1, context.config.rounds + 1):
        inputs = []
        for each in seen:
            if own := rubrics[each.pair.key]:
                given = of_example(each.pair.example, pair=True)
                inputs.append(replace(given, criteria=(), generated=tuple(item.text for item in own)))
        answers = context.judge(context.config.generator, inputs, f"round {number}: improving rubrics")
        better = {answer.subject["example"]: criteria_of(answer) for answer in reversed(answers)}
        rubrics.update({key: better.get(key) for key in rubrics})
        cases[number] = _asked(context, seen, criteria, f"round {number}: judging")
    note = "In each round the generator improves its own rubric. The same pairs after every round."
    return r.Curve(
        "Accuracy by rounds of refinement", "rounds", "accuracy", [_series("own rubric", cases, seen, ", round")], note
    )
