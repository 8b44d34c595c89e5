"""Projects whose pairs come one at a time, from people who try models; see `growing`."""

from django.db import transaction

from trainer.contracts import Example
from webapp.accounts.models import Membership
from webapp.annotation.models import Project, Task
from webapp.annotation.tasks import task_factory
from webapp.core.auditing import audit
from webapp.core.database import locks
from webapp.core.problems import Conflict, Invalid
from webapp.datasets.models import Example as Row
from webapp.datasets.versions import services as datasets

from . import growing, task_services
from . import services as projects

LINEAGE = "tried"
"""`lineage["from"]` of the versions that hold such pairs."""
MOST_PAIRS = 5_000  # each pair copies the list of those before it
A, B = "a", "b"  # ids of the two responses


def collecting(workspace_id: int) -> list[Project]:
    """The projects that take pairs, newest first."""
    rows = Project.objects.filter(workspace_id=workspace_id, kind="pairwise", version__lineage__from=LINEAGE).exclude(
        state=Project.State.CLOSED
    )
    return list(rows.order_by("-id")[:50])


def collect(
    membership: Membership, record: Example, project_id: int | None = None, name: str = ""
) -> tuple[Project, Task, bool]:
    """The project, the task about the two responses of `record`, and whether it was made now.

    `project_id`: one of `collecting`. Without it, a project called `name` is made and opened. Without a name, the newest project that takes
    pairs is used, or one with a default name. The same record again is the same task. Raises Invalid at `project` or `new_project`,
    Conflict if the project takes no more.
    """
    with transaction.atomic():
        locks.until_commit(locks.Work.COLLECT, membership.workspace_id)  # two first clicks must not make two projects
        known = collecting(membership.workspace_id)
        if project_id is not None:
            project = _chosen(known, project_id)
        elif known and not name:
            project = known[0]
        else:
            return _begun(membership, record, name or "Tried answers")
        return _added(membership, project, record)


def _chosen(known: list[Project], project_id: int) -> Project:
    found = next((project for project in known if project.pk == project_id), None)
    if found is None:
        why = "is not an open project that collects answers from trials. Choose another, or name a new one"
        raise Invalid("The pair cannot be sent there.", {"project": why})
    return found


def _begun(membership: Membership, record: Example, name: str) -> tuple[Project, Task, bool]:
    """A new dataset and a new project, opened. Raises Invalid at `new_project`."""
    try:
        dataset = datasets.create_dataset(membership, name, "Answers that people compared in trials of models.")
        version = growing.version(membership, dataset, [record], None, LINEAGE)
        project = projects.create(membership, name=name, kind="pairwise", dataset=version)
    except Invalid as problem:
        why = problem.fields.get("name") or "; ".join(problem.fields.values())
        raise Invalid("The project cannot be set up.", {"new_project": why}) from problem
    projects.set_state(membership, project, Project.State.OPEN)
    return project, _task(membership, project, record), True


def _added(membership: Membership, project: Project, record: Example) -> tuple[Project, Task, bool]:
    project = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    if task := Task.objects.filter(project=project, example__key=record.key).first():
        return project, task, False
    held = project.version.counts["examples"]
    if held >= MOST_PAIRS:
        raise Conflict(f"{project} holds {held:,} pairs, which is the limit. Send the pair to a new project.", "full")
    growing.grow(membership, project, [record], LINEAGE)
    return project, _task(membership, project, record), True


def _task(membership: Membership, project: Project, record: Example) -> Task:
    row = Row.objects.get(memberships__version=project.version, key=record.key)
    subject = {"a": A, "b": B}
    place = row.memberships.get(version=project.version).position
    rank = task_factory.rank(project.strategy, project.pk, (place, 0), subject, row.content)
    task = task_services.add(project, row.pk, subject, rank)
    audit.record(membership, membership.user, "project.pair_added", project, task=task.pk, example=record.key)
    return task
