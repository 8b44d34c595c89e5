"""What is measured on many responses to one prompt: success, best of n, entropy, novelty, diversity. NumPy only.

Undefined is NaN or an error, never 0. Axes: N responses, T generated tokens, V vocabulary, D embedding.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sacrebleu.metrics.bleu import BLEU

Floats = NDArray[np.float64]


def pass_at_k(responses: int, correct: int, k: int) -> float:
    """Chance that k of the responses, drawn without replacement, hold a correct one: 1 - C(n-c, k) / C(n, k).

    Unbiased (Chen et al., Codex, 2021). Raises ValueError where k is not in 1..n: no estimate exists.
    """
    if not 0 <= correct <= responses:
        raise ValueError(f"correct: {correct} of {responses} responses")
    if not 1 <= k <= responses:
        raise ValueError(f"k: {k} drawn from {responses} responses")
    return 1.0 - math.comb(responses - correct, k) / math.comb(responses, k)


def best_of_n(scores_N: ArrayLike, n: int) -> float:
    """Expected highest score of n responses drawn without replacement: the Best-of-N curve without sampling noise.

    sum_i C(i-1, n-1) / C(N, n) s_(i) over scores in ascending order: s_(i) is the highest of C(i-1, n-1) draws. With
    scores of 0 and 1 it is pass@n. Raises ValueError where n is not in 1..N or a score is missing.
    """
    scores = np.sort(np.asarray(scores_N, dtype=np.float64))
    if not 1 <= n <= len(scores):
        raise ValueError(f"n: {n} drawn from {len(scores)} responses")
    if np.isnan(scores).any():
        raise ValueError("scores: one is missing; leave its response out and say so")
    total = math.comb(len(scores), n)
    weights = np.array([math.comb(i, n - 1) / total for i in range(len(scores))])
    return float(weights @ scores)


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
    """How much likelier the policy's own responses have become than under the initial policy."""

    ratios: tuple[float, ...]
    """rho of each response that has a token."""
    median: float
    """NaN where there is none."""
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
    median = float(np.median(ratios)) if ratios else math.nan
    return Novelty(tuple(ratios), median, {bound: sum(r > bound for r in ratios) for bound in (2.0, 10.0, 100.0)})


def self_bleu_diversity(responses: Sequence[str]) -> float:
    """1 - Self-BLEU: the mean over responses of BLEU against all the others (Zhu et al., Texygen, 2018), 0 to 1.

    Sentence BLEU with effective order and exponential smoothing. NaN for fewer than two responses.
    """
    if len(responses) < 2:
        return math.nan
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
