"""The changes that a new version of a judge makes: the verdicts of both on the same questions, side by side."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from trainer.judges.combine import unswapped
from trainer.judges.inputs import JudgeInput
from trainer.judges.spec import KINDS
from trainer.metrics.estimate import bootstrap_ratio

from ..models import JudgeVersion, Verdict
from ..verdicts.queries import CallAnswer, answers

ORDERED = {"pairwise", "pairwise_rubric"}


def changes(before: JudgeVersion, after: JudgeVersion, inputs: Sequence[JudgeInput]) -> dict[str, Any]:
    """Rows with what each version decided. `changed` is None if a version has no verdict; `missing` counts those.
    `share` is the share of changed rows; its interval resamples the verdicts on one example together.

    Questions match if they are about the same example, response, criterion, order and sample. A question that only one
    version asks has an empty side.
    """
    unusable: Counter[str] = Counter()
    olds, news = _by_subject(before, inputs, unusable), _by_subject(after, inputs, Counter())
    rows = [_row(subject, olds.get(subject), news.get(subject), before.judge.kind) for subject in {**olds, **news}]
    compared = [row for row in rows if row["changed"] is not None]
    share = bootstrap_ratio(
        [row["changed"] for row in compared],
        [1.0] * len(compared),
        clusters=[row["subject"]["example"] for row in compared],
        missing=len(rows) - len(compared),
        empty="no question has a verdict of both",
        share=True,
    )
    return {
        "rows": rows,
        "changed": sum(row["changed"] for row in compared),
        "compared": len(compared),
        "missing": len(rows) - len(compared),
        "share": share.json(),
        "unusable": dict(unusable),
    }


def _by_subject(version: JudgeVersion, inputs: Sequence[JudgeInput], unusable: Counter[str]) -> dict[str, CallAnswer]:
    found = answers(version, inputs, unusable=unusable)
    return {json.dumps(each.subject, sort_keys=True): each for _, listed in found for each in listed}


def _row(subject: str, old: CallAnswer | None, new: CallAnswer | None, kind: str) -> dict[str, Any]:
    sides = [_side(each, kind) for each in (old, new)]
    both = all(side is not None and side["state"] == Verdict.State.DONE for side in sides)
    changed = sides[0]["decision"] != sides[1]["decision"] if both and sides[0] and sides[1] else None
    return {"subject": json.loads(subject), "before": sides[0], "after": sides[1], "changed": changed}


def _side(answer: CallAnswer | None, kind: str) -> dict[str, Any] | None:
    if answer is None:
        return None
    parsed = answer.parsed
    if parsed is not None and kind in ORDERED:
        parsed = unswapped(parsed, answer.subject["order"])
    decision = None if parsed is None else KINDS[kind].decision(parsed)
    return {"verdict": answer.verdict_id, "state": answer.state, "decision": decision, "problem": answer.problem}
