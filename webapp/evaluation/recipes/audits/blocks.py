"""The tables and charts of a judge audit."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any

from trainer.metrics.audit import (
    Audit,
    HumanRange,
    by_slice,
    format_slice,
    human_range,
    kappa_with_labels,
    length_slice,
    measures,
    voting_curve,
)
from trainer.metrics.calibration import BINS, calibration
from trainer.metrics.compare import McNemar, keyed_difference, mcnemar
from trainer.metrics.estimate import Estimate, bootstrap_mean, undefined_estimate

from ... import report as r
from ..base import Context, FoundCase, tag
from ..pairs import FirstComparison, coverage_of

if TYPE_CHECKING:
    from .judge_audit import AuditedPair

Audits = Mapping[str, Sequence["AuditedPair"]]
MEASURES = (
    ("accuracy_net", "Accuracy", "right on balance over both orders; a missing verdict is wrong"),
    ("accuracy_given", "As given", "right with the responses in their given order"),
    ("accuracy_swapped", "Swapped", "right with the responses swapped"),
    ("accuracy_both", "Both orders", "right in both orders"),
    ("order_consistency", "Consistent", "verdicts of both orders that agree after un-swapping"),
    ("first_position_share", "First place", "share of decided verdicts for the response shown first; 50% is unbiased"),
    ("kappa_orders", "Kappa", "Cohen's kappa between the two orders"),
)
LEADS_TO = {
    "accuracy_net": "wrong",
    "accuracy_given": "wrong:given",
    "accuracy_swapped": "wrong:swapped",
    "accuracy_both": "wrong",
    "order_consistency": "inconsistent",
}
ALONE = "alone right"
DISAGREE = "judges disagree"
SEVERAL = "several raters"  # the tag of what two people or more have judged
PLACES = {"below": "below it", "within": "within it", "above": "above it", "undefined": "not known"}
MOST_PEOPLE = 30
VOTES = (1, 3, 5, 7, 9, 15, 31, 63)


def accuracy(found: Estimate, judge: str, *tags: str) -> r.Cell:
    return r.estimate(found, tag("judge", judge), *tags, "wrong")


def measured(rows: Sequence["AuditedPair"]) -> Audit:
    """The audit of the rows. If a judge was asked in one order only, numbers that need both orders are undefined, and no verdict is missing
    for them."""
    found = measures([each.case for each in rows])
    orders = {order for each in rows for order in each.orders}
    if len(orders) > 1:
        return found
    (order,) = orders
    absent, alone = found.missing[order], getattr(found, f"accuracy_{order}")
    unknown = undefined_estimate(f"asked in the {order} order only")
    return Audit(
        n=found.n,
        missing={**dict.fromkeys(found.missing, 0), order: absent, "either": absent},
        accuracy_given=alone if order == "given" else unknown,
        accuracy_swapped=alone if order == "swapped" else unknown,
        accuracy_both=unknown,
        accuracy_net=alone,
        accuracy_random=unknown,
        order_consistency=unknown,
        first_position_share=replace(found.first_position_share, missing=absent),
        kappa_orders=unknown,
    )


def coverage(by_judge: Audits, pairs: int, left: Sequence[FoundCase]) -> list[tuple[str, r.Cell]]:
    audited = [each for rows in by_judge.values() for each in rows]
    verdicts = sum((each.case.given is not None) + (each.case.swapped is not None) for each in audited)
    missing = sum(len(each.orders) for each in audited) - verdicts
    judged = {each.case.pair for each in audited}
    return [
        ("Judges", r.count(len(by_judge))),
        ("Pairs", r.count(len(judged))),
        ("Verdicts", r.count(verdicts)),
        ("Missing verdicts", r.count(missing, "missing", tone="warn" if missing else "")),
        *([("Judges disagree", r.count(sum(e.apart for e in audited), DISAGREE))] if len(by_judge) > 1 else []),
        *([("Pairs of the dataset", r.number(pairs, "count"))] if pairs > len(judged) else []),
        *coverage_of(left),
    ]


def disagreement(saying: Mapping[str, Mapping[Any, object | None]]) -> set[Hashable]:
    """The items on which two judges disagree. `saying[judge][item]` is a verdict. None, no verdict, disagrees with nothing."""
    said: dict[Hashable, set[object]] = defaultdict(set)
    for verdicts in saying.values():
        for item, verdict in verdicts.items():
            said[item] |= {verdict} - {None}
    return {item for item, verdicts in said.items() if len(verdicts) > 1}


def disagreeing(by_judge: Audits) -> set[Hashable]:
    return disagreement({judge: {_key(each): _verdict(each) for each in rows} for judge, rows in by_judge.items()})


PROTOCOLS = ("both", "mixed", "given", "swapped")  # those that say more come first
ASKED = {
    "both": "in both orders",
    "given": "once, in the given order",
    "swapped": "once, in the swapped order",
    "mixed": "some pairs in both orders, some in one",
}


def protocol(rows: Iterable["AuditedPair"]) -> str:
    """The orders in which a judge was asked: a judge that was asked once is never ranked against one that was asked in both orders, because
    being right in both is harder than being right in one."""
    asked = {each.orders for each in rows}
    if len(asked) > 1:
        return "mixed"
    (orders,) = asked
    return "both" if len(orders) > 1 else orders[0]


def judges(measured: Mapping[str, Audit], protocols: Mapping[str, str]) -> r.Table:
    rows = []
    for judge, found in sorted(measured.items(), key=lambda item: PROTOCOLS.index(protocols[item[0]])):
        mine = tag("judge", judge)
        cells = [r.text(judge, mine), r.text(ASKED[protocols[judge]]), r.count(found.n, mine)]
        for name, _, _ in MEASURES:
            leads = [LEADS_TO[name]] if name in LEADS_TO else []
            cells.append(r.estimate(getattr(found, name), mine, *leads, unit="points" if "kappa" in name else "share"))
        rows.append([*cells, r.count(found.missing["either"], mine, "missing")])
    columns = [("Judge", ""), ("Asked", ""), ("Pairs", ""), *[(words, help) for _, words, help in MEASURES]]
    columns.append(("Missing", "pairs without a verdict in at least one order"))
    note = "A number leads to the cases behind it: an accuracy to those the judge got wrong, consistency to those it changed."
    return r.Table("Right, and whichever comes first", columns, rows, note)


def groups(by_judge: Audits) -> Iterator[r.Table]:
    """Groups are rows and judges are columns, because there may be a hundred groups, but not so many judges."""
    mine: dict[tuple[str, str], list[AuditedPair]] = defaultdict(list)
    for judge, audited in by_judge.items():
        for each in audited:
            mine[each.case.group, judge].append(each)
    names = sorted({group for group, _ in mine} - {""})
    if len(names) < 2:
        return
    rows = []
    for group in names:
        cells = [r.text(group, tag("group", group))]
        for judge in sorted(by_judge):
            listed = mine[group, judge]
            found = measured(listed).accuracy_net if listed else undefined_estimate("no pair of this group")
            cells.append(accuracy(found, judge, tag("group", group)))
        rows.append(cells)
    yield r.table("Accuracy by group", ["Group", *sorted(by_judge)], rows)


def comparisons(by_judge: Audits, best: str) -> Iterator[r.Table]:
    """Every judge against the best, on the pairs that both have judged; all of them were asked in the same orders."""
    first = {_asked(each): _right(each) for each in by_judge[best]}
    rows = []
    for judge, audited in sorted(by_judge.items()):
        second = {_asked(each): _right(each) for each in audited}
        common = sorted(first.keys() & second.keys())
        if judge == best or not common:
            continue
        for each in audited:
            if first.get(_asked(each), second[_asked(each)]) != second[_asked(each)]:
                each.beside = judge if second[_asked(each)] else best
        test = mcnemar([first[key] for key in common], [second[key] for key in common])
        difference = keyed_difference({key: first[key] for key in common}, {key: second[key] for key in common})
        rows.append(against(judge, best, difference, test))
    if rows:
        columns = ["Judge", "Difference", "p (McNemar)", f"Only {best} right", "Only this one right"]
        note = (
            f"Accuracy minus that of {best}, paired by pair; the interval is a paired bootstrap, p the exact test of the "
            "pairs that only one of them has right."
        )
        yield r.table(f"Against {best}", columns, rows, note)


def against(judge: str, best: str, difference: Estimate, test: McNemar) -> list[r.Cell]:
    """A judge beside the best one. The numbers lead to its cases; the tag `ALONE` marks those of one judge alone."""
    mine = tag("judge", judge)
    cells = [r.text(judge, mine), r.estimate(difference, mine, unit="gap")]
    cells.append(r.number(test.p, "p", n=test.only_first + test.only_second))
    alone = [(best, test.only_first), (judge, test.only_second)]
    return [*cells, *[r.count(count, mine, tag(ALONE, name)) for name, count in alone]]


def _key(each: "AuditedPair") -> tuple[str, str]:
    return each.case.group, each.case.pair


def _asked(each: "AuditedPair") -> tuple[str, str, tuple[str, ...]]:
    """The pair with the orders in which it was asked: the same pair in other orders is another question."""
    return (*_key(each), each.orders)


def _right(each: "AuditedPair") -> bool:
    """Whether the judge is right on balance over both orders, as the headline counts."""
    swapped = None if each.case.swapped is None else -each.case.swapped
    return sum(1 - abs(side - each.case.label) for side in (each.case.given, swapped) if side is not None) > 0


def _verdict(each: "AuditedPair") -> int | None:
    """The verdict as one side: that of both orders, or 0 if they differ; if only one order has a verdict, that verdict."""
    given, swapped = each.case.given, None if each.case.swapped is None else -each.case.swapped
    if given is None or swapped is None:
        return given if swapped is None else swapped
    return given if given == swapped else 0


def named(raters: Iterable[Mapping[str, object]]) -> set[str]:
    """The people who rated an item that others rated too; empty if they are too many to be listed.

    Each of `raters` is one item: {person: rating}.
    """
    found = {name for each in raters if len(each) > 1 for name in each}
    return found if len(found) <= MOST_PEOPLE else set()


def people(by_judge: Audits, named: Set[str]) -> Iterator[r.Table]:
    """Whether the judge is within the human range, over pairs with two raters or more. `named` are listed one by one."""
    return human_tables(ranges(by_judge), "pairs", named)


def ranges(by_judge: Audits) -> dict[str, HumanRange]:
    """The range of the people's agreement for each judge, over pairs that two people or more have rated."""
    found = {}
    for judge, audited in sorted(by_judge.items()):
        humans = {str(_key(e)): e.pair.raters for e in audited if e.pair and len(e.pair.raters) > 1}
        if humans:
            found[judge] = human_range({str(_key(e)): _verdict(e) for e in audited}, humans)
    return found


