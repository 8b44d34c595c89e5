"""Measurements of jobs, for curation: each token's log-probability, and embeddings."""

from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from webapp.core.problems import Invalid
from webapp.datasets.curation.model_measures import SOURCES, Kind, MeasureSource, Offer
from webapp.datasets.models import DatasetVersion

from .models import WeightsJob

Texts = Iterator[tuple[str, list[NDArray[np.float32]]]]
MOST_OFFERED = 50


def _log_probs(version: DatasetVersion) -> QuerySet[WeightsJob]:
    return _finished(version, WeightsJob.Kind.LOGPROBS).filter(params__per_token=True)


def _embeddings(version: DatasetVersion) -> QuerySet[WeightsJob]:
    return _finished(version, WeightsJob.Kind.EMBED)


def _finished(version: DatasetVersion, kind: str) -> QuerySet[WeightsJob]:
    """The finished jobs of this content: a version of another number may hold the same."""
    rows = WeightsJob.objects.filter(workspace=version.dataset.workspace_id, kind=kind, state=WeightsJob.State.FINISHED)
    return rows.filter(version__dataset=version.dataset_id, version__digest=version.digest)


def _offers(rows: Callable[[DatasetVersion], QuerySet[WeightsJob]]) -> Callable[[DatasetVersion], list[Offer]]:
    return lambda version: [Offer(job.pk, job.title) for job in rows(version).order_by("-id")[:MOST_OFFERED]]


def _contents(rows: QuerySet[WeightsJob], job_id: int, kind: Kind) -> Iterator[dict[str, Any]]:
    job = rows.filter(pk=job_id).first()
    if job is None:
        reason = f"this version has no finished job {job_id} of this kind"
        raise Invalid(f"The data for this does not exist: {reason}.", {f"params.{kind}": reason})
    yield from job.results.order_by("place").values_list("content", flat=True).iterator(chunk_size=200)


def _read_log_probs(version: DatasetVersion, job_id: int) -> Texts:
    for content in _contents(_log_probs(version), job_id, "log_probs"):
        rows = content["log_probs"].values()
        yield content["key"], [np.asarray(each["each"], np.float32) for each in rows]


def _read_embeddings(version: DatasetVersion, job_id: int) -> Texts:
    for content in _contents(_embeddings(version), job_id, "embeddings"):
        texts = content["vectors"].values()
        yield content["key"], [np.frombuffer(b64decode(each), "<f2").astype(np.float32) for each in texts]


def register() -> None:
    SOURCES["log_probs"] = MeasureSource(_offers(_log_probs), _read_log_probs)
    SOURCES["embeddings"] = MeasureSource(_offers(_embeddings), _read_embeddings)
