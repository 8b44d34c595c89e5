"""Measures of a policy's responses: success, best of n, scores, wins, length, novelty, diversity.

First the measures of one prompt's responses, where undefined is NaN or an error, never 0; then, as estimates, their
means over prompts. Axes: N responses, T generated tokens, V vocabulary, D embedding, P prompts.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .estimate import (
    MAX_NUMBERS,
    SINGLE_GROUP,
    Estimate,
    bootstrap_estimate,
    bootstrap_mean,
    bootstrap_ratio,
    numbers,
    resamples,
    share_over_clusters,
    undefined_estimate,
)

Floats = NDArray[np.float64]


def pass_at_k(responses: int, correct: int, k: int) -> float:
    """The chance that k of the responses, drawn without replacement, have a correct one: 1 - C(n-c, k) / C(n, k).

    Unbiased (Chen et al., Codex, 2021). Raises ValueError if k is not in 1..n: no estimate exists.
    """
    if not 0 <= correct <= responses:
        raise ValueError(f"correct: {correct} of {responses} responses")
    if not 1 <= k <= responses:
        raise ValueError(f"k: {k} drawn from {responses} responses")
    return 1.0 - math.comb(responses - correct, k) / math.comb(responses, k)


def best_of_n(scores_N: ArrayLike, n: int) -> float:
    """Expected highest score of n responses drawn without replacement: the Best-of-N curve without sampling noise.

    sum_i C(i-1, n-1) / C(N, n) s_(i) over scores in ascending order: s_(i) is the highest of C(i-1, n-1) draws. With
    scores of 0 and 1 it is pass@n. Raises ValueError if n is not in 1..N or a score is missing.
    """
    scores = np.sort(np.asarray(scores_N, dtype=np.float64))
    if not 1 <= n <= len(scores):
        raise ValueError(f"n: {n} drawn from {len(scores)} responses")
    if np.isnan(scores).any():
        raise ValueError("scores: one is missing; leave its response out and say so")
    total = math.comb(len(scores), n)
    weights = np.array([math.comb(i, n - 1) / total for i in range(len(scores))])
    return float(weights @ scores)


@dataclass(frozen=True)
class Rejection:
    """The result of rejection sampling: the `score` of the response that is kept, and how many were `drawn` until then."""

    score: float
    drawn: float


def rejection_sampling(scores_N: ArrayLike, n: int, threshold: float) -> Rejection:
    """Responses are drawn without replacement until one scores `threshold`, n at most; if none does, the last one is kept.

    Expected over all orders: the kept one is any success with chance pass@n, else any failure; response j + 1 is drawn if the
    j before have no success, so `drawn` = sum_(j<n) C(N-c, j) / C(N, j). Raises ValueError as `best_of_n`.
    """
    scores = np.asarray(scores_N, dtype=np.float64)
    if not 1 <= n <= len(scores):
        raise ValueError(f"n: {n} drawn from {len(scores)} responses")
    if np.isnan(scores).any():
        raise ValueError("scores: one is missing; leave its response out and say so")
    passing = scores >= threshold
    total, correct = len(scores), int(passing.sum())
    found = pass_at_k(total, correct, n)
    kept = (found * float(scores[passing].mean()) if correct else 0.0) + (
        (1.0 - found) * float(scores[~passing].mean()) if correct < total else 0.0
    )
    return Rejection(kept, sum(math.comb(total - correct, j) / math.comb(total, j) for j in range(n)))


def entropy(logits_TV: ArrayLike) -> Floats:
    """(T,) entropy in nats of the full distribution at each token; -inf logits are impossible tokens."""
    logits = np.asarray(logits_TV, dtype=np.float64)
    shifted = logits - logits.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    p = np.exp(logp)
    found: Floats = -np.sum(np.where(p > 0, p * np.where(p > 0, logp, 0.0), 0.0), axis=-1)
    return found


@dataclass(frozen=True)
class Novelty:
    """The gain in log-likelihood of the policy's own responses than under the initial policy."""

    ratios: tuple[float, ...]
    """rho of each response that has a token."""
    median: float
    """NaN if there is none."""
    above: dict[float, int]
    """Responses with rho above 2, 10 and 100."""


def novelty(logp: Sequence[ArrayLike], logp_initial: Sequence[ArrayLike]) -> Novelty:
    """rho = exp(mean_t(log pi(y_t) - log pi_init(y_t))) per response (RuscaRL, 2025). Rows may differ in length."""
    if len(logp) != len(logp_initial):
        raise ValueError(f"logp_initial: {len(logp_initial)} responses, logp has {len(logp)}")
    ratios = []
    for i, (now, before) in enumerate(zip(logp, logp_initial, strict=True)):
        a, b = np.asarray(now, dtype=np.float64), np.asarray(before, dtype=np.float64)
        if a.shape != b.shape:
            raise ValueError(f"logp_initial[{i}]: {b.size} tokens, logp has {a.size}")
        if a.size:
            ratios.append(float(np.exp(np.mean(a - b))))
    return novelty_of(ratios)


