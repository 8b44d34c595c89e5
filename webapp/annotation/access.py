"""Permissions of annotation: each function returns a row of the caller's workspace, or answers 404. A role that is too low is refused.

Annotators reach only their own assignments, in projects they take part in. They never see an example, another person's answer, a label or
the name of a model. Only people who may let others in know who annotates under which pseudonym.
"""

from typing import TypeVar

from django.core.exceptions import PermissionDenied
from django.http import Http404

from webapp.accounts.access import at_least
from webapp.accounts.models import Membership, Role, User

from .models import Assignment, Comment, Project, ProjectInvite, Publication, Task

Row = TypeVar("Row")
READER = Role.REVIEWER
WRITER = Role.RESEARCHER


def may_read(membership: Membership) -> Membership:
    return at_least(membership, READER)


def may_write(membership: Membership) -> Membership:
    return at_least(membership, WRITER)


def may_name(membership: Membership) -> bool:
    """Whether they may know who the annotators are. People who let others in and pause them know it anyway. Reviewers judge answers and see
    pseudonyms on every page, in every export and in the API."""
    return membership.may(WRITER)


def named(membership: Membership, wanted: bool) -> bool:
    """`wanted`. Refused if they may not know the names."""
    if wanted and not may_name(membership):
        raise PermissionDenied("Reviewers see annotators under pseudonyms.")
    return wanted


def project_read(membership: Membership, project_id: int) -> Project:
    """The project with everything about it, for reviewers and above."""
    return _project(may_read(membership), project_id)


def project_write(membership: Membership, project_id: int) -> Project:
    return _project(may_write(membership), project_id)


def project_work(membership: Membership, project_id: int) -> Project:
    """The project, to work in it. An annotator must have been let in; others may join projects that they can see."""
    project = _project(membership, project_id)
    if not membership.may(READER) and not project.participants.filter(user=membership.user).exists():
        raise Http404("no such project")
    return project


def publication_read(membership: Membership, project_id: int, publication_id: int) -> Publication:
    """A publication of a project that they may read."""
    rows = Publication.objects.select_related("version__dataset", "project__version", "made_by")
    found = rows.filter(project=project_read(membership, project_id), pk=publication_id).first()
    if found is None:
        raise Http404("no such publication")
    return found


def task_read(membership: Membership, task_id: int) -> Task:
    tasks = Task.objects.filter(project__workspace_id=may_read(membership).workspace_id)
    return _found(tasks.select_related("project", "example").filter(id=task_id).first(), "task")


def participant(project: Project, user_id: int) -> User:
    """A person who takes part in a project that the caller has fetched."""
    row = project.participants.select_related("user").filter(user_id=user_id).first()
    return _found(row, "participant").user


def invite(project: Project, invite_id: int) -> ProjectInvite:
    """An invitation into a project that the caller has fetched."""
    return _found(project.invites.select_related("project").filter(id=invite_id).first(), "invitation")


def answered_read(membership: Membership, assignment_id: int) -> Assignment:
    """The assignment of any person, for a reviewer."""
    rows = Assignment.objects.filter(project__workspace_id=may_read(membership).workspace_id, id=assignment_id)
    return _found(rows.select_related("project", "task").first(), "assignment")


def comment_read(membership: Membership, comment_id: int) -> Comment:
    rows = Comment.objects.filter(project__workspace_id=may_read(membership).workspace_id, id=comment_id)
    return _found(rows.select_related("project").first(), "comment")


def own_assignment(membership: Membership, assignment_id: int) -> Assignment:
    """The person's own assignment, in any role: nobody works on another person's seat."""
    mine = Assignment.objects.filter(user_id=membership.user_id, project__workspace_id=membership.workspace_id)
    rows = mine.select_related("project", "task__example", "guidelines").filter(id=assignment_id)
    return _found(rows.first(), "assignment")


def _project(membership: Membership, project_id: int) -> Project:
    projects = Project.objects.filter(workspace_id=membership.workspace_id, id=project_id)
    return _found(projects.select_related("version__dataset").first(), "project")


def _found(row: Row | None, what: str) -> Row:
    if row is None:
        raise Http404(f"no such {what}")
    return row
