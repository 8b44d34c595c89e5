"""How a curation job tells how far it is, and keeps what it found."""

from time import monotonic

from django.utils import timezone

from webapp.core import broadcast

from ..models import CurationJob, Finding

TELL_EVERY_S = 0.5
BATCH = 1_000


class Report:
    """Gathers findings in batches and moves the progress, a few times a second at most."""

    def __init__(self, job: CurationJob) -> None:
        self.job = job
        self._told = 0.0
        self._found: list[Finding] = []
        job.findings.all().delete()  # of a worker that died

    def at(self, done: int, total: int) -> None:
        self.job.done, self.job.total = done, total
        if monotonic() - self._told < TELL_EVERY_S:
            return
        self._told = monotonic()
        self.job.seen_at = timezone.now()
        self.job.save(update_fields=["done", "total", "seen_at"])
        tell(self.job)

    def found(self, position: int, *, group: int = 0, removes: bool = True, **detail: object) -> None:
        self._found.append(Finding(job=self.job, position=position, group=group, removes=removes, detail=detail))
        if len(self._found) >= BATCH:
            self.flush()

    def flush(self) -> None:
        Finding.objects.bulk_create(self._found)
        self._found = []


def tell(job: CurationJob) -> None:
    message: dict[str, object] = {
        "type": "curation",
        "id": job.pk,
        "kind": job.kind,
        "state": job.state,
        "done": job.done,
        "total": job.total,
    }
    broadcast.send(f"workspace.{job.version.dataset.workspace_id}", message)
