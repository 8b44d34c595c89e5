"""The group `weights_jobs` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group
from .shared import WeightsJobOut


class JobPriorityIn(TypedDict):
    priority: Literal["low", "normal", "high"]


class WeightsJobIn(TypedDict):
    """`generate`: a model answers the prompts of a dataset version. `score`: a reward model scores its
    responses. `logprobs`: how likely they are under a model. `embed`: vectors of its texts.
    `params.resources` is what Ray sets aside.
    """

    kind: Literal["generate", "score", "logprobs", "embed"]
    model: NotRequired[int | None]
    dataset_version: int
    params: NotRequired[dict[str, Any]]


class WeightsLineOut(TypedDict):
    time: str
    level: str
    message: str


class WeightsLog(TypedDict):
    lines: list[WeightsLineOut]


class WeightsResultOut(TypedDict):
    place: int
    content: dict[str, Any]


class WeightsResults(TypedDict):
    items: list[WeightsResultOut]
    next: int | None


class WeightsJobs(Group):
    def list_jobs(
        self,
        *,
        page_size: int | None = None,
        kind: Literal["generate", "score", "logprobs", "embed", "export", "judge", "task"] | None = None,
        state: Literal["queued", "starting", "running", "stopping", "stopped", "finished", "failed"] | None = None,
    ) -> Iterator[WeightsJobOut]:
        """Jobs, newest first."""
        return self._pages(WeightsJobOut, "/weights-jobs", query={"limit": page_size, "kind": kind, "state": state})

    def start_job(self, body: WeightsJobIn) -> WeightsJobOut:
        """Start a job that generates, scores, measures or embeds on the cluster. The same question is not
        computed twice: the response has the same job.
        """
        return self._json(WeightsJobOut, "POST", "/weights-jobs", body=body)

    def get_job(self, job_id: int) -> WeightsJobOut:
        """One job."""
        return self._json(WeightsJobOut, "GET", f"/weights-jobs/{job_id}")

    def stop_job(self, job_id: int) -> WeightsJobOut:
        """Stop a job; its results are kept."""
        return self._json(WeightsJobOut, "POST", f"/weights-jobs/{job_id}/stop", again=True)

    def priority(self, job_id: int, body: JobPriorityIn) -> WeightsJobOut:
        """Change the priority of a job. The priority orders the workspace's work in the line. Work under way is
        not interrupted.
        """
        return self._json(WeightsJobOut, "POST", f"/weights-jobs/{job_id}/priority", body=body, again=True)

    def retry_job(self, job_id: int) -> WeightsJobOut:
        """Try a job again, after its last result. 409 unless the job stopped or failed."""
        return self._json(WeightsJobOut, "POST", f"/weights-jobs/{job_id}/retry")

    def results(self, job_id: int, *, after: int | None = None, limit: int | None = None) -> WeightsResults:
        """Results, item by item."""
        return self._json(
            WeightsResults, "GET", f"/weights-jobs/{job_id}/results", query={"after": after, "limit": limit}
        )

    def log(self, job_id: int) -> WeightsLog:
        """The newest lines of the log, oldest first."""
        return self._json(WeightsLog, "GET", f"/weights-jobs/{job_id}/log")
