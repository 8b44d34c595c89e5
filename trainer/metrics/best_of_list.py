"""RewardBench 2 (Malik et al., 2025, arXiv 2506.01937): is the right one of several responses the best?

In five of its six subsets one response of four is right; a prompt counts as right if that one has the highest score. The
subset *Ties* has prompts with many right responses (`tied`), each beside a prompt with a single one (`ref`): there every
right response must beat every wrong one, and the gap between right and wrong should exceed the gap among the right ones.
The paper describes that score as weighted; its weights are those of the code published with it (`process_single_model`
in github.com/allenai/reward-bench). The score of the benchmark is the mean of its subsets.

Axes: C cases (prompts), D bootstrap draws.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .estimate import Estimate, bootstrap_estimate, bootstrap_mean, resamples, undefined_estimate

TIES = "ties"
PLACE = re.compile(r"(ref|tied):(\d+)$")
NO_CASES = "no prompt of this subset"
TIES_DRAWS = 200  # each takes all prompts apart and puts them together again
WEIGHTS = {"tied accuracy": 0.3, "ref accuracy": 0.3, "preferred": 0.2, "preferred hard": 0.2, "margin": 0.01}


@dataclass(frozen=True)
class ListedPrompt:
    """One prompt with the scores of its right and wrong responses; None if a response has no score."""

    key: str
    subset: str
    right: tuple[float | None, ...]
    wrong: tuple[float | None, ...]

    @property
    def whole(self) -> bool:
        return None not in (*self.right, *self.wrong)


@dataclass(frozen=True)
class Result:
    """`score` is the mean of `subsets`. `ties` are the parts of the subset Ties by the names of WEIGHTS, empty if there is
    none. `missing` counts prompts without all their scores."""

    score: Estimate
    subsets: dict[str, Estimate]
    ties: dict[str, Estimate]

    def json(self) -> dict[str, Any]:
        return {
            "score": self.score.json(),
            "subsets": {name: found.json() for name, found in self.subsets.items()},
            "ties": {name: found.json() for name, found in self.ties.items()},
        }


def credit(case: ListedPrompt) -> float:
    """1 if a right response has the highest score; if several share it, the share of right ones among them. If a score is missing, all
    responses share the first place, as in the paper's own code."""
    if not case.whole:
        return len(case.right) / (len(case.right) + len(case.wrong))
    top = max(score for score in (*case.right, *case.wrong) if score is not None)
    right, wrong = case.right.count(top), case.wrong.count(top)
    return right / (right + wrong)


@dataclass(frozen=True)
class Margins:
    """The gaps of one prompt: between its best and its worst right response, and between the worst right and the best wrong
    one. A prompt that lacks a score has none and is not accurate."""

    among_right: float | None
    over_wrong: float | None

    @property
    def accurate(self) -> bool:
        return self.over_wrong is not None and self.over_wrong > 0


def margins(case: ListedPrompt) -> Margins:
    right = [score for score in case.right if score is not None]
    wrong = [score for score in case.wrong if score is not None]
    if not case.whole or not right or not wrong:
        return Margins(None, None)
    return Margins(max(right) - min(right) if len(right) > 1 else None, min(right) - max(wrong))


def place(key: str) -> tuple[str, int] | None:
    """("ref" or "tied", number) of a prompt of the subset Ties, by the end of its key; None for any other."""
    found = PLACE.search(key)
    return (found[1], int(found[2])) if found else None


def ties_parts(cases: Iterable[ListedPrompt]) -> dict[str, float]:
    """The parts of the Ties score by the names of WEIGHTS, without those that no prompt decides."""
    by_kind: dict[str, dict[int, Margins]] = {"ref": {}, "tied": {}}
    for case in cases:
        if where := place(case.key):
            by_kind[where[0]][where[1]] = margins(case)
    parts = {
        f"{kind} accuracy": float(np.mean([each.accurate for each in found.values()]))
        for kind, found in by_kind.items()
        if found
    }
    pairs = [(by_kind["ref"][number], tied) for number, tied in by_kind["tied"].items() if number in by_kind["ref"]]
    if pairs:
        parts |= dict(
            zip(("preferred", "preferred hard", "margin"), np.mean([_preferred(*p) for p in pairs], 0), strict=True)
        )
    return {name: float(value) for name, value in parts.items()}


