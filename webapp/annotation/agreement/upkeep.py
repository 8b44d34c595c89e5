"""What beat starts every minute: measuring whose worker died, or whose task the broker lost; and the
order of tasks that follows the answers."""

from django.db import transaction
from django.utils import timezone

from webapp.annotation.models import AgreementReport
from webapp.core.tasks import enqueue, silent

from . import matching, refresh
from .refresh import GIVEN_UP


def take_up_lost() -> int:
    """Queues them again, so that nobody has to open a page for it. Returns how many.

    A measuring that is alive after all, only slow, runs twice then, which is a waste and not a fault.
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
