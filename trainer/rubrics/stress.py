"""The stress test of a rubric: it is applied to responses that its author had not seen (RubricBench, 2025).

Verifiers decide at once. A criterion without a verifier has a verdict if a judge was asked; without one it is reported as missing,
because a judge or a person must look. A criterion that every response meets, or none, does not tell the responses apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from trainer.contracts import Criterion, Rubric, Verdict

from .score import ReportScore, report_score, verdicts

Power = Literal["discriminates", "all_meet", "none_meets", "unknown"]


@dataclass(frozen=True)
class Stressed:
    """`verdicts_RK`: responses by criteria, in the given orders. `scores_R`: their scores are None if an essential criterion has no verdict.

    `power_K` says for each criterion whether it tells the responses apart; with fewer than two verdicts that is unknown.
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
    """Raises VerifierError for a criterion whose verifier cannot run. Verdicts that do not come before `until`, a time of `monotonic`, are
    missing. `judged_R` holds, for each response, a judge's verdicts on the criteria without a verifier, by the criteria's ids."""
    given = tuple(verdicts(rubric, text, until) for text in responses)
    if judged_R:
        by_program = {criterion.id for criterion in rubric.criteria if criterion.verifier is not None}
        given = tuple(
            tuple(one if one.criterion_id in by_program else judged.get(one.criterion_id, one) for one in row)
            for row, judged in zip(given, judged_R, strict=True)
        )
    scores = tuple(report_score(rubric, row) for row in given)
    columns = range(len(rubric.criteria))
    return Stressed(
        rubric.criteria, given, scores, tuple(distinguishes([row[k].met for row in given]) for k in columns)
    )


def distinguishes(met_R: Sequence[bool | None]) -> Power:
    """Whether one criterion tells several responses apart, by its verdicts.

    Two different verdicts show that it does. To show that it does not, all verdicts must be known.
    """
    known = [met for met in met_R if met is not None]
    if len(set(known)) > 1:
        return "discriminates"
    if len(known) < 2 or len(known) < len(met_R):
        return "unknown"
    return "all_meet" if known[0] else "none_meets"
