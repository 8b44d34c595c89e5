"""Rationale consistency of a set of judged samples: the means that people compare, with n and intervals."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainer.benchmarks.estimate import Estimate, bootstrap_mean, proportion, undefined
from trainer.rewards.rationale import average_precision, hybrid, outcome, rationale_consistency

from .verdicts import side


class SampleProblem(ValueError):
    """A line of a rationale file that cannot be used; the message names the field."""


@dataclass(frozen=True)
class Sample:
    """`scores_HM`: human x model matching scores. `label` and `verdict`: -1 A, 0 tie, 1 B; verdict None: missing."""

    id: str
    scores_HM: NDArray[np.float64]
    human_reasons: int
    label: int | None
    verdict: int | None


def parse_sample(row: Any) -> Sample:
    """One JSON object as a sample. Raises SampleProblem naming the field."""
    if not isinstance(row, dict):
        raise SampleProblem("expected an object with id, matrix, human, label and verdict")
    sides: dict[str, int | None] = {}
    for field in ("label", "verdict"):
        try:
            sides[field] = side(row.get(field))
        except ValueError as error:
            raise SampleProblem(f"field {field!r}: {error}") from error
    matrix = _matrix(row.get("matrix"))
    human = row.get("human", len(matrix))
    if isinstance(human, bool) or not isinstance(human, int) or human < 0:
        raise SampleProblem(f"field 'human': expected the number of human reasons, found {human!r}")
    if len(matrix) not in (0, human):
        raise SampleProblem(f"field 'matrix': {len(matrix)} rows for {human} human reasons")
    scores = matrix if len(matrix) else np.zeros((human, 0))
    return Sample(str(row.get("id", "")), scores, human, sides["label"], sides["verdict"])


def _matrix(raw: Any) -> NDArray[np.float64]:
    if not isinstance(raw, list) or not all(isinstance(line, list) for line in raw):
        raise SampleProblem("field 'matrix': expected a list of rows, one per human reason")
    if len({len(line) for line in raw}) > 1:
        raise SampleProblem("field 'matrix': rows differ in length")
    if any(isinstance(score, bool) or not isinstance(score, int | float) for line in raw for score in line):
        raise SampleProblem("field 'matrix': every score must be a number")
    scores = np.asarray(raw, dtype=np.float64).reshape(len(raw), len(raw[0]) if raw else 0)
    if scores.size and not (np.isfinite(scores).all() and scores.min() >= 0 and scores.max() <= 1):
        raise SampleProblem("field 'matrix': every score must lie in [0, 1]")
    return scores


def summarise(samples: Iterable[Sample]) -> dict[str, Any]:
    """RC, AP, hybrid reward and accuracy. Samples without human reasons leave the first three and are counted."""
    listed = list(samples)
    reasoned = [sample for sample in listed if sample.human_reasons]
    labelled = [sample for sample in listed if sample.label is not None]
    both = [sample for sample in reasoned if sample.label is not None]
    right = sum(outcome(sample.label, sample.verdict) for sample in labelled if sample.label is not None)
    return {
        "n": len(listed),
        "excluded_no_human_reasons": len(listed) - len(reasoned),
        "no_model_reasons": sum(sample.scores_HM.shape[1] == 0 for sample in reasoned),
        "missing_labels": len(listed) - len(labelled),
        "missing_verdicts": sum(sample.verdict is None for sample in labelled),
        "RC": _mean([rationale_consistency(s.scores_HM, s.human_reasons) for s in reasoned]).json(),
        "AP": _mean([average_precision(s.scores_HM, s.human_reasons) for s in reasoned]).json(),
        "hybrid": _mean(
            [hybrid(s.scores_HM, s.human_reasons, s.label, s.verdict) for s in both if s.label is not None]
        ).json(),
        "accuracy": proportion(int(right), len(labelled), empty="no sample has a label").json(),
    }


def _mean(values: list[float | None]) -> Estimate:
    if not values:
        return undefined("no sample has human reasons")
    return bootstrap_mean(np.asarray(values, dtype=np.float64))
