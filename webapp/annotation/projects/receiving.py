"""Projects that take examples from elsewhere while people work, such as responses that a run has sampled; see `growing`."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Max, QuerySet

from trainer.contracts import Example
from webapp.accounts.models import Membership
from webapp.annotation.models import Project
from webapp.annotation.tasks import task_factory
from webapp.core.auditing import audit
from webapp.core.database import locks
from webapp.core.problems import Invalid
from webapp.datasets.models import VersionMember

from . import growing, task_services

TAKING = (Project.State.DRAFT, Project.State.OPEN, Project.State.PAUSED)
MOST = 5_000  # examples of one project: each addition copies the list of those before it


def with_newest(workspace_id: int) -> QuerySet[Project]:
    """The projects, each with the number of the newest version of its dataset, which `closed_to_more` reads."""
    rows = Project.objects.filter(workspace_id=workspace_id).select_related("version__dataset")
    return rows.annotate(newest=Max("version__dataset__versions__number"))


def closed_to_more(project: Project) -> str:
    """The reason why the project, a row of `with_newest`, takes no more examples; empty if it does."""
    if project.state not in TAKING or not project.tasks_made:
        return f"is {project.state}" if project.tasks_made else "is still being set up"
    if project.version.number != project.newest:  # type: ignore[attr-defined]
        return "uses an older version of its dataset, and the next version would lose what was added since"
    if project.version.counts["examples"] >= MOST:
        return f"holds {MOST:,} examples or more, and each addition copies the list of them"
    return ""


def taking(workspace_id: int, kinds: Sequence[str], most: int) -> list[Project]:
    """The projects of these kinds that take more examples, newest first, of the newest `most`."""
    rows = with_newest(workspace_id).filter(kind__in=kinds, state__in=TAKING).order_by("-id")
    return [row for row in rows[:most] if not closed_to_more(row)]


def receive(
    membership: Membership, project_id: int, records: Sequence[Example], lineage: str, **facts: object
) -> tuple[Project, list[str]]:
    """Adds the records that the project does not have, with all their tasks. Returns the project and the keys that it has only now.

    `lineage` and `facts` say in the lineage of the new version where it comes from. Raises Invalid at `project`.
    """
    with transaction.atomic():
        locks.until_commit(locks.Work.COLLECT, membership.workspace_id)  # a second click waits here, and adds nothing
        project = with_newest(membership.workspace_id).filter(pk=project_id).first()
        why = "is not in this workspace" if project is None else closed_to_more(project)
        if project is None or why:
            raise Invalid("The project takes no more examples.", {"project": why})
        project = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        here = VersionMember.objects.filter(version=project.version, example__key__in=[each.key for each in records])
        known = set(here.values_list("example__key", flat=True))
        fresh = [each for each in records if each.key not in known]
        if fresh:
            growing.grow(membership, project, fresh, lineage, **facts)
            _make_tasks(project, [each.key for each in fresh])
            audit.record(membership, membership.user, "project.examples_added", project, count=len(fresh), **facts)
        return project, [each.key for each in fresh]


def _make_tasks(project: Project, keys: Sequence[str]) -> None:
    made = []
    for member in VersionMember.objects.filter(version=project.version, example__key__in=keys).select_related(
        "example"
    ):
        content = member.example.content
        for index, subject in enumerate(task_factory.subjects_of(project.kind, content)):
            rank = task_factory.rank(project.strategy, project.pk, (member.position, index), subject, content)
            made.append((member.example_id, subject, rank))
    task_services.add_all(project, made)
