"""Finds rubrics that look wrong by their words: the hints that an author sees, for a whole version."""

from collections import Counter
from typing import Any

from trainer.contracts import Example, Rubric
from trainer.rubrics.structure import lines, structural_hints
from webapp.core.problems import Invalid

from .. import queries
from ..models import CurationJob
from .progress import CurationReport

# Examples with other hints are removed only if the caller asks, because hints are not verdicts
CODES = (
    *("compound", "duplicate", "contradiction", "vague", "negated"),
    *("no_positive", "too_few", "too_many", "verifier"),
)
REMOVES = ("contradiction", "verifier")


def params(given: dict[str, Any]) -> dict[str, Any]:
    """`removes`: the codes of hints for which a derivation would drop the example. Raises Invalid."""
    removes = given.get("removes", list(REMOVES))
    if not isinstance(removes, list) or not all(code in CODES for code in removes):
        raise Invalid("The hints are not known.", {"params.removes": f"must be a list of {', '.join(CODES)}"})
    return {"removes": removes}


def run(job: CurationJob, report: CurationReport) -> None:
    """One finding for each example whose rubric raises a hint."""
    total = job.version.counts.get("examples", 0)
    rubrics = flagged = 0
    codes: Counter[str] = Counter()
    for position, line in queries.stream_canonical(job.version):
        rubric = Example.model_validate_json(line).rubric
        rubrics += rubric is not None
        if hints := rubric_hints(rubric):
            flagged += 1
            codes.update({hint["code"] for hint in hints})
            removes = any(hint["code"] in job.params["removes"] for hint in hints)
            report.found(position, removes=removes, hints=hints)
        if position % 200 == 0:
            report.at(position, total)
    report.flush()
    report.at(total, total)
    job.result = {"rubrics": rubrics, "flagged": flagged, "codes": dict(codes.most_common())}


def rubric_hints(rubric: Rubric | None) -> list[dict[str, Any]]:
    """The hints about the rubric's words: code, message, and the text of the criterion concerned, if it is one."""
    if rubric is None:
        return []
    texts = [criterion.text for criterion in rubric.criteria]
    return [
        {"code": hint.code, "message": hint.message, "text": "" if hint.criterion is None else texts[hint.criterion]}
        for hint in structural_hints(lines(rubric))
    ]
