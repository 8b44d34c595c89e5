"""Audit of pairwise judges asked in both orders (JudgeBench, 2024).

Sides: -1 A is better, 0 tie, 1 B is better; None if the verdict is missing. Axes: C cases, S samples of one case.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any, Literal

import numpy as np

from trainer.judges.combine import majority

from .agreement import cohen
from .estimate import Estimate, Floats, bootstrap_mean, bootstrap_ratio, numbers, proportion, undefined_estimate

LENGTH_RATIO = 1.5
OVERALL = "overall"
_ABSENT = 2  # packed in place of a side


@dataclass(frozen=True)
class AuditCase:
    """One pair judged by one judge. `swapped` is the verdict that the judge gave with the responses in swapped order."""

    judge: str
    pair: str
    group: str
    label: int
    given: int | None
    swapped: int | None


@dataclass(frozen=True)
class Audit:
    """Accuracies are over all `n` cases: a missing verdict is wrong and is counted in `missing` of each estimate.

    `order_consistency` and `kappa_orders` are over the pairs with both verdicts, `first_position_share` over the
    verdicts that name a side. `missing`: the number of missing verdicts, by order, either and both.
    """

    n: int
    missing: dict[str, int]
    accuracy_given: Estimate
    accuracy_swapped: Estimate
    accuracy_both: Estimate
    accuracy_net: Estimate
    accuracy_random: Estimate
    order_consistency: Estimate
    first_position_share: Estimate
    kappa_orders: Estimate

    def json(self) -> dict[str, Any]:
        estimates = {name: found.json() for name, found in vars(self).items() if isinstance(found, Estimate)}
        return {"n": self.n, "missing": self.missing, **estimates}


def audit(cases: Iterable[AuditCase]) -> list[tuple[str, str | None, Audit]]:
    """(judge, group, audit) per judge and group, sorted, and per judge over all groups with None for the group.

    Reads `cases` once; three bytes of each are kept.
    """
    grouped: dict[str, dict[str, array[int]]] = defaultdict(lambda: defaultdict(lambda: array("b")))
    for case in cases:
        grouped[case.judge][case.group].extend(pack((case.label, case.given, case.swapped)))
    return audit_packed(grouped)


def pack(sides: Iterable[int | None]) -> list[int]:
    """Sides as bytes: `audit_packed` reads label, verdict and swapped verdict of one case after the other."""
    return [_ABSENT if side is None else side for side in sides]


def audit_packed(grouped: Mapping[str, Mapping[str, "array[int]"]]) -> list[tuple[str, str | None, Audit]]:
    """Like `audit`, of packed cases by judge and group."""
    found: list[tuple[str, str | None, Audit]] = []
    for judge, groups in sorted(grouped.items()):
        found += [(judge, group, _measured(*_columns([rows]))) for group, rows in sorted(groups.items())]
        found.append((judge, None, _measured(*_columns(groups.values()))))
    return found


def _columns(packed: Iterable["array[int]"]) -> tuple[Floats, Floats, Floats]:
    """Labels, verdicts and swapped verdicts as the judge gave them; NaN if there is none."""
    rows_C3 = np.concatenate([np.frombuffer(rows, dtype=np.int8).reshape(-1, 3) for rows in packed]).astype(float)
    rows_C3[rows_C3 == _ABSENT] = np.nan
    return rows_C3[:, 0], rows_C3[:, 1], rows_C3[:, 2]


def measures(cases: Sequence[AuditCase]) -> Audit:
    """Accuracy, order consistency and position bias of one judge on `cases`.

    `accuracy_both`: right in both orders. `accuracy_net`: more votes for the label than against it (JudgeBench).
    `accuracy_random`: the order of each pair drawn at random, in expectation.
    """
    columns = (numbers(getattr(case, side) for case in cases) for side in ("label", "given", "swapped"))
    return _measured(*columns)


def _measured(label_C: Floats, given_C: Floats, said_C: Floats) -> Audit:
    swapped_C = -said_C
    absent_given_C, absent_swapped_C = np.isnan(given_C), np.isnan(said_C)
    either_C = absent_given_C | absent_swapped_C
    right_C, right_swapped_C = given_C == label_C, swapped_C == label_C

    def share(right: Any, absent: Any) -> Estimate:
        return proportion(int(right.sum()), len(label_C), int(absent.sum()))

    return Audit(
        n=len(label_C),
        missing={
            "given": int(absent_given_C.sum()),
            "swapped": int(absent_swapped_C.sum()),
            "either": int(either_C.sum()),
            "both": int((absent_given_C & absent_swapped_C).sum()),
        },
        accuracy_given=share(right_C, absent_given_C),
        accuracy_swapped=share(right_swapped_C, absent_swapped_C),
        accuracy_both=share(right_C & right_swapped_C, either_C),
        accuracy_net=share(net_votes(label_C, given_C, swapped_C) > 0, either_C),
        accuracy_random=bootstrap_mean((right_C + 1.0 * right_swapped_C) / 2, int(either_C.sum()), share=True),
        order_consistency=_consistency(given_C, swapped_C, ~either_C),
        first_position_share=_first_position(given_C, said_C),
        kappa_orders=_kappa(given_C, swapped_C, ~either_C),
    )


def net_votes(label_C: Floats, given_C: Floats, swapped_C: Floats) -> Floats:
    """Sum over both orders of +1 for the label, -1 for its opposite, 0 for half-way or missing verdicts."""
    votes_C = np.zeros(len(label_C))
    for verdict_C in (given_C, swapped_C):
        votes_C += np.where(np.isnan(verdict_C), 0, 1 - np.abs(verdict_C - label_C))
    return votes_C


def _consistency(given_C: Floats, swapped_C: Floats, both_C: Any) -> Estimate:
    same = int((given_C == swapped_C)[both_C].sum())
    return proportion(same, int(both_C.sum()), int((~both_C).sum()), "no pair has verdicts in both orders")


def _first_position(given_C: Floats, said_C: Floats) -> Estimate:
    """Share of decided verdicts that name the response shown first; a pair's two verdicts are resampled together."""
    first_C = (given_C == -1).astype(float) + (said_C == -1)
    decided_C = (np.abs(given_C) == 1).astype(float) + (np.abs(said_C) == 1)
    absent = int(np.isnan(given_C).sum() + np.isnan(said_C).sum())
    return bootstrap_ratio(first_C, decided_C, missing=absent, empty="no verdict names a side", share=True)


