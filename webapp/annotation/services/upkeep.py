"""What beat starts every minute: jobs over a project's answers whose worker died, or whose task the broker lost."""

from django.db import transaction
from django.utils import timezone

from webapp.annotation.models import AgreementReport
from webapp.core.tasks import enqueue

from .standing import GIVEN_UP

JOBS = {"started_at": "workers.review.measure", "matching_at": "workers.review.match"}


def take_up_lost() -> int:
    """Queues these jobs again, so that nobody has to open a page for it. Returns how many.

    One that is alive after all, only slow, runs twice then, which is a waste and not a fault.
    """
    now, found = timezone.now(), 0
    for field, task in JOBS.items():
        lost = AgreementReport.objects.filter(**{f"{field}__lt": now - GIVEN_UP})
        for pk, project in lost.values_list("pk", "project_id"):
            with transaction.atomic():
                if lost.filter(pk=pk).update(**{field: now}):  # or another round was faster, or the job has ended
                    enqueue(task, project)
                    found += 1
    return found
