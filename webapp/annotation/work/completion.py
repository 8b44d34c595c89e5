"""Detects when the last answer of a whole project has come in."""

from django.db.models import Q

from webapp.core import locks
from webapp.webhooks.services import announce

from ..models import Project, Task


def tell_if_complete(project: Project) -> None:
    """Announces `project.complete` if no task waits for an answer. Called in a transaction that has just completed a task.

    Two people may complete the last two tasks in the same moment, and neither transaction sees the other's change. So they check one after
    the other, under a lock. Each transaction takes this lock last, so there is no deadlock.
    """
    locks.until_commit(locks.Work.PROJECT_COMPLETE, project.pk)
    tasks = Task.objects.filter(project=project)
    if tasks.filter(open=True).exists():  # answered by an index: while seats are free nothing is counted
        return
    waiting = tasks.filter(Q(overlap__isnull=False), completed_at=None)
    found = Project.objects.filter(pk=project.pk, tasks_made=True).values("name", "version__dataset_id").first()
    if found and not waiting.exists():
        facts = {"project": project.pk, "name": found["name"], "dataset": found["version__dataset_id"]}
        announce(
            project.workspace_id, "project.complete", {**facts, "tasks": tasks.filter(overlap__isnull=False).count()}
        )