def _kappa(given_C: Floats, swapped_C: Floats, both_C: Any) -> Estimate:
    """Cohen's kappa (1960) between the two orders' verdicts, after un-swapping."""
    absent = int((~both_C).sum())
    if not both_C.any():
        return undefined_estimate("no pair has verdicts in both orders", missing=absent)
    found = cohen([(int(g), int(s)) for g, s in zip(given_C[both_C], swapped_C[both_C], strict=True)])
    return Estimate(**{**vars(found), "missing": absent})


def kappa_with_labels(labels_C: Sequence[int], verdicts_C: Sequence[int | None]) -> Estimate:
    """Cohen's kappa (1960) between labels and verdicts, over the verdicts that exist; those missing are counted."""
    pairs = [(label, said) for label, said in zip(labels_C, verdicts_C, strict=True) if said is not None]
    absent = len(labels_C) - len(pairs)
    if not pairs:
        return undefined_estimate("no pair has a verdict", missing=absent)
    return replace(cohen(pairs), missing=absent)


Slice = Literal["longer is worse", "similar length", "longer is better"]


def length_slice(chosen: int, rejected: int, ratio: float = LENGTH_RATIO) -> Slice:
    """The slice of a pair by rejected / chosen length: >= `ratio`, <= 1 / `ratio` or between.

    Multiplied out, so that an empty response divides nothing; two empty ones are similar.
    """
    if rejected >= ratio * chosen and rejected > chosen:
        return "longer is worse"
    if chosen >= ratio * rejected and chosen > rejected:
        return "longer is better"
    return "similar length"


def format_slice(chosen: str, rejected: str) -> str:
    """The slice of a pair by which response has more marks of formatting."""
    more = formatting(rejected) - formatting(chosen)
    return "rejected is formatted more" if more > 0 else "chosen is formatted more" if more < 0 else "formatted alike"


def formatting(text: str) -> int:
    """Lines that are a heading, list item, table row, quotation or code fence, plus spans set in bold."""
    marks = ("#", "- ", "* ", "+ ", "|", "> ", "```")
    lines = [line.strip() for line in text.splitlines()]
    listed = sum(line.startswith(marks) or _numbered(line) for line in lines)
    return listed + text.count("**") // 2


def _numbered(line: str) -> bool:
    head, dot, rest = line.partition(". ")
    return bool(dot and rest) and head.isdigit()


def by_slice(slices_C: Sequence[str], labels_C: Sequence[int], verdicts_C: Sequence[int | None]) -> dict[str, Estimate]:
    """Accuracy per slice, in order of names; a missing verdict is wrong and counted. For pairs whose label is a side."""
    total, right, absent = Counter(slices_C), Counter[str](), Counter[str]()
    for name, label, verdict in zip(slices_C, labels_C, verdicts_C, strict=True):
        right[name] += verdict == label
        absent[name] += verdict is None
    return {name: proportion(right[name], total[name], absent[name]) for name in sorted(total)}


def vote(samples_S: Iterable[int | None]) -> int | None:
    """The side that most samples name; if several have as many votes, a tie. Missing samples do not vote; None without any."""
    found = majority(list(samples_S))
    return 0 if found.drawn else found.value