def known(rows: Sequence["AuditedPair"], consistency: Estimate) -> dict[str, Any]:
    """The numbers that a licence shows of one judge of pairs, besides its accuracy. A pair on which its two orders differ is a tie."""
    kappa = kappa_with_labels([each.case.label for each in rows], [_verdict(each) for each in rows])
    found = {"kappa": r.estimate(kappa, unit="points"), "order_consistency": r.estimate(consistency)}
    return found | beside_people(ranges({"": rows}).get(""), "pairs")


def beside_people(found: HumanRange | None, items: str) -> dict[str, Any]:
    """The place of the judge among people in a licence, or why it is unknown."""
    if found is None:
        return {"place_why": f"two people or more judged none of these {items}"}
    if found.place == "undefined":
        return {"place_why": found.difference.undefined or found.difference.interval}
    return {"judge": r.estimate(found.judge), "humans": r.estimate(found.humans), "place": found.place}


def human_tables(found: Mapping[str, HumanRange], items: str, named: Set[str]) -> Iterator[r.Table]:
    """Each judge beside the people who rated the same `items`, and how each of these people agrees with the others."""
    rows = []
    for judge, each in found.items():
        mine = [tag("judge", judge), SEVERAL]
        cells = [r.text(judge, *mine), r.estimate(each.judge, *mine), r.estimate(each.humans, *mine)]
        rows.append([*cells, r.estimate(each.difference, *mine, unit="gap"), r.text(PLACES[each.place])])
    if not rows:
        return
    columns = ["Judge", "With a person", "Two people", "Difference", "In the human range?"]
    note = (
        f"How often the judge agrees with a random rater, and how often two random raters agree, on the same {items}: "
        "those with a verdict of the judge and of two people or more. The judge is within the range if the difference may be 0."
    )
    yield r.table("As good as people are?", columns, rows, note)
    people = sorted({rater for each in found.values() for rater in each.raters if rater in named})
    if people:
        rows = [
            [r.text(rater, tag("rater", rater)), *[_of_rater(judge, each, rater) for judge, each in found.items()]]
            for rater in people
        ]
        note = (
            f"How often a person agrees with a random other person, on the {items} on which each judge has a verdict."
        )
        yield r.table("Each person with the others", ["Rater", *[f"Beside {judge}" for judge in found]], rows, note)


