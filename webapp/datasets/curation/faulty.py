"""Prompts that provoke rare faults (GLM-4.5), by their recorded responses; examples without such faults would be removed."""

from collections import Counter
from typing import Any

from trainer.contracts import Example
from trainer.selection import FAULTS
from webapp.core.problems import Invalid

from .. import queries
from ..models import CurationJob
from .progress import CurationReport

TOLD_EVERY = 200


def params(given: dict[str, Any]) -> dict[str, Any]:
    """`below`: a fault counts if its share of all responses is below this, above 0 and at most 1 (0.01). Raises Invalid."""
    below = given.get("below", 0.01)
    if isinstance(below, bool) or not isinstance(below, int | float) or not 0 < below <= 1:
        raise Invalid("The share cannot be used.", {"params.below": "must be above 0 and at most 1"})
    return {"below": float(below)}


def run(job: CurationJob, report: CurationReport) -> None:
    """Stores one finding for each example none of whose responses has a rare fault. An example without responses stays."""
    total = job.version.counts.get("examples", 0)
    shown: dict[int, Counter[str]] = {}
    responses = 0
    for position, line in queries.stream_canonical(job.version):
        example = Example.model_validate_json(line)
        if example.responses:
            shown[position] = _faults(example)
            responses += len(example.responses)
        if position % TOLD_EVERY == 0:
            report.at(position, total)
    counts: Counter[str] = sum(shown.values(), Counter())
    rare = [name for name in FAULTS if 0 < counts[name] < job.params["below"] * responses]
    if shown and not rare:
        raise Invalid(_nothing(counts, responses, job.params["below"]))
    gone = [position for position, found in shown.items() if not any(found[name] for name in rare)]
    for position in gone:
        report.found(position)
    report.flush()
    report.at(total, total)
    job.result = {
        "known": len(shown),
        "without": total - len(shown),
        "removed": len(gone),
        "responses": responses,
        "faults": {name: counts[name] for name in FAULTS},
        "rare": rare,
    }


def _faults(example: Example) -> Counter[str]:
    prompt = "\n".join(message.content for message in example.prompt)
    return Counter(name for each in example.responses for name, has in FAULTS.items() if has(prompt, each.text))


def _nothing(counts: Counter[str], responses: int, below: float) -> str:
    seen = ", ".join(f"{name} {counts[name] / responses:.2%}" for name in FAULTS if counts[name])
    if not seen:
        return f"None of the {responses:,} responses has a fault that is looked for ({', '.join(FAULTS)})."
    return f"No fault is in fewer than {100 * below:.3g}% of the {responses:,} responses: {seen}. Raise the share, or train on all of them."