def voting_curve(
    labels_C: Sequence[int], samples_CS: Sequence[Sequence[int | None]], ks: Iterable[int]
) -> dict[int, Estimate]:
    """Accuracy of the majority of k samples, for each k: its expectation over all ways to draw k of a case's samples.

    Without sampling noise, as pass@k is (Chen et al., 2021). Cases with fewer than k samples leave that k and are
    counted in `missing`; a missing sample is a sample that does not vote.
    """
    curve = {}
    for k in ks:
        if k < 1:
            raise ValueError(f"k: {k} samples cannot vote")
        enough = [(label, samples) for label, samples in zip(labels_C, samples_CS, strict=True) if len(samples) >= k]
        chances = [_chance(label, _counts(samples), k) for label, samples in enough]
        curve[k] = bootstrap_mean(chances, len(labels_C) - len(enough), f"no case has {k} samples", share=True)
    return curve


def _counts(samples_S: Sequence[int | None]) -> tuple[int, int, int, int]:
    found = Counter(samples_S)
    return found[-1], found[0], found[1], found[None]


@lru_cache(maxsize=100_000)
def _chance(label: int, counts: tuple[int, int, int, int], k: int) -> float:
    """Chance that the vote of k samples drawn without replacement is `label`, from the counts of A, tie, B, missing."""
    a, tie, b, absent = counts
    ways = 0
    for i in range(min(a, k) + 1):
        for j in range(min(tie, k - i) + 1):
            for m in range(min(b, k - i - j) + 1):
                silent = k - i - j - m
                if silent <= absent and _majority(i, j, m) == label:
                    ways += comb(a, i) * comb(tie, j) * comb(b, m) * comb(absent, silent)
    return ways / comb(sum(counts), k)


def _majority(a: int, tie: int, b: int) -> int | None:
    most = max(a, tie, b)
    if not most:
        return None
    return 0 if (a, tie, b).count(most) > 1 else (-1, 0, 1)[(a, tie, b).index(most)]


@dataclass(frozen=True)
class HumanRange:
    """`judge`: the chance that the judge says the same as a random person; `humans`: that two random people say the same.

    Both on the same items: those with a verdict of the judge and of two people or more. `difference` is paired.
    `place` says where that interval lies: below, within or above the agreement of people with each other.
    """

    judge: Estimate
    humans: Estimate
    difference: Estimate
    raters: dict[str, Estimate]
    place: Literal["below", "within", "above", "undefined"]


def human_range(
    judge: Mapping[str, object | None],
    humans: Mapping[str, Mapping[str, object]],
    clusters: Mapping[str, object] | None = None,
) -> HumanRange:
    """Is the judge within the human range? `judge[item]` and `humans[item][rater]` are values; None is missing.

    `raters`: each person's agreement with the others on these items, the same way. `clusters[item]`: items that are
    resampled together, such as the criteria of one prompt.
    """
    two = {item: given for item, given in humans.items() if len(given) > 1}
    items = [item for item in two if judge.get(item) is not None]
    absent = len(two) - len(items)
    reason = "no item has a verdict of the judge and of two people"
    with_judge = [_same(judge[item], list(two[item].values())) for item in items]
    among = [_pairwise(list(two[item].values())) for item in items]
    together = [item if clusters is None else clusters[item] for item in items]
    alone: dict[str, list[tuple[float, object]]] = defaultdict(list)
    for item, cluster in zip(items, together, strict=True):
        for rater, value in two[item].items():
            shares = _same(value, [other for who, other in two[item].items() if who != rater])
            alone[rater].append((shares, cluster))

    def mean(values: Sequence[float], of: Sequence[object], missing: int = 0, *, share: bool = True) -> Estimate:
        return bootstrap_ratio(values, [1.0] * len(values), clusters=of, missing=missing, empty=reason, share=share)

    apart = [j - h for j, h in zip(with_judge, among, strict=True)]
    difference = mean(apart, together, absent, share=False)
    return HumanRange(
        judge=mean(with_judge, together, absent),
        humans=mean(among, together, absent),
        difference=difference,
        raters={rater: mean([s for s, _ in rows], [c for _, c in rows]) for rater, rows in sorted(alone.items())},
        place=_place(difference),
    )


def _same(value: object, others: Sequence[object]) -> float:
    return sum(value == other for other in others) / len(others)


def _pairwise(values: Sequence[object]) -> float:
    pairs = list(combinations(values, 2))
    return sum(a == b for a, b in pairs) / len(pairs)


def _place(difference: Estimate) -> Literal["below", "within", "above", "undefined"]:
    if difference.low is None or difference.high is None:
        return "undefined"
    return "below" if difference.high < 0 else "above" if difference.low > 0 else "within"
