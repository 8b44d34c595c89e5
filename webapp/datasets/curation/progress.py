"""Progress and results of a curation job."""

from django.db import transaction

from webapp.core import broadcast
from webapp.core.background import jobs
from webapp.core.database import locks

from ..models import CurationJob, Finding

BATCH = 1_000


def broadcast_progress(job: CurationJob) -> None:
    message: dict[str, object] = {
        "type": "curation",
        "id": job.pk,
        "kind": job.kind,
        "state": job.state,
        "done": job.done,
        "total": job.total,
    }
    broadcast.send(f"workspace.{job.version.dataset.workspace_id}", message)


CURATION = jobs.JobKind(
    CurationJob.objects.select_related("version__dataset__workspace", "created_by"),
    locks.Work.CURATION,
    "workers.curation.run",
    broadcast_progress,
)


class CurationReport(jobs.JobReport[CurationJob]):
    """The progress of a curation job, which also stores findings in batches."""

    def __init__(self, job: CurationJob) -> None:
        super().__init__(CURATION, job)
        self._found: list[Finding] = []
        job.findings.all().delete()  # left by a worker that died

    def found(self, position: int, *, group: int = 0, removes: bool = True, **detail: object) -> None:
        self._found.append(Finding(job=self.job, position=position, group=group, removes=removes, detail=detail))
        if len(self._found) >= BATCH:
            self.flush()

    def flush(self) -> None:
        with transaction.atomic():
            CURATION.save(self.job)  # findings of a worker that lost the job are not kept beside its successor's
            Finding.objects.bulk_create(self._found)
        self._found = []
