"""The standing project in which people grade responses that a judge has graded, without seeing its verdicts.

Its responses come one batch at a time, and each batch makes the next version of its dataset, see `growing`. A run may name another project
that fits. If that project no longer fits, the standing one is used.
"""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Exists, OuterRef

from trainer.contracts import Example
from webapp.accounts.models import Membership
from webapp.annotation.models import Project, Task
from webapp.annotation.tasks import task_factory
from webapp.core.database import locks
from webapp.datasets.models import Dataset, DatasetVersion, VersionMember
from webapp.datasets.versions import services as datasets

from . import growing, receiving, task_services
from . import services as projects

TAKING = (Project.State.OPEN, Project.State.PAUSED)
LINEAGE = "judged"
"""`lineage["from"]` of the versions that hold such responses."""
NAME = "Judge against people"
ABOUT = "Responses of runs that a judge has graded, for people to grade as well."
GUIDELINES = (
    "Say for each criterion whether the answer meets it. A judge has graded the same answers for training. You do not see "
    "its verdicts, so that you decide on your own."
)


def grade(membership: Membership, records: Sequence[Example], chosen: int | None = None) -> dict[str, Task]:
    """A task for each record, which has a rubric and one response, by the record's key. The same record is one task.

    The tasks are in the project `chosen` as long as it fits, otherwise in the standing one, which is made and opened if the workspace has
    none that is open.
    """
    with transaction.atomic():
        locks.until_commit(locks.Work.COLLECT, membership.workspace_id)  # two runs must not make two projects
        named = receiving.with_newest(membership.workspace_id).filter(pk=chosen).first() if chosen else None
        project = named if named and not unfit(named) else standing_project(membership.workspace_id)
        if project is None:
            project = _begun(membership, records)
        else:
            project = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
            growing.grow(membership, project, records, LINEAGE)
        return _tasks(project, [record.key for record in records])


def standing_project(workspace_id: int) -> Project | None:
    """The newest project that takes more responses: of those whose dataset was made for it, not of those that runs have named."""
    begun = DatasetVersion.objects.filter(dataset=OuterRef("version__dataset"), number=1, lineage__from=LINEAGE)
    rows = Project.objects.filter(Exists(begun), workspace_id=workspace_id, kind="grading").exclude(
        state=Project.State.CLOSED
    )
    newest = rows.select_related("version__dataset").order_by("-id").first()
    return newest if newest and newest.version.counts["examples"] < receiving.MOST else None


def fitting(workspace_id: int, most: int) -> list[Project]:
    """The projects that a run may name, newest first."""
    rows = receiving.with_newest(workspace_id).filter(kind="grading", state__in=TAKING).order_by("-id")
    return [row for row in rows[:most] if not unfit(row)]


def named(workspace_id: int, name: str) -> Project | None:
    """The project of this name, to be checked by `unfit`."""
    return receiving.with_newest(workspace_id).filter(name=name).first()


def unfit(project: Project) -> str:
    """The reason why the project, a row of `named`, cannot take responses that a judge has graded; empty if it can."""
    if project.kind != "grading":
        return "does not grade criteria"
    if project.state not in TAKING or not project.tasks_made:
        return f"is {project.state}; it must be open or paused" if project.tasks_made else "is still being set up"
    if project.settings.get("suggestions", "never") != "never":
        return "shows suggestions of a model, which would influence what people say"
    return receiving.closed_to_more(project)


def _begun(membership: Membership, records: Sequence[Example]) -> Project:
    name = _free_name(membership.workspace_id)
    version = growing.version(membership, datasets.create_dataset(membership, name, ABOUT), records, None, LINEAGE)
    project = projects.create(membership, name=name, kind="grading", dataset=version, guidelines=GUIDELINES)
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
        subject = task_factory.subjects_of("grading", content)[0]
        rank = task_factory.rank(project.strategy, project.pk, (member.position, 0), subject, content)
        found[member.example.key] = task_services.add(project, member.example_id, subject, rank)
    return found