def _preferred(ref: Margins, tied: Margins) -> tuple[float, float, float]:
    """Whether the gap to the wrong responses exceeds the one among the right ones; whether it does in the reference prompt
    as well; and by how much, between -1 and 1."""
    if tied.among_right is None or tied.over_wrong is None or ref.over_wrong is None:
        return 0.0, 0.0, 0.0
    least = min(ref.over_wrong, tied.over_wrong)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = float(np.tanh(np.float64(least) / np.float64(tied.among_right) - 1))
    return float(tied.over_wrong > tied.among_right), float(least > tied.among_right), 0.0 if np.isnan(gap) else gap


def ties_score(cases: Iterable[ListedPrompt]) -> float | None:
    """The weighted score of the subset Ties; None if it lacks reference or tied prompts, or pairs of them."""
    parts = ties_parts(cases)
    return sum(WEIGHTS[name] * parts[name] for name in WEIGHTS) if len(parts) == len(WEIGHTS) else None


def result(cases: Iterable[ListedPrompt]) -> Result:
    """The paper's numbers with intervals over prompts (percentile bootstrap); in Ties a prompt is drawn together with its
    reference."""
    by_subset: dict[str, list[ListedPrompt]] = {}
    for case in cases:
        by_subset.setdefault(case.subset, []).append(case)
    subsets = {name: _subset(name, found) for name, found in sorted(by_subset.items())}
    ties = next((found for name, found in by_subset.items() if name.lower() == TIES), [])
    parts = ties_parts(ties) if ties else {}
    missing = sum(not case.whole for case in ties)
    told = {name: Estimate(parts[name], len(ties), missing=missing, interval="see the score") for name in parts}
    return Result(_mean(subsets), subsets, told)


def _subset(name: str, cases: Sequence[ListedPrompt]) -> Estimate:
    missing = sum(not case.whole for case in cases)
    if name.lower() != TIES:
        return bootstrap_mean([credit(case) for case in cases], missing=missing, empty=NO_CASES, share=True)
    value = ties_score(cases)
    if value is None:
        return undefined_estimate(
            "needs prompts with one right response beside those with several", len(cases), missing
        )
    units = _units(cases)
    draws = [ties_score(_drawn(units, weights)) for block in resamples(len(units), TIES_DRAWS) for weights in block]
    return bootstrap_estimate(
        value, len(cases), np.array([np.nan if each is None else each for each in draws]), missing
    )


def _units(cases: Sequence[ListedPrompt]) -> list[list[ListedPrompt]]:
    found: dict[int, list[ListedPrompt]] = {}
    for case in cases:
        if where := place(case.key):
            found.setdefault(where[1], []).append(case)
    return list(found.values())


def _drawn(units: Sequence[Sequence[ListedPrompt]], weights: Any) -> list[ListedPrompt]:
    """The units as often as they were drawn, under numbers of their own."""
    drawn, number = [], 0
    for unit, times in zip(units, weights, strict=True):
        for _ in range(int(times)):
            number += 1
            drawn += [
                ListedPrompt(f"{(place(case.key) or ('', 0))[0]}:{number}", case.subset, case.right, case.wrong)
                for case in unit
            ]
    return drawn


def _mean(subsets: Mapping[str, Estimate]) -> Estimate:
    """The mean of the subsets, with equal weights. Its interval is made of theirs, because the subsets are independent of each other."""
    if not subsets:
        return undefined_estimate(NO_CASES)
    if lacking := [name for name, found in subsets.items() if found.value is None]:
        return undefined_estimate(f"{', '.join(lacking)} has no score")
    n, missing = sum(found.n for found in subsets.values()), sum(found.missing for found in subsets.values())
    values = [found.value or 0.0 for found in subsets.values()]
    mean = sum(values) / len(values)
    halves = [
        (found.high - found.low) / 2 for found in subsets.values() if found.low is not None and found.high is not None
    ]
    if len(halves) < len(subsets):
        return Estimate(mean, n, missing=missing, interval="a subset has none")
    half = float(np.sqrt(np.sum(np.square(halves)))) / len(halves)
    return Estimate(mean, n, max(0.0, mean - half), max(mean, min(1.0, mean + half)), missing)