def _of_rater(judge: str, found: HumanRange, rater: str) -> r.Cell:
    if rater not in found.raters:
        return r.number(None, why="rated none of these")
    return r.estimate(found.raters[rater], tag("judge", judge), tag("rater", rater))


def slices(pair: FirstComparison) -> list[str]:
    """The groups of the pair by length and format; only a pair whose label is a side has any."""
    if pair.chosen is None or pair.rejected is None:
        return []
    chosen, rejected = pair.chosen.text, pair.rejected.text
    return [length_slice(len(chosen), len(rejected)), format_slice(chosen, rejected)]


def bias(by_judge: Audits) -> Iterator[r.Table]:
    """Accuracy if the worse response is longer, or better formatted: whether the surface of a response misleads the judge."""
    for title, place in (("By length", 0), ("By format", 1)):
        found: dict[str, dict[str, Estimate]] = {}
        for judge, audited in sorted(by_judge.items()):
            sided = [each for each in audited if each.pair and each.pair.chosen and each.case.label]
            where = [slices(each.pair)[place] for each in sided if each.pair]
            if where:
                found[judge] = by_slice(where, [e.case.label for e in sided], [_verdict(e) for e in sided])
        names = sorted({name for each in found.values() for name in each})
        rows = [
            [r.text(judge, tag("judge", judge)), *[_slice(each, name, judge) for name in names]]
            for judge, each in found.items()
        ]
        if rows:
            note = "The verdict is what both orders agree on; a pair they disagree on counts as a tie, and so as wrong."
            yield r.table(f"Accuracy {title.lower()}", ["Judge", *names], rows, note)


