"""Carries a curation job to finished or failed, on one worker at a time."""

from django.db import transaction
from django.utils import timezone

from webapp.core.auditing import audit
from webapp.core.background import jobs
from webapp.webhooks.services import announce

from .. import queries
from ..models import CurationJob
from . import DERIVE, REGISTRY
from .progress import CURATION, CurationReport


def run(job_id: int) -> None:
    """Raises errors that are not the job's fault (database away): the job stays running and is taken up again."""
    with CURATION.claimed(job_id) as job:
        if job is not None:
            work = DERIVE if job.kind == CurationJob.Kind.DERIVE else REGISTRY[job.kind].run
            _over(job, jobs.failure(work, job, CurationReport(job)))


@transaction.atomic
def _over(job: CurationJob, failure: str | None) -> None:
    audit.asked_by(job)
    state = CurationJob.State.FINISHED if failure is None else CurationJob.State.FAILED
    CURATION.save(job, "done", "total", "result", state=state, error=failure or "", finished_at=timezone.now())
    workspace = job.version.dataset.workspace
    if job.made and not job.result.get("unchanged"):
        lineage = job.made.lineage
        detail = {"number": job.made.number, "from": lineage["from"], "base": lineage["base"]}
        audit.record(workspace, job.created_by, "version.made", job.made, **detail)
    audit.record(workspace, job.created_by, f"curation.{job.state}", job, kind=job.kind)
    facts = {"curation": job.pk, "kind": job.kind, **queries.version_facts(job.version)}
    announce(workspace.pk, f"curation.{job.state}", facts | ({} if failure is None else {"error": failure}))
