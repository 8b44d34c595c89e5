"""The company's directories that keep people and groups up to date by SCIM, and their keys."""

import secrets
from collections.abc import Sequence

from django.db import IntegrityError, transaction
from django.db.models import Count, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from webapp.accounts.models import Membership, User, Workspace, hash_secret
from webapp.core.auditing import audit
from webapp.core.problems import Invalid
from webapp.core.text.texts import several_lines

from .models import Directory, DirectoryGroup, DirectoryKey, DirectoryPerson


def listed() -> QuerySet[Directory]:
    """All, with their live keys (`live`), their workspaces, and how many people and groups they have."""
    live = DirectoryKey.objects.filter(revoked_at=None).order_by("-id")
    counted = Directory.objects.annotate(
        persons=_count(DirectoryPerson.objects.filter(deleted_at=None)), teams=_count(DirectoryGroup.objects.all())
    )
    return counted.prefetch_related(Prefetch("keys", live, to_attr="live"), "workspaces").order_by("name")


def _count(rows: "QuerySet[DirectoryPerson] | QuerySet[DirectoryGroup]") -> Coalesce:
    """The count of rows of each directory, as a subquery: two counts over joins would multiply people with groups."""
    mine = rows.filter(directory=OuterRef("pk")).order_by().values("directory")
    return Coalesce(Subquery(mine.annotate(count=Count("pk")).values("count")), 0)


def counting_in(workspace: Workspace) -> list[str]:
    """The names of the directories whose groups count in the workspace."""
    reach = Q(everywhere=True) | Q(workspaces=workspace)
    return list(Directory.objects.filter(reach).order_by("name").distinct().values_list("name", flat=True))


@transaction.atomic
def create(administrator: User, name: str, everywhere: bool, workspaces: Sequence[Workspace]) -> tuple[Directory, str]:
    """A new directory and the secret of its first key. Raises Invalid at `name`, `workspaces`."""
    name = several_lines(name, 80, "A directory needs a name.", "name")
    if not everywhere and not workspaces:
        raise Invalid("A directory needs a workspace.", {"workspaces": "choose at least one, or all"})
    try:
        with transaction.atomic():
            directory = Directory.objects.create(name=name, everywhere=everywhere)
    except IntegrityError as error:
        raise Invalid("There is a directory with this name already.", {"name": "is taken"}) from error
    directory.workspaces.set([] if everywhere else workspaces)
    _record(administrator, "directory.created", directory, name=name, everywhere=everywhere)
    return directory, make_key(administrator, directory)


@transaction.atomic
def make_key(administrator: User, directory: Directory) -> str:
    """Makes another key and returns its secret, which cannot be read again. Earlier keys work until they are revoked."""
    secret = "tsd_" + secrets.token_urlsafe(32)
    key = DirectoryKey.objects.create(
        directory=directory, prefix=secret[:10], digest=hash_secret(secret), created_by=administrator
    )
    _record(administrator, "directory.key_created", key, directory=directory.name, prefix=key.prefix)
    return secret


@transaction.atomic
def revoke_key(administrator: User, key: DirectoryKey) -> None:
    """Revokes the key: it opens nothing from now on. Revoking it twice is not an error. The accounts stay as they are."""
    if DirectoryKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now()):
        _record(administrator, "directory.key_revoked", key, directory=key.directory.name, prefix=key.prefix)


def _record(administrator: User, action: str, row: Directory | DirectoryKey, **detail: object) -> None:
    """Records the action in the logs of the administrator's workspaces, like other rights in the installation."""
    for membership in Membership.objects.filter(user=administrator).select_related("workspace"):
        audit.record(membership, administrator, action, row, **detail)
