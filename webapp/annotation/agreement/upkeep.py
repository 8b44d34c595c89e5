"""Started by beat every minute: takes up measurements whose worker died or whose task the broker lost, and the order of tasks that follows
the answers."""

from django.db import transaction
from django.utils import timezone

from webapp.annotation.models import AgreementReport
from webapp.core.tasks import enqueue, silent

from . import matching, refresh
from .refresh import GIVEN_UP


def take_up_lost() -> int:
    """Queues lost measurements again, so that nobody has to open a page for it. Returns the number of them.

    A measurement that is only slow then runs twice, which costs time but does no harm.
    """
    refresh.review_where_the_order_follows()
    return _measuring() + matching.ask_where_gold_waits()


def _measuring() -> int:
    now, found = timezone.now(), 0
    lost = AgreementReport.objects.filter(silent("started_at", GIVEN_UP))
    for pk, project in lost.values_list("pk", "project_id"):
        with transaction.atomic():
            if lost.filter(pk=pk).update(started_at=now):  # or another round was faster, or the job has ended
                enqueue("workers.review.measure", project)
                found += 1
    return found
