"""Roles that follow the groups of a company's directory."""

from collections.abc import Collection, Iterable

from django.db import transaction
from django.db.models import Q, QuerySet

from webapp.accounts.members import removals, services
from webapp.accounts.models import RANK, Membership, Role, User, Workspace
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.core.tasks import enqueue
from webapp.core.text.texts import several_lines

from .models import Directory, DirectoryPerson, FromDirectory, GroupRole


@transaction.atomic
def map_group(membership: Membership, group: str, role: str) -> GroupRole:
    """People of `group` have `role` in the workspace: at once if a directory lists them by SCIM, else from their next sign-in. A group has
    one role: the newest counts."""
    group = several_lines(group, 200, "A group needs a name.", "group")
    if role not in Role.values:
        raise Invalid("Unknown role.", {"role": f"must be one of {', '.join(Role.values)}"})
    row, _ = GroupRole.objects.update_or_create(workspace=membership.workspace, group=group, defaults={"role": role})
    audit.record(membership, membership.user, "group.mapped", row, group=row.group, role=role)
    enqueue("workers.directories.follow_group", row.workspace_id, row.group)
    return row


@transaction.atomic
def unmap(membership: Membership, row: GroupRole) -> None:
    """Removes the meaning of the group; the people who joined by it leave, as `map_group` says when."""
    audit.record(membership, membership.user, "group.unmapped", row, group=row.group)
    enqueue("workers.directories.follow_group", row.workspace_id, row.group)
    row.delete()


def follow_group(workspace_id: int, group: str) -> None:
    """Updates the memberships of the people in `group`, as directories list them, to its present meaning in the workspace."""
    people = DirectoryPerson.objects.filter(groups__name=group).select_related("user", "directory").order_by("user_id")
    for person in people.iterator():
        if person.directory.reach().filter(pk=workspace_id).exists():
            follow_directory(person, [workspace_id])


def heard_in(directory: Directory, also: Collection[int] = ()) -> QuerySet[Workspace]:
    """The workspaces for which the directory decides the members: it has a group with a role there. Also those of `also` in which its
    groups count: it had such a group until now."""
    mapped = GroupRole.objects.filter(group__in=directory.groups.values("name")).values("workspace")
    return directory.reach().filter(Q(pk__in=mapped) | Q(pk__in=also))


def follow_directory(person: DirectoryPerson, also: Collection[int] = ()) -> None:
    """Updates the memberships to the meaning of the groups of the person's directory, if it decides (see `heard_in`). A closed account
    belongs to none of the workspaces in which its groups count."""
    if person.user.is_active:
        named = person.groups.values_list("name", flat=True)
        return follow(person.user, named, heard_in(person.directory, also))
    follow(person.user, (), person.directory.reach())


def follow_sign_in(user: User, named: Iterable[str]) -> None:
    """Like `follow`, for the groups of a sign-in. If a directory decides, the sign-in's groups are ignored: the directory is up to date, a
    sign-in only at its time."""
    person = DirectoryPerson.objects.filter(user=user).select_related("user", "directory").first()
    if person is None:
        return follow(user, named)
    follow_directory(person)
    follow(user, named, Workspace.objects.exclude(pk__in=heard_in(person.directory)))


@transaction.atomic
def follow(user: User, groups: Iterable[str], where: QuerySet[Workspace] | None = None) -> None:
    """Updates the memberships of `user` to the present meaning of their `groups`, in the workspaces `where` (None: in all).

    A person whom an owner removed stays out, and a role given by hand stays as it is. A workspace keeps its last owner.
    """
    where = Workspace.objects.all() if where is None else where
    User.objects.select_for_update().get(pk=user.pk)  # two sign-ins at once would each add and each take away
    wanted: dict[int, str] = {}
    rows = GroupRole.objects.filter(group__in=set(groups), workspace__in=where).select_related("workspace")
    for row in rows:
        wanted[row.workspace_id] = max(wanted.get(row.workspace_id, row.role), row.role, key=lambda r: RANK[Role(r)])
    came = Membership.objects.filter(user=user, workspace__in=where).exclude(from_directory=None)
    before = list(came.select_related("from_directory", "user"))
    belongs = set(Membership.objects.filter(user=user).values_list("workspace_id", flat=True))
    for workspace in {row.workspace for row in rows if row.workspace_id not in belongs}:
        if not removals.is_kept_out(workspace, user):
            entered = services.enter(workspace, user, wanted[workspace.pk])
            FromDirectory.objects.create(membership=entered, role=entered.role)
    for membership in before:
        _adjust(membership, wanted.get(membership.workspace_id))


def _adjust(membership: Membership, role: str | None) -> None:
    """Gives a membership of the directory the role that its groups mean, or ends it if they mean none.

    If an owner has changed the role since, the role stays the owner's decision.
    """
    if membership.role != membership.from_directory.role:
        membership.from_directory.delete()
        return
    try:
        with transaction.atomic():
            if role is None:
                services.leave(membership, by="directory")
            elif role != membership.role:
                services.take_role(membership, role, by="directory")
                FromDirectory.objects.filter(membership=membership).update(role=role)
    except Conflict:  # the last owner: somebody has to be able to let others in
        return