def _slice(found: Mapping[str, Estimate], name: str, judge: str) -> r.Cell:
    if name not in found:
        return r.number(None, why="no pair of this kind")
    return r.estimate(found[name], tag("judge", judge), f"slice:{name}")


def voting(by_judge: Audits) -> Iterator[r.Curve]:
    series = []
    for judge, audited in sorted(by_judge.items()):
        most = max((len(each.samples) for each in audited), default=0)
        if most > 1:
            samples = [each.samples for each in audited]
            curve = voting_curve([e.case.label for e in audited], samples, [k for k in VOTES if k <= most])
            series.append(
                {"name": judge, "points": [r.point(k, found, tag("judge", judge)) for k, found in curve.items()]}
            )
    if series:
        note = "Expected accuracy of the majority of k samples in the given order, over all ways to draw them."
        yield r.Curve("Voting", "samples that vote (k)", "accuracy", series, note)


def confidence(by_judge: Audits) -> Iterator[r.Curve | r.Table]:
    """The share of right verdicts, by the share of the pair's votes for each."""
    series, rows = [], []
    for judge, audited in sorted(by_judge.items()):
        stated = [each.confidence for each in audited]
        if all(each is None for each in stated):
            continue
        found = calibration(stated, [_verdict(each) == each.case.label for each in audited])
        mine = tag("judge", judge)
        points = [
            r.point(each.stated, each.happened, mine, tag("confidence", _bin_words(number)))
            for number, each in enumerate(found.bins, 1)
            if each.stated is not None
        ]
        series.append({"name": judge, "points": points})
        rows.append([r.text(judge, mine), *[r.estimate(e, mine, unit="points") for e in (found.error, found.brier)]])
    if series:
        note = "A pair's confidence is the share of its votes, over orders and samples, that stand behind its verdict."
        yield r.Curve("Calibration", "confidence", "right", series, note, diagonal=True)
        yield r.table("Calibration error", ["Judge", "Expected error", "Brier score"], rows)


def bin_of(stated: float) -> str:
    """The bin of the diagram for a confidence."""
    return tag("confidence", _bin_words(min(max(ceil(stated * BINS), 1), BINS)))


def _bin_words(high: int) -> str:
    return f"{(high - 1) / BINS:.0%} to {high / BINS:.0%}"


def spending(ids_by_judge: Mapping[str, Sequence[int]], context: Context) -> Iterator[r.Table]:
    """`ids_by_judge`: the stored verdicts of each judge. One verdict may answer for several pairs of the same content."""
    rows = []
    for judge, given in sorted(ids_by_judge.items()):
        ids = list(dict.fromkeys(given))
        if not ids:
            continue
        spent = context.spent(ids)
        latency = bootstrap_mean(spent.latencies, len(ids) - len(spent.latencies), "no latency was recorded")
        mine = tag("judge", judge)
        cells = [r.text(judge, mine), r.count(len(ids), mine), r.estimate(latency, mine, unit="seconds")]
        cells.append(r.number(spent.tokens, "count", "the endpoint reports no tokens"))
        rows.append([*cells, r.number(spent.cost, "money", "the endpoint has no prices")])
    if rows:
        note = "For every verdict behind these numbers: whether the judge was asked now, or the verdict was found in the store."
        yield r.table("Cost and latency", ["Judge", "Verdicts", "Latency", "Tokens", "Cost"], rows, note)


def verdict_ids(by_judge: Audits) -> dict[str, list[int]]:
    return {judge: [verdict for each in audited for verdict in each.verdicts] for judge, audited in by_judge.items()}
