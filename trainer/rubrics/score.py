"""The score of a response from the verdicts on its criteria (RuscaRL, 2025; HealthBench, 2025)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

from trainer.contracts import Criterion, CriterionResult, Rubric, Verdict
from trainer.verifiers import verify

NO_VERIFIER = "no verifier; needs a judge"
NO_PART = "no part of this reward"
NO_TIME = "not tried: the criteria and texts before it took all the time there was"


@dataclass(frozen=True)
class RubricScore:
    """`score` (at most 1, may be negative) and `clipped` (in [0, 1]) are None unless every criterion has a verdict."""

    score: float | None
    clipped: float | None
    verdicts: tuple[Verdict, ...]
    missing: int


@dataclass(frozen=True)
class ReportScore:
    """A score for reports. It is `partial` if criteria without a verdict were left out of both sums."""

    score: float | None
    clipped: float | None
    missing: int
    partial: bool


def verdicts(rubric: Rubric, response: str, until: float | None = None) -> tuple[Verdict, ...]:
    """One verdict for each criterion, in the rubric's order. A verdict is missing if the criterion has no verifier, the verifier gave up,
    or its turn comes after `until`, a time of `monotonic`."""
    return tuple(_verdict(criterion, response, until) for criterion in rubric.criteria)


def score_rubric(rubric: Rubric, response: str) -> RubricScore:
    """The training score of a response, by verifiers alone: `S = sum_i b_i p_i / sum_{p_j > 0} p_j`.

    Raises VerifierError for a criterion whose verifier cannot run; an import refuses such criteria.
    """
    return training_score(rubric, verdicts(rubric, response))


def training_score(rubric: Rubric, given: Sequence[Verdict]) -> RubricScore:
    """The score is None if any verdict is missing: the sample is left out of training, and the verdict never counts as false."""
    met = _by_criterion(rubric, given)
    missing = sum(value is None for value in met.values())
    score = None if missing else _binary(rubric.criteria, met)
    return RubricScore(score, _clip(score), tuple(given), missing)


def report_score(rubric: Rubric, given: Sequence[Verdict]) -> ReportScore:
    """If an essential criterion has no verdict, there is no score. Any other criterion without a verdict is left out of both sums, and
    the score is marked as partial."""
    met = _by_criterion(rubric, given)
    known = [criterion for criterion in rubric.criteria if met[criterion.id] is not None]
    missing = len(met) - len(known)
    lost_essential = any(c.importance == "essential" and met[c.id] is None for c in rubric.criteria)
    scorable = not lost_essential and any(criterion.points > 0 for criterion in known)
    score = _binary(known, met) if scorable else None
    return ReportScore(score, _clip(score), missing, partial=missing > 0 and score is not None)


def likert_score(weights: Sequence[float], ratings: Sequence[float]) -> float:
    """`S = sum_k w_k v_k / sum_k w_k` with `v = (rating - 1) / 9` of ratings 1..10 (MaMs).

    Raises ValueError when the weights sum to 0 or less, a rating is out of range, or the lengths differ.
    """
    if len(weights) != len(ratings):
        raise ValueError(f"{len(weights)} weights but {len(ratings)} ratings")
    total = sum(weights)
    if total <= 0:
        raise ValueError(f"weights sum to {total:g}; a Likert score needs a sum above 0")
    for rating in ratings:
        if not 1 <= rating <= 10:
            raise ValueError(f"rating {rating:g} is not between 1 and 10")
    return sum(w * (rating - 1) / 9 for w, rating in zip(weights, ratings, strict=True)) / total


def breakdown(rubric: Rubric, given: Sequence[Verdict]) -> tuple[CriterionResult, ...]:
    """Criteria with text, points and verdict, as the rollout viewer shows them."""
    by_id = {verdict.criterion_id: verdict for verdict in given}
    return tuple(
        CriterionResult(text=c.text, points=c.points, kind=c.kind, verdict=by_id.get(c.id) or _no_part(c))
        for c in rubric.criteria
    )


def _no_part(criterion: Criterion) -> Verdict:
    return Verdict(criterion_id=criterion.id, met=None, source="judge", note=NO_PART)


def _verdict(criterion: Criterion, response: str, until: float | None) -> Verdict:
    if criterion.verifier is None:
        return Verdict(criterion_id=criterion.id, met=None, source="judge", note=NO_VERIFIER)
    if until is not None and monotonic() > until:
        return Verdict(criterion_id=criterion.id, met=None, note=NO_TIME)
    finding = verify(criterion.verifier, response)
    return Verdict(criterion_id=criterion.id, met=finding.met, note=finding.note)


def _by_criterion(rubric: Rubric, given: Sequence[Verdict]) -> dict[str, bool | None]:
    """Whether each criterion, by its id, is met; None without a verdict. A verdict on a criterion of another rubric is an error."""
    met: dict[str, bool | None] = {criterion.id: None for criterion in rubric.criteria}
    for verdict in given:
        if verdict.criterion_id not in met:
            raise ValueError(f"verdict on criterion {verdict.criterion_id!r}, which this rubric does not have")
        met[verdict.criterion_id] = verdict.met
    return met


def _binary(criteria: Sequence[Criterion], met: Mapping[str, bool | None]) -> float:
    earned = sum(criterion.points for criterion in criteria if met[criterion.id])
    return earned / sum(criterion.points for criterion in criteria if criterion.points > 0)


def _clip(score: float | None) -> float | None:
    return None if score is None else min(1.0, max(0.0, score))
