"""The standing project in which people grade responses that a judge has graded, blind to its verdicts.

Its responses come one batch at a time, and each batch makes the next version of its dataset, see `growing`.
"""

from collections.abc import Sequence

from django.db import transaction

from trainer.contracts import Example
from webapp.accounts.models import Membership
from webapp.annotation import subjects
from webapp.annotation.models import Project, Task
from webapp.core import locks
from webapp.datasets import services as datasets
from webapp.datasets.models import Dataset, VersionMember

from . import growing, projects, tasks

LINEAGE = "judged"
"""`lineage["from"]` of the versions that hold such responses."""
NAME = "Judge against people"
ABOUT = "Responses of runs that a judge has graded, for people to grade as well."
GUIDELINES = (
    "Say of each criterion whether the answer meets it. A judge has graded the same answers for training; its verdicts are "
    "not shown, so that yours are your own."
)
MOST = 5_000  # responses of one project: each batch copies the list of those before it; then the next project begins


def grade(membership: Membership, records: Sequence[Example]) -> dict[str, Task]:
    """A task for each record, which has a rubric and one response, by the record's key. The same record is one task.

    The standing project is set up and opened where the workspace has none that is open.
    """
    with transaction.atomic():
        locks.until_commit(locks.Work.COLLECT, membership.workspace_id)  # two runs must not set up two projects
        project = standing(membership.workspace_id)
        if project is None:
            project = _begun(membership, records)
        else:
            project = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
            growing.grow(membership, project, records, LINEAGE)
        return _tasks(project, [record.key for record in records])


def standing(workspace_id: int) -> Project | None:
    """The newest that takes more responses."""
    rows = Project.objects.filter(
        workspace_id=workspace_id, kind=Project.Kind.GRADING, version__lineage__from=LINEAGE
    ).exclude(state=Project.State.CLOSED)
    newest = rows.select_related("version__dataset").order_by("-id").first()
    return newest if newest and newest.version.counts["examples"] < MOST else None


def _begun(membership: Membership, records: Sequence[Example]) -> Project:
    name = _free_name(membership.workspace_id)
    version = growing.version(membership, datasets.create_dataset(membership, name, ABOUT), records, None, LINEAGE)
    project = projects.create(membership, name=name, kind=Project.Kind.GRADING, dataset=version, guidelines=GUIDELINES)
    return projects.set_state(membership, project, Project.State.OPEN)


def _free_name(workspace_id: int) -> str:
    taken = {
        *Project.objects.filter(workspace_id=workspace_id, name__startswith=NAME).values_list("name", flat=True),
        *Dataset.objects.filter(workspace_id=workspace_id, name__startswith=NAME).values_list("name", flat=True),
    }
    names = [NAME, *(f"{NAME} {number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)


def _tasks(project: Project, keys: Sequence[str]) -> dict[str, Task]:
    members = VersionMember.objects.filter(version=project.version, example__key__in=keys).select_related("example")
    found = {}
    for member in members:
        content = member.example.content
        subject = subjects.of(Project.Kind.GRADING, content)[0]
        rank = subjects.rank(project.strategy, project.pk, (member.position, 0), subject, content)
        found[member.example.key] = tasks.add(project, member.example_id, subject, rank)
    return found
