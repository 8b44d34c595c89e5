"""What a finished run is judged by: its policy's responses to the held-out prompts, and its curves."""

import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainer.contracts import jsonlines
from trainer.metrics import policy as measures
from trainer.metrics.claims.curves import curves_of, measured

SAMPLES = 16
_SMOOTH = 5
_ROUNDING = 1e-9
_CHUNK = 64


def of_policy(stage: Any, correct: float) -> dict[str, float | None]:
    """Measures of 16 responses to each held-out prompt, without scaffold, at the temperature of training.

    `score` mean rubric score; `pass@k`, where a score of `correct` passes; `best@n` expected best score; `novelty` median
    of rho and `novel>B` responses above a bound; `self_bleu_diversity`, `embedding_diversity`; `entropy` in nats per token
    of the policy's own responses; `length` in tokens. Undefined is None.
    """
    trajectories = _respond(stage)
    by_prompt: dict[int, list[Any]] = defaultdict(list)
    for trajectory in trajectories:
        by_prompt[trajectory.plan.group].append(trajectory)
    groups = list(by_prompt.values())
    scores = [[t.reward.score for t in group] for group in groups]
    texts = [[t.text for t in group] for group in groups]
    found: dict[str, float | None] = {
        "score": measures.average_at_k(scores).value,
        "length": statistics.fmean(t.length for t in trajectories),
        "excluded": float(sum(t.reward.score is None for t in trajectories)),
        "self_bleu_diversity": measures.diversity(texts).value,
        "embedding_diversity": _embedding_diversity(texts),
    }
    counts = [(len(known), sum(score >= correct - _ROUNDING for score in known)) for known in map(_known, scores)]
    powers = [2**i for i in range(SAMPLES.bit_length())]
    found |= {f"pass@{k}": estimate.value for k, estimate in measures.pass_at_k_curve(counts, powers).items()}
    found |= {f"best@{n}": estimate.value for n, estimate in measures.best_of_n_curve(scores, powers).items()}
    return found | _likelihoods(stage, trajectories)


def of_curves(events: Path) -> dict[str, Any]:
    """`curve` of held-out score and of entropy by step, and what is read off them.

    `drawdown`: the most that the held-out score lay below its best so far. `entropy_rise` and `entropy_fall`: how far the
    highest mean of five steps lies above the first and above the last one.
    """
    score, entropy = _curve(events, "eval/rubric_score"), _curve(events, "policy/entropy")
    found: dict[str, Any] = {"curve": {"score": score, "entropy": entropy}}
    found["drawdown"] = _drawdown(list(score.values()))
    smooth = [statistics.fmean(part) for part in _windows(list(entropy.values()))]
    found["entropy_rise"] = max(smooth) - smooth[0] if smooth else None
    found["entropy_fall"] = max(smooth) - smooth[-1] if smooth else None
    return found


def of_run(events: Path, measures: Sequence[str]) -> dict[str, Any]:
    """Each measure, read off its curve (`trainer.metrics.claims.curves`), and `curve` of each metric by step."""
    curves = {key: _curve(events, key) for key in curves_of(measures)}
    return {**measured(curves, measures), "curve": curves}


def _respond(stage: Any) -> list[Any]:
    from trainer.loops.policy.evaluation import evaluate

    config, parts = stage.parts.config, stage.parts
    asked = {"samples": SAMPLES, "temperature": config.rollout.temperature}
    config = config.model_copy(update={"evaluation": config.evaluation.model_copy(update=asked)})
    with stage.collector.newest_weights():
        return evaluate(replace(parts, config=config), stage.scorer, "claims").trajectories


def _likelihoods(stage: Any, trajectories: Sequence[Any]) -> dict[str, float | None]:
    """Entropy, and novelty: how much likelier the responses have become than under the untrained model."""
    import torch

    from trainer.loops.learner.learner import Marked
    from trainer.loops.learner.reference import untrained

    learner, temperature = stage.parts.learner, stage.parts.config.rollout.temperature
    now: list[list[float]] = []
    before: list[list[float]] = []
    entropies: list[float] = []
    with torch.no_grad():
        for start in range(0, len(trajectories), _CHUNK):
            rows = [Marked.of(t) for t in trajectories[start : start + _CHUNK]]
            for part in learner.measure(rows, temperature):
                now.append(part.logp_T.tolist())
                entropies += part.entropy_T.tolist()
            with untrained(learner, stage.parts.base):
                before += [part.logp_T.tolist() for part in learner.measure(rows, temperature, untrained=True)]
    found = measures.novelty(now, before)
    above = {f"novel>{bound:g}": float(count) for bound, count in found.above.items()}
    return {"entropy": statistics.fmean(entropies), "novelty": found.median, **above}


def _embedding_diversity(texts: Sequence[Sequence[str]]) -> float | None:
    """Mean over prompts; None where the embedding model is not installed."""
    from trainer.inference.embeddings import Embedder
    from trainer.inference.models import ModelInvalid

    try:
        embed = Embedder()
    except ModelInvalid:
        return None
    return statistics.fmean(measures.embedding_diversity(embed(group).numpy()) for group in texts)


def _curve(events: Path, key: str) -> dict[int, float]:
    """The metric by step; a step that a resumed run repeated counts once."""
    found: dict[int, float] = {}
    for line in jsonlines.lines(events.read_text(encoding="utf-8")):
        if key in line:
            event = json.loads(line)
            if event["data"]["kind"] == "metrics" and key in event["data"]["values"]:
                found[event["step"]] = event["data"]["values"][key]
    return dict(sorted(found.items()))


def _windows(values: list[float]) -> list[list[float]]:
    return [values[i : i + _SMOOTH] for i in range(len(values) - _SMOOTH + 1)]


def _drawdown(values: list[float]) -> float | None:
    best, worst = float("-inf"), 0.0
    for value in values:
        best = max(best, value)
        worst = max(worst, best - value)
    return worst if values else None


def _known(scores: Sequence[float | None]) -> list[float]:
    return [score for score in scores if score is not None]
