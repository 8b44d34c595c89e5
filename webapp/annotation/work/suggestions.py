"""A judge's view of tasks, stored beside them before they are shown. Judging asks the judges; this module stores their views.

`Task.suggestion` is {"content": an answer in the subject's frame, "by": its source, "version": the judge version's id, "at": when it was
stored}.
"""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.annotation.jobs import runner
from webapp.annotation.models import Job, Participant, Project, Task
from webapp.core.auditing import audit
from webapp.core.problems import Conflict

from ..tasks.order import follows_disagreement, rank_anew


@transaction.atomic
def keep(project: Project, by: str, version: int, found: Mapping[int, Mapping[str, Any] | None]) -> int:
    """Stores {task id: content}, None if the judge has no view; returns the number of tasks that now have one of it.

    Gold tasks get theirs as well, because people could recognise them by a missing one. If tasks are served by their disagreement with the
    judge, they are ranked again. A person who has a task already continues without the view: see `blinding.offered`.
    """
    if follows_disagreement(project):  # before the tasks, as in a claim: see `rank_anew`
        list(Participant.objects.select_for_update(no_key=True).filter(project=project).order_by("pk"))
    rows = Task.objects.filter(project=project, pk__in=found).select_related("example").order_by("pk")
    tasks = list(rows.select_for_update(of=("self",), no_key=True))
    now = timezone.now().isoformat()
    for task in tasks:
        content = found[task.pk]
        task.suggestion = content and {"content": dict(content), "by": by[:200], "version": version, "at": now}
    Task.objects.bulk_update(tasks, ["suggestion"], batch_size=500)
    if follows_disagreement(project):
        rank_anew(project, tasks)
    return sum(task.suggestion is not None for task in tasks)


def take_away(membership: Membership, project: Project) -> int:
    """Removes the views of judges from tasks; records of answers stay. Returns the number of tasks.

    If a judge is being asked, it is stopped first and Conflict is raised, because it may store views until it has ended.
    """
    if runner.open_one(project, Job.Kind.SUGGEST):
        runner.stop(project, Job.Kind.SUGGEST)
        raise Conflict("The judge is being stopped. When it has ended, you can remove its suggestions.", "suggesting")
    return _remove(membership, project)


@transaction.atomic
def _remove(membership: Membership, project: Project) -> int:
    done = Task.objects.filter(project=project, suggestion__isnull=False).update(suggestion=None)
    audit.record(membership, membership.user, "project.suggestions_removed", project, tasks=done)
    return done