def novelty_of(ratios: Sequence[float]) -> Novelty:
    """The novelty from the rho of each response."""
    median = float(np.median(ratios)) if len(ratios) else math.nan
    return Novelty(tuple(ratios), median, {bound: sum(r > bound for r in ratios) for bound in (2.0, 10.0, 100.0)})


def self_bleu_diversity(responses: Sequence[str]) -> float:
    """1 - Self-BLEU: the mean over responses of BLEU against all the others (Zhu et al., Texygen, 2018), 0 to 1.

    Sentence BLEU with effective order and exponential smoothing. NaN for fewer than two responses.
    """
    if len(responses) < 2:
        return math.nan
    from sacrebleu.metrics.bleu import BLEU  # heavy: loaded only if diversity is measured

    bleu = BLEU(effective_order=True)
    scores = [
        bleu.sentence_score(response, [*responses[:i], *responses[i + 1 :]]).score
        for i, response in enumerate(responses)
    ]
    return 1.0 - min(float(np.mean(scores)) / 100.0, 1.0)


def embedding_diversity(embeddings_ND: ArrayLike) -> float:
    """Mean cosine distance over all pairs of responses, 0 to 2. NaN for fewer than two; a zero vector is an error."""
    vectors = np.asarray(embeddings_ND, dtype=np.float64)
    n = len(vectors)
    if n < 2:
        return math.nan
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (lengths > 0).all():
        raise ValueError(f"embeddings[{int(np.argmin(lengths))}]: a zero vector has no direction")
    unit = vectors / lengths
    # The sum of all products is |sum of vectors|^2; its n diagonal entries are 1.
    similarity = (float(np.sum(unit.sum(axis=0) ** 2)) - n) / (n * (n - 1))
    return 1.0 - similarity


def pass_at_k_curve(counts_P: Iterable[tuple[int, int]], ks: Iterable[int]) -> dict[int, Estimate]:
    """Mean over prompts of unbiased pass@k from (responses, correct) of each; resampled by prompt.

    Prompts with fewer than k responses leave that k and are counted in `missing`.
    """
    listed = list(counts_P)
    return {
        k: _over_prompts([pass_at_k(n, c, k) if n >= k else None for n, c in listed], f"no prompt has {k} responses")
        for k in ks
    }


def best_of_n_curve(scores_PN: Sequence[Sequence[float | None]], ns: Iterable[int]) -> dict[int, Estimate]:
    """Mean over prompts of the expected best of n responses. Responses without a score are left out of their prompt.

    Prompts with fewer than n scored responses leave that n and are counted in `missing`.
    """
    scored = [[score for score in scores if score is not None] for scores in scores_PN]
    return {
        n: _over_prompts(
            [best_of_n(scores, n) if len(scores) >= n else None for scores in scored],
            f"no prompt has {n} scored responses",
        )
        for n in ns
    }


def rejection_curve(
    scores_PN: Sequence[Sequence[float | None]], ns: Iterable[int], threshold: float
) -> dict[int, tuple[Estimate, Estimate]]:
    """Means over prompts of the score that rejection sampling keeps and of the responses it draws, n at most; see
    `best_of_n_curve` for what is left out."""
    scored = [[score for score in scores if score is not None] for scores in scores_PN]
    found = {}
    for n in ns:
        each = [rejection_sampling(scores, n, threshold) if len(scores) >= n else None for scores in scored]
        empty = f"no prompt has {n} scored responses"
        drawn = [one.drawn for one in each if one]
        found[n] = (
            _over_prompts([one.score if one else None for one in each], empty),
            bootstrap_mean(drawn, len(each) - len(drawn), empty),
        )
    return found


def average_at_k(scores_PN: Sequence[Sequence[float | None]]) -> Estimate:
    """Avg@k: mean over prompts of the mean over its runs; runs without a score leave their prompt's mean."""
    means = []
    for scores in scores_PN:
        known = [score for score in scores if score is not None]
        means.append(sum(known) / len(known) if known else None)
    return _over_prompts(means, "no prompt has a score")


def rubric_scores(scores: Sequence[float | None], prompts: Sequence[object]) -> dict[str, Estimate]:
    """Mean rubric score of responses, raw and clipped to [0, 1] (HealthBench, 2025), resampled by prompt.

    Responses without a score leave both means and are counted in `missing`.
    """
    known = [(score, prompt) for score, prompt in zip(scores, prompts, strict=True) if score is not None]
    missing = len(scores) - len(known)
    raw = np.array([score for score, _ in known], dtype=np.float64)
    clusters = [prompt for _, prompt in known]
    return {
        name: bootstrap_ratio(
            values,
            np.ones(len(values)),
            clusters=clusters,
            missing=missing,
            empty="no response has a score",
            share=name == "clipped",
        )
        for name, values in (("raw", raw), ("clipped", np.clip(raw, 0.0, 1.0)))
    }


def mean_length(tokens: Sequence[int], prompts: Sequence[object]) -> Estimate:
    """Mean number of generated tokens per response, resampled by prompt."""
    return bootstrap_ratio(tokens, np.ones(len(tokens)), clusters=prompts, empty="no responses")


