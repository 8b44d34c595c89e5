"""Carries a curation job to finished or failed, on one worker at a time."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.utils import timezone

from webapp.core import audit, locks
from webapp.core.health import DATABASE_AWAY
from webapp.core.problems import Invalid
from webapp.webhooks.services import announce

from .. import queries
from ..models import CurationJob
from . import DERIVE, REGISTRY
from .progress import Report, tell

logger = logging.getLogger(__name__)
BROKE = "Something broke on our side; the server's log says what."


@contextmanager
def claimed(job_id: int) -> Iterator[CurationJob | None]:
    """The job; None if it is over or someone else has it."""
    with locks.alone(locks.Work.CURATION, job_id) as ours:
        waiting = [CurationJob.State.QUEUED, CurationJob.State.RUNNING]
        jobs = CurationJob.objects.select_related("version__dataset__workspace", "created_by")
        yield jobs.filter(id=job_id, state__in=waiting).first() if ours else None


def run(job_id: int) -> None:
    """Raises what is no fault of the job (database away): it stays running and is taken up again."""
    with claimed(job_id) as job:
        if job is None:
            return
        job.state = CurationJob.State.RUNNING
        job.save(update_fields=["state"])
        tell(job)
        try:
            work = DERIVE if job.kind == CurationJob.Kind.DERIVE else REGISTRY[job.kind].run
            work(job, Report(job))
            job.state = CurationJob.State.FINISHED
        except Invalid as problem:
            job.state, job.error = CurationJob.State.FAILED, problem.message
        except DATABASE_AWAY:
            raise
        except Exception:
            logger.exception("%s of curation job %s failed", job.kind, job.pk)  # else it would be taken up for good
            job.state, job.error = CurationJob.State.FAILED, BROKE
        _over(job)


@transaction.atomic
def _over(job: CurationJob) -> None:
    audit.asked_by(job)
    job.finished_at = timezone.now()
    job.save()
    workspace = job.version.dataset.workspace
    if job.made and not job.result.get("unchanged"):
        lineage = job.made.lineage
        detail = {"number": job.made.number, "from": lineage["from"], "base": lineage["base"]}
        audit.record(workspace, job.created_by, "version.made", job.made, **detail)
    audit.record(workspace, job.created_by, f"curation.{job.state}", job, kind=job.kind)
    facts = {"curation": job.pk, "kind": job.kind, **queries.version_facts(job.version)}
    failed = job.state == CurationJob.State.FAILED
    announce(workspace.pk, f"curation.{job.state}", facts | ({"error": job.error} if failed else {}))
    tell(job)
