"""Numbers that need a model's weights: read from finished jobs, which another app registers here."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trainer.selection import sliding_perplexity
from webapp.core.problems import Invalid

from .. import queries
from ..models import CurationJob, DatasetVersion
from .progress import CurationReport

Kind = Literal["log_probs", "embeddings"]
TOLD_EVERY = 200


@dataclass(frozen=True)
class Offer:
    """A finished job that has measured a version."""

    job: int
    title: str


@dataclass(frozen=True)
class MeasureSource:
    """`offers(version)`, the newest first; `read(version, job)` gives (key of an example, one array for each of its texts), and
    raises Invalid if the version has no such job."""

    offers: Callable[[DatasetVersion], list[Offer]]
    read: Callable[[DatasetVersion, int], Iterator[tuple[str, list[NDArray[np.float32]]]]]


SOURCES: dict[Kind, MeasureSource] = {}


def chosen(given: dict[str, Any], kind: Kind) -> int:
    """The job that `given` names. Raises Invalid; whether the job exists is checked when it is read."""
    job = given.get(kind)
    if not isinstance(job, int) or isinstance(job, bool) or not 0 < job < 2**63:
        raise Invalid("A finished job is needed.", {f"params.{kind}": "must be the number of a finished job"})
    return job


def offers(version: DatasetVersion) -> dict[str, list[Offer]]:
    return {kind: source.offers(version) for kind, source in SOURCES.items()}


def perplexities(curation: CurationJob, job: int, window: int, report: CurationReport) -> NDArray[np.float64]:
    """An array by position: the largest sliding-window perplexity of the example's responses, in nats; NaN if there is none."""
    places = _places(curation.version)
    found = np.full(len(places), np.nan)
    for done, (key, texts) in enumerate(SOURCES["log_probs"].read(curation.version, job)):
        values = [value for text in texts if (value := sliding_perplexity(text, window)) is not None]
        if key in places and values:
            found[places[key]] = max(values)
        if done % TOLD_EVERY == 0:
            report.at(done, len(places))
    return found


def embeddings(curation: CurationJob, job: int, report: CurationReport) -> NDArray[np.float32]:
    """(positions, width): the mean of the example's vectors; NaN if it has none, or none with a direction."""
    places = _places(curation.version)
    found = np.zeros((len(places), 0), np.float32)
    for done, (key, texts) in enumerate(SOURCES["embeddings"].read(curation.version, job)):
        if key in places and texts:
            if not found.shape[1]:
                found = np.full((len(places), len(texts[0])), np.nan, np.float32)
            mean = np.mean(texts, axis=0)
            found[places[key]] = mean if mean.any() else np.nan
        if done % TOLD_EVERY == 0:
            report.at(done, len(places))
    return found


def _places(version: DatasetVersion) -> dict[str, int]:
    return {key: position for position, key in queries.keys(version)}
