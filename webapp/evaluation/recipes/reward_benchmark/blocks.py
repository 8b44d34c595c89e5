"""The tables of a reward benchmark, and the cases behind their numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.metrics import best_of_list, rm_bench
from trainer.metrics.estimate import Estimate, undefined_estimate

from ... import report as r
from ..base import FoundCase, tag
from .groups import PreferenceGroup, TriedScorer, listed_case, styled_case

STYLE_WORDS = {"concise": "concise", "detailed_plain": "detailed", "detailed_markdown": "detailed, Markdown"}
LEVEL_HELP = {
    "easy": "the right response has the richer style",
    "normal": "both have the same style",
    "hard": "the wrong response has the richer style",
}
PART_HELP = {
    "tied accuracy": "every right response above every wrong one, if several are right",
    "ref accuracy": "the same, if one is right",
    "preferred": "the gap to the wrong ones exceeds the gap among the right ones",
    "preferred hard": "and exceeds it in the prompt with one right response as well",
    "margin": "by how much, from -1 to 1",
}
HOW = {
    "scores": "scores of responses",
    "ratings": "ratings from 1 to 10",
    "both": "compared in both orders",
    "given": "compared once, in the given order",
    "swapped": "compared once, in the swapped order",
}
NO_SCORES = "compared in pairs, so no response has a score of its own: rate it with a pointwise judge"
WON, LOST, MISSING = "right", "wrong", "missing"


@dataclass(frozen=True)
class MeasuredScorer:
    """A scorer with its numbers; either part is None if the dataset has no such prompts."""

    tried: TriedScorer
    styled: rm_bench.RmBenchAccuracy | None
    listed: best_of_list.Result | None
    missing: int

    @property
    def headline(self) -> Estimate:
        if self.styled:
            return self.styled.average
        return self.listed.score if self.listed else undefined_estimate("nothing was scored")

    @property
    def cell(self) -> r.Cell:
        return r.estimate(self.headline, tag("model", self.tried.name), LOST)


def entry(found: MeasuredScorer, groups: Sequence[PreferenceGroup]) -> r.Entry:
    """The entry. A scorer that was asked in another way, or on other prompts, is on another board or without a place."""
    tried = found.tried
    items = r.measured_on(group.key for group in groups)
    return r.Entry(tried.name, found.cell, tried.version, tried.judge, protocol=tried.protocol, **items)


def measure(measured: MeasuredScorer) -> str:
    return "RM-Bench average" if measured.styled else "Best of a list"


def measured(
    tried: TriedScorer, styled: Sequence[PreferenceGroup], listed: Sequence[PreferenceGroup]
) -> MeasuredScorer:
    comparisons = [styled_case(group, tried) for group in styled]
    lists = [listed_case(group, tried) for group in listed if scorable(group, tried)]
    missing = sum(won is None for case in comparisons for row in case.wins_33 for won in row)
    missing += sum(not case.whole for case in lists)
    found = best_of_list.result(lists) if listed else None
    unscored = {group.example.domain for group in listed} - set(found.subsets if found else ())
    if found and unscored:
        lacking = {name: undefined_estimate(NO_SCORES) for name in unscored}
        score = undefined_estimate(f"{', '.join(sorted(unscored))}: {NO_SCORES}")
        found = best_of_list.Result(score, {**found.subsets, **lacking}, found.ties)
    return MeasuredScorer(tried, rm_bench.accuracy(comparisons) if styled else None, found, missing)


def scorable(group: PreferenceGroup, tried: TriedScorer) -> bool:
    """Whether the group can be scored: comparisons identify the best of a list only if one response is right."""
    return tried.scores is not None or (len(group.right) == 1 and not group.tied)


def rm_bench_tables(found: Sequence[MeasuredScorer]) -> Iterator[r.Table]:
    rows, domains = [], sorted({name for each in found if each.styled for name in each.styled.domains})
    for each in found:
        if each.styled:
            mine = tag("model", each.tried.name)
            cells = [
                r.text(each.tried.name, mine),
                r.text(HOW.get(each.tried.protocol, each.tried.protocol)),
                r.estimate(each.styled.average, mine, LOST),
            ]
            cells += [r.estimate(each.styled.levels[level], mine, level, LOST) for level in rm_bench.LEVELS]
            cells += [r.estimate(each.styled.domains[name], mine, tag("domain", name), LOST) for name in domains]
            rows.append(cells)
    if not rows:
        return
    columns = [("Model", ""), ("How", ""), ("Average", "mean of the domains")]
    columns += [(level.capitalize(), f"{LEVEL_HELP[level]}; mean over the domains") for level in rm_bench.LEVELS]
    columns += [(name, "mean of easy, normal and hard") for name in domains]
    note = "A comparison is won if the right response is preferred; a tie is not won. Numbers lead to the comparisons lost."
    yield r.table("RM-Bench", columns, rows, note)
    for each in found:
        if each.styled:
            yield _matrix(each.tried.name, each.styled.matrix_33)


def _matrix(name: str, matrix_33: Sequence[Sequence[Estimate]]) -> r.Table:
    mine = tag("model", name)
    rows = [
        [r.text(f"right: {STYLE_WORDS[style]}")]
        + [
            r.estimate(cell, mine, _cell_tag(style, other), LOST)
            for other, cell in zip(rm_bench.STYLES, row, strict=True)
        ]
        for style, row in zip(rm_bench.STYLES, matrix_33, strict=True)
    ]
    columns = [("Style", ""), *((f"wrong: {STYLE_WORDS[style]}", "") for style in rm_bench.STYLES)]
    return r.table(f"Styles: {name}", columns, rows, "Above the diagonal the wrong response has the richer style.")


def _cell_tag(right: str, wrong: str) -> str:
    return f"{right} over {wrong}"


def list_tables(found: Sequence[MeasuredScorer]) -> Iterator[r.Table]:
    rows, subsets = [], sorted({name for each in found if each.listed for name in each.listed.subsets})
    for each in found:
        if each.listed:
            mine = tag("model", each.tried.name)
            cells = [
                r.text(each.tried.name, mine),
                r.text(HOW.get(each.tried.protocol, each.tried.protocol)),
                r.estimate(each.listed.score, mine, LOST),
            ]
            cells += [r.estimate(each.listed.subsets[name], mine, tag("subset", name), LOST) for name in subsets]
            rows.append(cells)
    if not rows:
        return
    columns = [("Model", ""), ("How", ""), ("Score", "mean of the subsets")]
    columns += [(name or "no subset", "the right response is the best of its list") for name in subsets]
    note = (
        "Responses that share the highest score share the point; a list that lacks a score counts as one on which all are "
        "level, as in the benchmark's own code. Ties is the weighted score below."
    )
    yield r.table("Best of a list", columns, rows, note)
    if any(each.listed and each.listed.ties for each in found):
        yield _ties(found)


def _ties(found: Sequence[MeasuredScorer]) -> r.Table:
    rows = []
    for each in found:
        parts = each.listed.ties if each.listed else {}
        mine = tag("model", each.tried.name)
        none = undefined_estimate(NO_SCORES)
        cells: list[Any] = [r.text(each.tried.name, mine)]
        cells += [
            r.estimate(
                parts.get(name, none), mine, tag("subset", "Ties"), unit="number" if name == "margin" else "share"
            )
            for name in best_of_list.WEIGHTS
        ]
        rows.append(cells)
    columns = [
        ("Model", ""),
        *((f"{name} · {weight:g}", PART_HELP[name]) for name, weight in best_of_list.WEIGHTS.items()),
    ]
    return r.table("Ties", columns, rows, "The number beside each part is its weight.")


def cases(
    found: MeasuredScorer, styled: Sequence[PreferenceGroup], listed: Sequence[PreferenceGroup]
) -> Iterator[FoundCase]:
    """A case for each comparison of RM-Bench, and one for each list."""
    for group in styled:
        yield from _comparisons(group, found.tried)
    for group in listed:
        if scorable(group, found.tried):
            yield _list(group, found.tried)


def _comparisons(group: PreferenceGroup, tried: TriedScorer) -> Iterator[FoundCase]:
    wins_33 = styled_case(group, tried).wins_33
    for i, right in enumerate(group.right):
        for j, wrong in enumerate(group.wrong):
            won = wins_33[i][j]
            level = "normal" if i == j else "easy" if i > j else "hard"
            tags = [tag("model", tried.name), tag("domain", rm_bench.domain_of(group.example.domain)), level]
            tags += [_cell_tag(rm_bench.STYLES[i], rm_bench.STYLES[j]), WON if won else LOST]
            tags += [MISSING] if won is None else []
            subject = {"judge": tried.name, "example": group.key, "a": right.id, "b": wrong.id}
            yield FoundCase(subject, {**_said(group, tried, [right.id, wrong.id]), "won": won}, tags)


def _list(group: PreferenceGroup, tried: TriedScorer) -> FoundCase:
    case = listed_case(group, tried)
    points = best_of_list.credit(case)
    won = best_of_list.margins(case).accurate if group.tied else points == 1
    tags = [tag("model", tried.name), tag("subset", group.example.domain), WON if won else LOST]
    tags += [] if case.whole else [MISSING]
    subject = {"judge": tried.name, "example": group.key}
    responses = [each.id for each in (*group.right, *group.wrong)]
    return FoundCase(subject, {**_said(group, tried, responses), "points": round(points, 4)}, tags)


def _said(group: PreferenceGroup, tried: TriedScorer, responses: Sequence[str]) -> dict[str, Any]:
    """The scores of these responses; for a judge also its verdicts on the prompt."""
    found: dict[str, Any] = {"verdicts": tried.verdicts[group.key]} if group.key in tried.verdicts else {}
    if tried.scores is not None:
        found["scores"] = {each: tried.scores.get((group.key, each)) for each in responses}
    return found
