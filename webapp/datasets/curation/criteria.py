"""Criteria that never discriminate: every recorded response meets them, or none does (RubricBench's stress test)."""

from collections.abc import Iterator
from typing import Any

from trainer.contracts import Criterion, Example
from trainer.verifiers import VerifierError, verify
from webapp.core.problems import Invalid

from .. import queries
from ..formats.grades import Votes, graded
from ..models import CurationJob
from .progress import CurationReport

FEWEST = 2  # at least this many responses, or a criterion cannot be called idle


def params(given: dict[str, Any]) -> dict[str, Any]:
    """`responses`: how many must be recorded before a criterion is judged (2). Raises Invalid."""
    fewest = given.get("responses", FEWEST)
    if not isinstance(fewest, int) or isinstance(fewest, bool) or not 2 <= fewest <= 1000:
        raise Invalid("The number of responses cannot be used.", {"params.responses": "must be from 2 to 1000"})
    return {"responses": fewest}


def run(job: CurationJob, report: CurationReport) -> None:
    """One finding for each example with idle criteria. Criteria without verdicts are counted, never called idle."""
    total = job.version.counts.get("examples", 0)
    judged = idle = unknown = removable = 0
    for position, line in queries.stream_canonical(job.version):
        example = Example.model_validate_json(line)
        found, votes = [], graded(example.meta)
        for criterion in example.rubric.criteria if example.rubric else ():
            verdicts = list(_verdicts(example, criterion, votes))
            if len(verdicts) < job.params["responses"]:
                unknown += 1
                continue
            judged += 1
            if len(set(verdicts)) == 1:
                found.append({"id": criterion.id, "text": criterion.text, "met": verdicts[0], "of": len(verdicts)})
        if found:
            idle += len(found)
            whole = len(found) == len(example.rubric.criteria) if example.rubric else False
            removable += whole
            report.found(position, removes=whole, criteria=found)
        if position % 200 == 0:
            report.at(position, total)
    report.flush()
    report.at(total, total)
    job.result = {"judged": judged, "idle": idle, "without_verdicts": unknown, "rubrics_all_idle": removable}


def _verdicts(example: Example, criterion: Criterion, votes: Votes) -> Iterator[bool]:
    """One for each recorded response that has any: by the criterion's verifier, else by most of those who graded it."""
    for response in example.responses:
        if criterion.verifier:
            try:
                met = verify(criterion.verifier, response.text).met
            except VerifierError:  # a spec from before its verifier changed: no verdict
                return
        else:
            given = votes.get((response.id, criterion.id), [])
            for_it = sum(given)
            met = None if 2 * for_it == len(given) else 2 * for_it > len(given)
        if met is not None:
            yield met
