"""Rankings from pairwise outcomes: Bradley-Terry strengths with intervals (Bradley and Terry, 1952; Hunter, 2004).

Axes: N items, C comparisons, P distinct kinds of comparison, D bootstrap draws.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from .estimate import (
    Estimate,
    Floats,
    bootstrap_estimate,
    bootstrap_ratio,
    clustered,
    resampled_kinds,
    resamples,
    undefined_estimate,
)

MAX_STEPS = 20_000
PRECISE, ROUGH = 1e-10, 1e-6  # change of a log strength per step at which to stop: for the estimate, for its draws


@dataclass(frozen=True)
class Comparison:
    """`outcome`: -1 the first is better, 0 tie, 1 the second is better; None if there is no verdict."""

    first: str
    second: str
    outcome: int | None


@dataclass(frozen=True)
class Ranked:
    """`strength`: log odds, with mean 0 over its group; two of one group meet with win odds exp(difference).

    `win_rate`: wins plus half the ties over the item's comparisons. `group`: 0 is the highest; see `Ranking.problem`.
    """

    item: str
    group: int
    wins: int
    ties: int
    losses: int
    win_rate: Estimate
    strength: Estimate


@dataclass(frozen=True)
class StrengthRanking:
    """Items from the strongest down. `problem` is "" or says why strengths of different groups do not compare."""

    items: tuple[Ranked, ...]
    comparisons: int
    missing: int
    problem: str

    def json(self) -> dict[str, Any]:
        items = [{**vars(i), "win_rate": i.win_rate.json(), "strength": i.strength.json()} for i in self.items]
        return {**vars(self), "items": items}


def bradley_terry(comparisons: Sequence[Comparison], clusters: Sequence[object] | None = None) -> StrengthRanking:
    """Maximum-likelihood strengths with bootstrap intervals; a tie is half a win for each.

    Finite strengths exist only among items each of which can be reached from every other by a chain of wins or ties
    (Ford, 1957). If these are not all items, each such group has strengths of its own, and `problem` says so. Resamples
    in which a group falls apart have no strengths and leave its intervals. `clusters`: comparisons drawn together, such
    as those on one prompt. Raises ValueError for an item compared with itself.
    """
    if own := next((c.first for c in comparisons if c.first == c.second), None):
        raise ValueError(f"{own!r} is compared with itself")
    decided = [at for at, c in enumerate(comparisons) if c.outcome is not None]
    used = [comparisons[at] for at in decided]
    kept = None if clusters is None else [clusters[at] for at in decided]
    names = sorted({name for c in used for name in (c.first, c.second)})
    place = {name: at for at, name in enumerate(names)}
    wins_NN = np.zeros((len(names), len(names)))
    for c in used:
        _add(wins_NN, place, c)
    group_N, problem = _groups(wins_NN, names)
    draws_DNN = _draws(used, place, kept)
    strength_N = _strengths(wins_NN, draws_DNN, group_N)
    ranked = [_ranked(name, used, kept, int(group_N[at]), strength_N[at]) for name, at in place.items()]
    ranked.sort(key=lambda r: (r.group, -(r.strength.value or 0.0), -(r.win_rate.value or 0.0), r.item))
    return StrengthRanking(tuple(ranked), len(used), len(comparisons) - len(used), problem)


def _add(wins_NN: Floats, place: dict[str, int], c: Comparison) -> None:
    i, j = place[c.first], place[c.second]
    if c.outcome == 0:
        wins_NN[i, j] += 0.5
        wins_NN[j, i] += 0.5
    else:
        winner, loser = (i, j) if (c.outcome or 0) < 0 else (j, i)
        wins_NN[winner, loser] += 1


def _groups(wins_NN: Floats, names: list[str]) -> tuple[NDArray[np.intp], str]:
    """The strongly connected group of each item, the highest first, and what that means for the ranking."""
    if not names:
        return np.zeros(0, dtype=np.intp), ""
    count, label_N = scipy.sparse.csgraph.connected_components(wins_NN > 0, directed=True, connection="strong")
    if count == 1:
        return np.zeros(len(names), dtype=np.intp), ""
    rank = _order(wins_NN, label_N, count)
    group_N = np.array([rank[label] for label in label_N], dtype=np.intp)
    apart, _ = scipy.sparse.csgraph.connected_components(wins_NN > 0, directed=False)
    listed = "; ".join(", ".join(names[i] for i in np.flatnonzero(group_N == g)) for g in range(count))
    why = (
        "not compared with each other, not even through others"
        if apart > 1
        else "never beaten by those further down, so no finite strength lies between them"
    )
    return group_N, f"{count} groups whose strengths do not compare ({why}): {listed}"


def _order(wins_NN: Floats, label_N: NDArray[Any], count: int) -> dict[int, int]:
    """Groups from the top: each time the first that no remaining group has beaten."""
    beats = {(int(label_N[i]), int(label_N[j])) for i, j in np.argwhere(wins_NN > 0) if label_N[i] != label_N[j]}
    left = sorted(range(count), key=lambda g: int(np.flatnonzero(label_N == g)[0]))
    rank: dict[int, int] = {}
    while left:
        top = next(g for g in left if not any((other, g) in beats for other in left))
        rank[top] = len(rank)
        left.remove(top)
    return rank


def _draws(used: Sequence[Comparison], place: dict[str, int], clusters: Sequence[object] | None) -> Floats:
    """(D, N, N) wins of each bootstrap sample."""
    n = len(place)
    units = Counter(used) if clusters is None else None
    listed = list(units) if units is not None else list(used)
    rows_CF = np.zeros((len(listed), n, n))
    for row, c in zip(rows_CF, listed, strict=True):
        _add(row, place, c)
    flat_CF = rows_CF.reshape(len(listed), n * n)
    if not listed:
        return np.zeros((0, n, n))
    if units is not None:
        weights = resampled_kinds(np.array([units[c] for c in listed], dtype=np.float64))
        return np.asarray(weights @ flat_CF).reshape(-1, n, n)
    summed = clustered(flat_CF, clusters or [])
    return np.concatenate([w @ summed for w in resamples(len(summed))]).reshape(-1, n, n)


def _strengths(wins_NN: Floats, draws_DNN: Floats, group_N: NDArray[np.intp]) -> list[Estimate]:
    found: list[Estimate] = [undefined_estimate("no comparison")] * len(wins_NN)
    for group in np.unique(group_N):
        members = np.flatnonzero(group_N == group)
        if len(members) == 1:
            reason = "alone: no chain of wins leads from it to the others and back"
            found[members[0]] = undefined_estimate(
                reason, round(float(wins_NN[members[0]].sum() + wins_NN[:, members[0]].sum()))
            )
            continue
        inside = np.ix_(members, members)
        wins = wins_NN[inside]
        log_N = _fit(wins[None], np.zeros((1, len(members))), PRECISE)[0]
        sampled = draws_DNN[:, members][:, :, members]
        log_DN = np.full((len(sampled), len(members)), np.nan)
        whole_D = _strongly_connected(sampled)
        log_DN[whole_D] = _fit(sampled[whole_D], np.tile(log_N, (int(whole_D.sum()), 1)), ROUGH)
        for at, member in enumerate(members):
            n = round(float(wins[at].sum() + wins[:, at].sum()))
            found[member] = bootstrap_estimate(log_N[at], n, log_DN[:, at])
    return found


def _fit(wins_DNN: Floats, log_DN: Floats, tolerance: float) -> Floats:
    """(D, N) log strengths of mean 0, by the minorisation-maximisation steps of Hunter (2004), equation 3:

    p_i <- W_i / sum_j n_ij / (p_i + p_j). Every table must be strongly connected.
    """
    met_DNN = wins_DNN + wins_DNN.transpose(0, 2, 1)
    won_DN = wins_DNN.sum(2)
    for _ in range(MAX_STEPS):
        p_DN = np.exp(log_DN)
        next_DN = np.log(won_DN) - np.log((met_DNN / (p_DN[:, :, None] + p_DN[:, None, :])).sum(2))
        next_DN -= next_DN.mean(1, keepdims=True)
        done = not len(log_DN) or float(np.abs(next_DN - log_DN).max()) < tolerance
        log_DN = next_DN
        if done:
            break
    return log_DN


def _strongly_connected(wins_DNN: Floats) -> NDArray[np.bool_]:
    """(D,): whether every item reaches every other over wins, by squaring the relation until it is closed."""
    n = wins_DNN.shape[1]
    reach_DNN = ((wins_DNN > 0) | np.eye(n, dtype=bool)).astype(np.float32)
    steps = 1
    while steps < n:
        reach_DNN = np.minimum(reach_DNN @ reach_DNN, 1.0)
        steps *= 2
    whole: NDArray[np.bool_] = (reach_DNN > 0).all((1, 2))
    return whole


def _ranked(
    name: str, used: Sequence[Comparison], clusters: Sequence[object] | None, group: int, strength: Estimate
) -> Ranked:
    mine = [(at, c) for at, c in enumerate(used) if name in (c.first, c.second)]
    scores = [0.5 if c.outcome == 0 else float(((c.outcome or 0) < 0) == (c.first == name)) for _, c in mine]
    kept = None if clusters is None else [clusters[at] for at, _ in mine]
    return Ranked(
        item=name,
        group=group,
        wins=scores.count(1.0),
        ties=scores.count(0.5),
        losses=scores.count(0.0),
        win_rate=bootstrap_ratio(scores, np.ones(len(scores)), clusters=kept, share=True),
        strength=strength,
    )
