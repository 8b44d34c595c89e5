"""Selects examples that are worth training on: examples to remove are found, counted and shown; nothing is removed here.

A missing value never removes an example: an example without the number of a step stays, and is counted.
"""

from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from trainer.selection import k_center
from webapp.core.problems import Invalid

from ..columns import packed
from ..models import CurationJob
from . import model_measures
from .progress import CurationReport

Positions = NDArray[np.int64]
MOST = 1_000_000
WINDOW = 512
MOST_WINDOW = 32_768
MOST_COMPARED = 2**32  # distances: picks x examples


def shortest_params(given: dict[str, Any]) -> dict[str, Any]:
    """`share` of the examples with responses that is removed, above 0 and below 1 (0.5). Raises Invalid."""
    return {"share": _share(given, 0.5)}


def shortest(job: CurationJob, report: CurationReport) -> None:
    """Finds the examples with the shortest responses on average; among equal ones the first are removed."""
    lengths = packed.columns(job.version)["response_length"]
    known = np.flatnonzero(~np.isnan(lengths))
    order = known[np.argsort(lengths[known], kind="stable")]
    gone = order[: int(job.params["share"] * len(known))]
    for position in np.sort(gone):
        report.found(int(position), length=int(lengths[position]))
    _end(job, report, len(known), len(gone))
    stays = order[len(gone) :]
    job.result |= {"shortest_kept": int(lengths[stays[0]]) if len(stays) else None}


def balance_params(given: dict[str, Any]) -> dict[str, Any]:
    """`most` examples of a domain, 1 or more (none: as many as the smallest domain has); `seed` draws which. Raises Invalid."""
    most, seed = given.get("most"), given.get("seed", 0)
    if most is not None and not _whole(most, 1, MOST):
        raise Invalid("The number of examples cannot be used.", {"params.most": f"must be from 1 to {MOST:,}"})
    if not _whole(seed, 0, 2**31 - 1):
        raise Invalid("The seed cannot be used.", {"params.seed": "must be a whole number from 0"})
    return {"most": most, "seed": seed}


def balance(job: CurationJob, report: CurationReport) -> None:
    """Finds, in each domain with more examples than requested, the surplus, drawn at random."""
    held = packed.columns(job.version)
    codes, values = held["domain"], held.values("domain")
    domains = {name: np.flatnonzero(codes == code) for code, name in enumerate(values) if name}
    sizes = {name: len(places) for name, places in domains.items()}
    most = job.params["most"] or min(sizes.values(), default=0)
    gone = 0
    for name, places in domains.items():
        # each domain has its own draw, so that the examples of another one do not change it
        drawn = np.random.default_rng([job.params["seed"], crc32(name.encode())]).permutation(places)
        for position in np.sort(drawn[most:]):
            report.found(int(position), domain=name, of=len(places))
        gone += max(0, len(places) - most)
    _end(job, report, sum(sizes.values()), gone)
    job.result |= {"domains": len(domains), "most": most}


def hardest_params(given: dict[str, Any]) -> dict[str, Any]:
    """`log_probs`: a finished job of log-probabilities with each token's; `window` tokens (512); `share` that is removed, the easiest first
    (0.5). Raises Invalid."""
    window = given.get("window", WINDOW)
    if not _whole(window, 1, MOST_WINDOW):
        raise Invalid("The window cannot be used.", {"params.window": f"must be from 1 to {MOST_WINDOW:,} tokens"})
    return {"log_probs": model_measures.chosen(given, "log_probs"), "window": window, "share": _share(given, 0.5)}


def hardest(job: CurationJob, report: CurationReport) -> None:
    """Finds the examples that are easy for the model even at their hardest window; among equal ones the first are removed."""
    scores = model_measures.perplexities(job, job.params["log_probs"], job.params["window"], report)
    known = np.flatnonzero(~np.isnan(scores))
    order = known[np.argsort(scores[known], kind="stable")]
    gone = order[: int(job.params["share"] * len(known))]
    for position in np.sort(gone):
        report.found(int(position), nats=round(float(scores[position]), 4))
    _end(job, report, len(known), len(gone))
    stays = order[len(gone) :]
    job.result |= {"easiest_kept": round(float(scores[stays[0]]), 4) if len(stays) else None}


def cover_params(given: dict[str, Any]) -> dict[str, Any]:
    """`embeddings`: a finished job of embeddings; `log_probs`: one of log-probabilities with each token's, None: distances
    alone; `window` tokens (512); `share` that stays (0.1). Raises Invalid."""
    asked = {"share": _share(given, 0.1), "embeddings": model_measures.chosen(given, "embeddings")}
    weighed = given.get("log_probs") not in (None, "")
    easy = hardest_params({**given, "share": 0.5}) if weighed else {"log_probs": None, "window": WINDOW}
    return {**asked, "log_probs": easy["log_probs"], "window": easy["window"]}


def cover(job: CurationJob, report: CurationReport) -> None:
    """Finds the examples that K-center does not pick: the picked ones cover the rest, the hard ones first."""
    total = job.version.counts.get("examples", 0)
    vectors = model_measures.embeddings(job, job.params["embeddings"], report)
    known = ~np.isnan(vectors[:, 0]) if vectors.size else np.zeros(total, bool)
    scores = np.ones(total)
    if job.params["log_probs"]:
        scores = model_measures.perplexities(job, job.params["log_probs"], job.params["window"], report)
        known &= ~np.isnan(scores)
    places = np.flatnonzero(known)
    picks = max(1, round(job.params["share"] * len(places)))
    if not len(places):
        raise Invalid("No example has both an embedding and a perplexity.", {"params.embeddings": "fits no example"})
    if picks * len(places) > MOST_COMPARED:
        raise Invalid(
            f"{picks:,} picks among {len(places):,} examples are too many to compare: choose a smaller share."
        )
    picked = places[k_center(vectors[places], scores[places], picks, lambda done: report.at(done, picks))]
    for position in np.setdiff1d(places, picked):
        report.found(int(position))
    _end(job, report, len(places), len(places) - picks)


def _end(job: CurationJob, report: CurationReport, known: int, gone: int) -> None:
    report.flush()
    total = job.version.counts.get("examples", 0)
    report.at(total, total)
    job.result = {"known": known, "without": total - known, "removed": gone}


def _share(given: dict[str, Any], default: float) -> float:
    share = given.get("share", default)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise Invalid("The share cannot be used.", {"params.share": "must be above 0 and below 1"})
    return float(share)


def _whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
