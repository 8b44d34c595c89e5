"""Detects when the last answer of a whole project has come in."""

from webapp.core.auditing import audit
from webapp.core.database import locks
from webapp.webhooks.services import announce

from ..models import Project, Task


def none_waits(project: Project) -> bool:
    """Whether every task has its answers.

    Called in a transaction that has just written an answer or taken seats away. Two people may complete the last two tasks in the same
    moment, and neither transaction sees the other's change. So they check one after the other, under a lock. Each transaction takes this
    lock last, so there is no deadlock.
    """
    locks.until_commit(locks.Work.PROJECT_COMPLETE, project.pk)
    tasks = Task.objects.filter(project=project)
    if tasks.filter(open=True).exists():  # answered by an index: while seats are free nothing is counted
        return False
    made = Project.objects.filter(pk=project.pk, tasks_made=True)
    return made.exists() and not tasks.filter(overlap__isnull=False, completed_at=None).exists()


def announce_complete(project: Project) -> None:
    """Announces `project.complete`, and audits it. Called if no task waits any more."""
    name, dataset = Project.objects.values_list("name", "version__dataset_id").get(pk=project.pk)
    tasks = Task.objects.filter(project=project, overlap__isnull=False).count()
    facts = {"project": project.pk, "name": name, "dataset": dataset, "tasks": tasks}
    audit.record(project.workspace, None, "project.complete", project, tasks=tasks)
    announce(project.workspace_id, "project.complete", facts)
