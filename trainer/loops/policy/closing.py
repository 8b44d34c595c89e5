"""Measures of a policy's responses to the held-out prompts after its last step (`evaluation.closing`)."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from trainer.config.sections.closing import Closing
from trainer.metrics import policy as measures
from trainer.metrics.claims.responses import key_of
from trainer.rollouts import RolloutScorer, Trajectory

from ..learner.learner import Learner, Marked
from ..learner.reference import untrained
from ..session.stage import Tell
from .evaluation import evaluate
from .parts import Parts
from .scoring_watch import ScoringWatch

_ROUNDING = 1e-9
_CHUNK = 64
Told = dict[str, float | None]


def closing(parts: Parts, scorer: RolloutScorer, asked: Closing, tell: Tell) -> dict[str, float]:
    """Measures of `samples` responses to each held-out prompt, without scaffold, at the temperature of training.

    `score` mean rubric score; `pass@k`, where a response passes from a score of `passed`; `best@n` expected best score; `novelty` median
    of rho and `novel>B` responses above a bound; `self_bleu_diversity`, `embedding_diversity`; `entropy` in nats per token
    of the policy's own responses; `length` in tokens. Undefined measures are left out.
    """
    trajectories = _respond(parts, scorer, asked, tell)
    by_prompt: dict[int, list[Trajectory]] = defaultdict(list)
    for trajectory in trajectories:
        by_prompt[trajectory.plan.group].append(trajectory)
    groups = list(by_prompt.values())
    scores = [[t.reward.score for t in group] for group in groups]
    texts = [[t.text for t in group] for group in groups]
    found: Told = {
        "score": measures.average_at_k(scores).value,
        "length": statistics.fmean(t.length for t in trajectories),
        "excluded": float(sum(t.reward.score is None for t in trajectories)),
        "self_bleu_diversity": measures.diversity(texts).value,
        "embedding_diversity": _embedding_diversity(texts),
    }
    counts = [(len(known), sum(score >= asked.passed - _ROUNDING for score in known)) for known in map(_known, scores)]
    powers = [2**i for i in range(asked.samples.bit_length())]
    found |= {f"pass@{k}": estimate.value for k, estimate in measures.pass_at_k_curve(counts, powers).items()}
    found |= {f"best@{n}": estimate.value for n, estimate in measures.best_of_n_curve(scores, powers).items()}
    found |= _likelihoods(parts.learner, parts.base, trajectories, parts.config.rollout.temperature)
    return {key_of(measure): value for measure, value in found.items() if value is not None}


def _respond(parts: Parts, scorer: RolloutScorer, asked: Closing, tell: Tell) -> list[Trajectory]:
    config = parts.config
    own = {"samples": asked.samples, "temperature": config.rollout.temperature}
    config = config.model_copy(update={"evaluation": config.evaluation.model_copy(update=own)})
    watch = ScoringWatch(tell, len(parts.prompts.heldout) * asked.samples)
    return evaluate(
        replace(parts, config=config), scorer, "claims", tell.watch("evaluating", "evaluation"), watch
    ).trajectories


@torch.no_grad()
def _likelihoods(learner: Learner, base: Path, trajectories: Sequence[Trajectory], temperature: float) -> Told:
    """Entropy and novelty: how much more likely the responses are now than under the untrained model."""
    now: list[list[float]] = []
    before: list[list[float]] = []
    entropies: list[float] = []
    for start in range(0, len(trajectories), _CHUNK):
        rows = [Marked.of(t) for t in trajectories[start : start + _CHUNK]]
        for part in learner.measure(rows, temperature):
            now.append(part.logp_T.tolist())
            entropies += part.entropy_T.tolist()
        with untrained(learner, base):
            before += [part.logp_T.tolist() for part in learner.measure(rows, temperature, untrained=True)]
    found = measures.novelty(now, before)
    above = {f"novel>{bound:g}": float(count) for bound, count in found.above.items()}
    return {"entropy": statistics.fmean(entropies) if entropies else None, "novelty": found.median, **above}


def _embedding_diversity(texts: Sequence[Sequence[str]]) -> float | None:
    """The mean over prompts; None if the embedding model is not installed."""
    from trainer.inference.embeddings import Embedder
    from trainer.inference.models import ModelInvalid

    try:
        embed = Embedder()
    except ModelInvalid:
        return None
    vectors = embed([text for group in texts for text in group]).split(
        [len(group) for group in texts]
    )  # in fewer passes
    return statistics.fmean(measures.embedding_diversity(each.numpy()) for each in vectors)


def _known(scores: Sequence[float | None]) -> list[float]:
    return [score for score in scores if score is not None]
