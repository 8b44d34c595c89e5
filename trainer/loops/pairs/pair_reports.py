"""Makes the report of an evaluation from held-out pairs and their scores."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch.nn.functional import logsigmoid

from trainer.contracts import Histogram, RolloutRecord
from trainer.contracts.pairs import compared
from trainer.contracts.plurals import with_noun
from trainer.metrics import preferences
from trainer.metrics.calibration import calibration
from trainer.metrics.estimate import Estimate

from .preferences import Pair

_DOMAINS = 24
OTHER_DOMAINS = "all smaller domains"
_NAME = 50
_EDGES = tuple(round(0.5 + 0.05 * i, 2) for i in range(11))


def pair_metrics(pairs: Sequence[Pair[Any]], margins: Sequence[float]) -> dict[str, float]:
    """Accuracy with its interval, overall and by slices. Undefined values are left out. Pairs of one prompt are drawn together."""
    prompts = [pair.prompt for pair in pairs]
    lengths = [(len(pair.chosen.response.text), len(pair.rejected.response.text)) for pair in pairs]
    overall = preferences.accuracy(margins, prompts)
    values = {
        "eval/pairs": float(len(pairs)),
        "eval/loss": float(-logsigmoid(torch.tensor(margins, dtype=torch.float64)).mean()),
        "eval/margin": float(np.mean(margins)),
    }
    values |= _with("eval/accuracy", overall) | _ends("eval/accuracy{}", overall)
    largest = Counter(pair.domain for pair in pairs if pair.domain).most_common(_DOMAINS)
    named = {domain for domain, _ in largest}
    domains = [pair.domain if pair.domain in named else OTHER_DOMAINS if pair.domain else None for pair in pairs]
    values |= _slices("domain", domains, margins, prompts)
    values |= _slices("strength", [round(pair.strength) or None for pair in pairs], margins, prompts)
    values |= _slices("agreement", [_agreement(pair) for pair in pairs], margins, prompts)
    worse = preferences.longer_is_worse(lengths, margins, prompts)
    values |= _with("eval/longer_worse", worse) | {"eval/longer_worse_pairs": float(worse.n)}
    return values | _with("eval/length_correlation", preferences.length_correlation(lengths, margins, prompts))


def calibration_metrics(
    pairs: Sequence[Pair[Any]], margins: Sequence[float]
) -> tuple[dict[str, float], dict[str, Histogram]]:
    """Calibration of scores whose difference is a log-odds (Bradley-Terry): how sure they are, and how often right."""
    prompts = [pair.prompt for pair in pairs]
    lead_P = torch.tensor(margins, dtype=torch.float64)
    sure_P, right_P = torch.sigmoid(lead_P.abs()), lead_P > 0
    stated = calibration(sure_P.tolist(), right_P.tolist(), clusters_C=prompts)
    chosen = calibration(torch.sigmoid(lead_P).tolist(), [True] * len(margins), clusters_C=prompts)
    histograms = {"eval/confidence": _histogram(sure_P), "eval/confidence_right": _histogram(sure_P[right_P])}
    values = _with("eval/ece", stated.error) | _ends("eval/ece{}", stated.error)
    return values | _with("eval/brier", chosen.brier) | _ends("eval/brier{}", chosen.brier), histograms


def baselines(train: Sequence[Pair[Any]], heldout: Sequence[Pair[Any]]) -> dict[str, float]:
    """The accuracy on the held-out pairs of baselines without a model, and how far people agree on them."""
    kinds: dict[str, Callable[[Pair[Any]], tuple[float, float]]] = {
        "majority": lambda pair: (float(pair.first_chosen), float(not pair.first_chosen)),
        "length": lambda pair: (float(len(pair.chosen.response.text)), float(len(pair.rejected.response.text))),
    }
    decided = [pair for pair in train if not pair.tie]
    found: dict[str, float] = {}
    for name, features in kinds.items():
        reached = preferences.baseline([features(pair) for pair in decided], [features(pair) for pair in heldout])
        found |= _with(f"baseline/{name}", reached)
    return found | _with("baseline/human", preferences.ceiling([(pair.pro, pair.con) for pair in heldout]))


def pair_records(
    pairs: Sequence[Pair[Any]],
    scores: Sequence[tuple[float, float]],
    phase: Literal["train", "eval"],
    parts: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> list[RolloutRecord]:
    """Two records for each pair: index 0 the preferred answer, 1 the other, with their scores as rewards.

    In an evaluation the scores are the model's, so they can be right or wrong; in training they are the label's.
    """
    return [
        RolloutRecord(
            phase=phase,
            example_key=pair.key,
            group=group,
            index=index,
            prompt=_prompt(pair),
            response=side.response.text,
            finish_reason="stop",
            reward=score[index],
            components={
                **(compared(*score) if phase == "eval" else {"margin": score[0] - score[1]}),
                "votes": float((pair.pro, pair.con)[index]),
                **{name: values[group][index] for name, values in (parts or {}).items()},
            },
            facts=_facts(pair),
        )
        for group, (pair, score) in enumerate(zip(pairs, scores, strict=True))
        for index, side in enumerate(pair.sides)
    ]


def _facts(pair: Pair[Any]) -> dict[str, str | float | bool]:
    """The certainty of people about the label, and the pair's domain and tags."""
    found: dict[str, str | float | bool] = {"domain": pair.domain} if pair.domain else {}
    if pair.strength:
        found["strength"] = round(pair.strength, 2)
    return found | {
        "votes": f"{pair.pro} for, {pair.con} against" + (f", {with_noun(pair.ties, 'ties')}" if pair.ties else "")
    }


def _prompt(pair: Pair[Any]) -> str:
    if len(pair.prompt) == 1:
        return pair.prompt[0].content
    return "\n\n".join(f"{message.role}: {message.content}" for message in pair.prompt)


def _agreement(pair: Pair[Any]) -> str | None:
    share = pair.agreement
    if share is None:
        return None
    return "all" if share == 1 else "most" if share >= 0.75 else "some"


def _slices(
    name: str, slices: Sequence[Hashable | None], margins: Sequence[float], prompts: Sequence[Hashable]
) -> dict[str, float]:
    found: dict[str, float] = {}
    for place, estimate in preferences.accuracy_by(slices, margins, prompts).items():
        found |= _with(f"eval/{name}/{str(place)[:_NAME]}", estimate)
        found[f"eval/{name}_pairs/{str(place)[:_NAME]}"] = float(estimate.n)
        found |= _ends(f"eval/{name}{{}}/{str(place)[:_NAME]}", estimate)
    return found


def _ends(key: str, estimate: Estimate) -> dict[str, float]:
    """Both ends of the interval; `key` has a place for `_low` and `_high`."""
    if estimate.low is None or estimate.high is None:
        return {}
    return {key.replace("{}", "_low", 1): estimate.low, key.replace("{}", "_high", 1): estimate.high}


def _with(key: str, estimate: Estimate) -> dict[str, float]:
    return {} if estimate.value is None else {key: estimate.value}


def _histogram(sure_P: torch.Tensor) -> Histogram:
    places = torch.bucketize(sure_P, torch.tensor(_EDGES[1:-1], dtype=sure_P.dtype), right=True)
    counts = torch.bincount(places, minlength=len(_EDGES) - 1)
    return Histogram(edges=_EDGES, counts=tuple(counts.tolist()))
