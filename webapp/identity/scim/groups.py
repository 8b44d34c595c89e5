"""The groups of a directory, and who is in them. Roles follow at once: see `webapp.identity.groups`."""

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from scim2_models import (
    InvalidValueException,
    Meta,
    NotFoundException,
    PayloadTooLargeException,
    Reference,
    UniquenessException,
)

from webapp.identity import groups
from webapp.identity.models import Directory, DirectoryGroup, DirectoryPerson, GroupRole

from .resources import Group, GroupMember
from .versions import Altered, checked

MOST_CHANGED = 1_000  # people who come or go with one request, each of whose memberships is brought up to date
ABSENT = "There is no such group."


def known(directory: Directory) -> QuerySet[DirectoryGroup]:
    return DirectoryGroup.objects.filter(directory=directory)


def shown(group: DirectoryGroup, root: str) -> Group:
    """The resource; `root` is the address of the service. `members` comes from what is prefetched."""
    return Group(
        id=str(group.key),
        external_id=group.external_id or None,
        display_name=group.name,
        members=[
            GroupMember(value=str(each.key), ref=Reference(f"{root}/Users/{each.key}"), type="User")
            for each in group.people.all()
        ]
        or None,
        meta=Meta(
            resource_type="Group",
            created=group.created_at,
            last_modified=group.changed_at,
            location=f"{root}/Groups/{group.key}",
            version=f'W/"{group.version}"',
        ),
    )


@transaction.atomic
def create(directory: Directory, resource: Group) -> DirectoryGroup:
    return _kept(DirectoryGroup(directory=directory, version=0), resource)


@transaction.atomic
def change(directory: Directory, key: UUID, expected: str, altered: Altered[Group]) -> DirectoryGroup:
    """The group as `altered` leaves it, if it is still at the version `expected` (empty: at any)."""
    group = known(directory).select_for_update().filter(key=key).first()
    if group is None:
        raise NotFoundException(detail=ABSENT)
    checked(expected, group.version)
    return _kept(group, altered(shown(group, "")))


@transaction.atomic
def delete(directory: Directory, key: UUID, expected: str) -> None:
    """Deletes the group: its people lose the roles that it gave."""
    group = known(directory).select_for_update().filter(key=key).first()
    if group is None:
        raise NotFoundException(detail=ABSENT)
    checked(expected, group.version)
    people, named = set(group.people.values_list("pk", flat=True)), {group.name}
    group.delete()
    _follow(directory, people, named)


def _kept(group: DirectoryGroup, resource: Group) -> DirectoryGroup:
    named, external_id = (resource.display_name or "").strip(), resource.external_id or ""
    if not 0 < len(named) <= 200 or len(external_id) > 254:
        raise InvalidValueException(detail="displayName has 1 to 200 characters, externalId at most 254.")
    if known(group.directory).filter(name=named).exclude(pk=group.pk).exists():
        raise UniquenessException(detail="There is a group with this name already.")
    is_new, former = group.pk is None, group.name
    before = set() if is_new else set(group.people.values_list("pk", flat=True))
    after = _people(group.directory, resource)
    if not is_new and (former, group.external_id, before) == (named, external_id, after):
        return group
    changed = before | after if former != named else before ^ after
    group.name, group.external_id, group.version, group.changed_at = (
        named,
        external_id,
        group.version + 1,
        timezone.now(),
    )
    group.save()
    group.people.remove(*(before - after))
    group.people.add(*(after - before))
    _follow(group.directory, changed, {former, named})
    return group


def _people(directory: Directory, resource: Group) -> set[int]:
    """The ids of the members. Raises InvalidValueException for members who are not people of this directory."""
    wanted = {each.value for each in resource.members or []}
    try:
        keys = {UUID(each) for each in wanted if each}
    except ValueError as error:
        raise InvalidValueException(detail="members: a value is not the id of a person.") from error
    found = set(
        DirectoryPerson.objects.filter(directory=directory, deleted_at=None, key__in=keys).values_list("pk", flat=True)
    )
    if None in wanted or len(found) != len(keys):
        raise InvalidValueException(detail="members: a value is not the id of a person. Groups in groups are not kept.")
    return found


def _follow(directory: Directory, people: Collection[int], named: Collection[str]) -> None:
    """Raises PayloadTooLargeException. In the order of accounts: two groups that change at once lock their people in the same one."""
    meant = GroupRole.objects.filter(group__in=named, workspace__in=directory.reach())
    where = list(meant.values_list("workspace_id", flat=True))  # also of a name that no group has any more
    if not where:
        return
    if len(people) > MOST_CHANGED:
        raise PayloadTooLargeException(
            detail=f"A group with a role can get or lose at most {MOST_CHANGED} people at once. Send them in parts."
        )
    rows = DirectoryPerson.objects.filter(pk__in=people).select_related("user", "directory").order_by("user_id")
    for person in rows:
        groups.follow_directory(person, where)
