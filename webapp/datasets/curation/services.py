"""Curation jobs are queued here; `runner` carries them out."""

from typing import Any

from django.db import transaction

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.core.tasks import enqueue
from webapp.webhooks.services import announce

from .. import queries
from ..columns.filters import Filters, query
from ..models import CurationJob, DatasetVersion
from . import REGISTRY


def derive(
    membership: Membership,
    version: DatasetVersion,
    filters: Filters,
    *,
    keep: bool = True,
    job: CurationJob | None = None,
    note: str = "",
) -> CurationJob:
    """Queues a job that makes the next version: the examples that the filters leave (`keep`), or all others, or the version without the
    findings of `job`. Raises Invalid when neither filters nor job say what to remove."""
    if job is None and not filters.narrow:
        raise Invalid("No filter is set, so nothing would be removed.", {"filters": "narrow nothing"})
    if job and job.state != CurationJob.State.FINISHED:
        raise Conflict("That job has not finished yet; wait until it has ended.")
    params = {"filters": {} if job else query(filters), "keep": keep, "job": job and job.pk, "note": note[:500]}
    return _queued(membership, version, CurationJob.Kind.DERIVE, params)


def curate(membership: Membership, version: DatasetVersion, kind: str, params: dict[str, Any]) -> CurationJob:
    """Queues a job that searches the version and changes nothing. Raises Invalid at `kind`, `params`."""
    if kind not in REGISTRY:
        raise Invalid("There is no such check.", {"kind": f"must be one of {', '.join(REGISTRY)}"})
    return _queued(membership, version, kind, REGISTRY[kind].params(params))


@transaction.atomic
def _queued(membership: Membership, version: DatasetVersion, kind: str, params: dict[str, Any]) -> CurationJob:
    total = version.counts.get("examples", 0)
    job = CurationJob.objects.create(version=version, kind=kind, params=params, total=total, created_by=membership.user)
    audit.record(membership, membership.user, "curation.started", job, kind=kind, version=version.number)
    facts = {"curation": job.pk, "kind": kind, **queries.version_facts(version)}
    announce(membership.workspace_id, "curation.started", facts, by=membership.user_id)
    enqueue("workers.curation.run", job.pk)
    return job