@dataclass(frozen=True)
class Wins:
    """`rate`: wins plus half the ties over decided comparisons; resampled by prompt if prompts are given."""

    rate: Estimate
    won: int
    tied: int
    lost: int


def win_rate(outcomes: Sequence[int | None], prompts: Sequence[object] | None = None) -> Wins:
    """`outcomes`: 1 won, 0 tied, -1 lost; None if there is no verdict, which is counted in `missing`."""
    kept = [at for at, outcome in enumerate(outcomes) if outcome is not None]
    signs = [int(np.sign(outcomes[at] or 0)) for at in kept]
    clusters = None if prompts is None else [prompts[at] for at in kept]
    rate = bootstrap_ratio(
        [(1 + sign) / 2 for sign in signs],
        np.ones(len(signs)),
        clusters=clusters,
        missing=len(outcomes) - len(kept),
        empty="no comparison has a verdict",
        share=True,
    )
    return Wins(rate, signs.count(1), signs.count(0), signs.count(-1))


def meaning_diversity(distances_P: Sequence[float | None]) -> Estimate:
    """Mean over prompts of `embedding_diversity`; prompts with fewer than two responses are None, counted in `missing`."""
    return _over_prompts(distances_P, "no prompt has two responses")


def diversity(responses_PN: Sequence[Sequence[str]]) -> Estimate:
    """Mean over prompts of 1 - Self-BLEU; prompts with fewer than two responses are counted in `missing`."""
    values = [self_bleu_diversity(responses) if len(responses) > 1 else None for responses in responses_PN]
    return _over_prompts(values, "no prompt has two responses")


def median_novelty(found: Novelty, prompts: Sequence[object], missing: int = 0) -> Estimate:
    """The median of rho, resampled by prompt. `prompts`: of each ratio; `missing`: responses without a token."""
    n = len(found.ratios)
    if not n:
        return undefined_estimate("no response has a token", missing=missing)
    order = np.argsort(found.ratios, kind="stable")
    numbered: dict[object, int] = {}
    prompt_N = np.array([numbered.setdefault(prompts[at], len(numbered)) for at in order])
    if n > 1 and len(numbered) == 1:
        return Estimate(found.median, n, missing=missing, interval=SINGLE_GROUP)
    ratios_N, together = np.asarray(found.ratios)[order], max(1, MAX_NUMBERS // n)
    draws = [
        _weighted_median(ratios_N, weights_DC[first : first + together, prompt_N])
        for weights_DC in resamples(len(numbered))
        for first in range(0, len(weights_DC), together)
    ]
    return bootstrap_estimate(found.median, n, np.concatenate(draws), missing)


def _weighted_median(sorted_N: Floats, counts_DN: Floats) -> Floats:
    """(D,): the median of each resample of ascending values, the mean of the middle two for an even number."""
    reached_DN = np.cumsum(counts_DN, axis=1)
    n_D1 = reached_DN[:, -1:]  # they differ if prompts, drawn whole, have different numbers of responses
    low = sorted_N[(reached_DN > (n_D1 - 1) // 2).argmax(1)]
    high = sorted_N[(reached_DN > n_D1 // 2).argmax(1)]
    median: Floats = (low + high) / 2
    return median


def novel_shares(found: Novelty, prompts: Sequence[object]) -> dict[float, Estimate]:
    """Share of responses with rho above each bound, resampled by prompt. `prompts`: of each ratio."""
    return {bound: share_over_clusters([rho > bound for rho in found.ratios], prompts) for bound in found.above}


def scores_by_novelty(
    rho: Sequence[float], scores: Sequence[float | None], prompts: Sequence[object], top: float = 0.1
) -> tuple[Estimate, Estimate]:
    """Mean clipped score of the `top` share of responses with the highest novelty, at least one, and of all others; resampled by
    prompt. Of equal novelty the earlier response comes first."""
    order = sorted(range(len(rho)), key=lambda place: -rho[place])
    most = max(1, round(top * len(rho)))
    parts = (order[:most], order[most:])
    high, rest = (rubric_scores([scores[i] for i in part], [prompts[i] for i in part])["clipped"] for part in parts)
    return high, rest


def gain_at_novelty(
    rho: Mapping[str, float], now: Mapping[str, float | None], before: Mapping[str, float | None], top: float = 0.1
) -> Estimate:
    """Mean score difference (now - before) of the `top` share of prompts with the highest novelty, at least one."""
    highest = sorted(rho, key=lambda key: (-rho[key], key))[: max(1, round(top * len(rho)))]
    difference = numbers(now.get(key) for key in highest) - numbers(before.get(key) for key in highest)
    known = difference[~np.isnan(difference)]
    return bootstrap_mean(known, len(difference) - len(known), "no prompt of the highest novelty has both scores")


def _over_prompts(values_P: Sequence[float | None], empty: str) -> Estimate:
    known = [value for value in values_P if value is not None]
    return bootstrap_mean(known, len(values_P) - len(known), empty, share=True)
