"""Makes the next version: the examples that filters leave, or the version without those that a curation job found."""

import numpy as np
from django.db import connection, transaction
from numpy.typing import NDArray

from webapp.core.problems import Invalid

from ..columns.filters import parse
from ..exploration import narrowing
from ..leakage import leaks
from ..models import CurationJob
from ..versions import writer
from .progress import CURATION, CurationReport


def run(job: CurationJob, report: CurationReport) -> None:
    """Makes the version. Raises Invalid when nothing would change or nothing would be left."""
    if job.made_id:
        return  # made by a worker that died directly afterwards
    version, params = job.version, job.params
    source = CurationJob.objects.filter(pk=params["job"]).first() if params.get("job") else None
    gone = narrowing.removed(version, parse(params["filters"]), params["keep"], source)
    total = version.counts.get("examples", 0)
    check(len(gone), total)
    report.at(0, total)
    lineage = {"from": "filter", "base": version.number, "base_id": version.pk, "removed": len(gone), **params}
    if source:
        lineage["found"] = source.kind

    with transaction.atomic():
        job.made, made = writer.create(version.dataset, lineage, lambda new: _list(new, version.pk, gone))
        leaked = leaks.leaks_within(job.made).count
        job.result = {"removed": len(gone), "kept": total - len(gone), "unchanged": not made, "leaked": leaked}
        CURATION.save(job, "made", "result")
    report.at(total, total)


def check(gone: int, total: int) -> None:
    if not gone:
        raise Invalid("Nothing would be removed, so no new version is needed.", {"filters": "remove no example"})
    if gone == total:
        raise Invalid("Nothing would be left.", {"filters": "remove every example"})


def _list(version_id: int, base_id: int, gone: NDArray[np.int64]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO datasets_versionmember (version_id, example_id, position)
            SELECT %s, example_id, row_number() OVER (ORDER BY position) - 1
            FROM datasets_versionmember WHERE version_id = %s AND position <> ALL (%s)
            """,
            [version_id, base_id, gone.tolist()],
        )
