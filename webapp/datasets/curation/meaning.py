"""Examples that mean nearly the same, by their embeddings (SemDeDup): the ones to remove are found and shown."""

from typing import Any

import numpy as np

from trainer.selection import near_duplicates
from webapp.core.problems import Invalid

from ..models import CurationJob
from . import model_measures
from .progress import CurationReport


def params(given: dict[str, Any]) -> dict[str, Any]:
    """`embeddings`: a finished job of embeddings; `likeness`: the cosine from which two mean the same, 0.5 to 1 (0.95). Raises
    Invalid."""
    likeness = given.get("likeness", 0.95)
    if isinstance(likeness, bool) or not isinstance(likeness, int | float) or not 0.5 <= likeness <= 1:
        raise Invalid("The similarity cannot be used.", {"params.likeness": "must be a number from 0.5 to 1"})
    return {"embeddings": model_measures.chosen(given, "embeddings"), "likeness": float(likeness)}


def run(job: CurationJob, report: CurationReport) -> None:
    """Stores one finding for each example to remove; `group` is the position of the one that stays for it."""
    total = job.version.counts.get("examples", 0)
    vectors = model_measures.embeddings(job, job.params["embeddings"], report)
    places = np.flatnonzero(~np.isnan(vectors[:, 0])) if vectors.size else np.array([], np.int64)
    if not len(places):
        raise Invalid("No example has an embedding.", {"params.embeddings": "fits no example"})
    stays = near_duplicates(vectors[places], job.params["likeness"], tell=lambda done: report.at(done, len(places)))
    gone = np.flatnonzero(stays != np.arange(len(stays)))
    for each in gone:
        report.found(int(places[each]), group=int(places[stays[each]]))
    report.flush()
    report.at(total, total)
    job.result = {
        "known": len(places),
        "without": total - len(places),
        "removed": len(gone),
        "groups": len(np.unique(stays[gone])),
    }
