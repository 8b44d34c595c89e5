"""The stress test of a rubric: it meets responses its author had not seen (METHODS 3; RubricBench, 2025).

Verifiers decide now. A criterion without one has a verdict where a judge was asked, and is said to have none elsewhere: a judge or
a person must look. A criterion that every response meets, or none meets, does not tell the responses apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trainer.contracts import Criterion, Rubric, Verdict

from .score import ReportScore, report_score, verdicts

Power = Literal["discriminates", "all_meet", "none_meets", "unknown"]


@dataclass(frozen=True)
class Stressed:
    """`verdicts_RK`: responses by criteria, in the orders given; `scores_R`: None inside where essentials are missing.

    `power_K` says of each criterion whether it told the responses apart; unknown with fewer than two verdicts.
    """

    criteria: tuple[Criterion, ...]
    verdicts_RK: tuple[tuple[Verdict, ...], ...]
    scores_R: tuple[ReportScore, ...]
    power_K: tuple[Power, ...]


def stress_test(
    rubric: Rubric,
    responses: Sequence[str],
    until: float | None = None,
    judged_R: Sequence[Mapping[str, Verdict]] = (),
) -> Stressed:
    """Raises VerifierError for a criterion whose verifier cannot be run. Verdicts that are not there by `until`, a time of
    `monotonic`, are missing. `judged_R`: for each response what a judge says of criteria without a verifier, by their id."""
    given = tuple(verdicts(rubric, text, until) for text in responses)
    if judged_R:
        by_program = {criterion.id for criterion in rubric.criteria if criterion.verifier is not None}
        given = tuple(
            tuple(one if one.criterion_id in by_program else judged.get(one.criterion_id, one) for one in row)
            for row, judged in zip(given, judged_R, strict=True)
        )
    scores = tuple(report_score(rubric, row) for row in given)
    columns = range(len(rubric.criteria))
    return Stressed(rubric.criteria, given, scores, tuple(power([row[k].met for row in given]) for k in columns))


def power(met_R: Sequence[bool | None]) -> Power:
    """What one criterion's verdicts on several responses say of it.

    All verdicts must be known to say that a criterion does not discriminate; two that differ say that it does.
    """
    known = [met for met in met_R if met is not None]
    if len(set(known)) > 1:
        return "discriminates"
    if len(known) < 2 or len(known) < len(met_R):
        return "unknown"
    return "all_meet" if known[0] else "none_meets"
