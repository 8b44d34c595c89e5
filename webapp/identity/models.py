"""Data of a company's directory: the roles of groups, and the memberships that follow from them."""

from uuid import uuid4

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from webapp.accounts.models import Membership, Role, User, Workspace


class GroupRole(models.Model):
    """People of `group` in the directory belong to the workspace with at least `role`."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="group_roles")
    group = models.CharField(max_length=200)
    role = models.CharField(max_length=12, choices=Role.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "group"], name="one_role_per_group")]

    def __str__(self) -> str:
        return f"{self.group} as {self.role} in {self.workspace}"


class FromDirectory(models.Model):
    """A membership that a group has made: it ends with the group. `role` is the last one from the groups; if the membership has another, an
    owner has set it."""

    membership = models.OneToOneField(Membership, on_delete=models.CASCADE, related_name="from_directory")
    role = models.CharField(max_length=12, choices=Role.choices, default=Role.ANNOTATOR)

    def __str__(self) -> str:
        return f"{self.membership} by the directory"


class Directory(models.Model):
    """A company's directory that keeps people and groups here up to date by SCIM. See `webapp.identity.scim`.

    Its groups have a meaning only in `workspaces`, or, if it is `everywhere`, in all present and later workspaces.
    """

    name = models.CharField(max_length=80, unique=True)
    everywhere = models.BooleanField(default=False)
    workspaces = models.ManyToManyField(Workspace, related_name="directories", blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name

    def reach(self) -> models.QuerySet[Workspace]:
        """The workspaces in which its groups count."""
        return Workspace.objects.all() if self.everywhere else self.workspaces.all()


class DirectoryKey(models.Model):
    """The bearer token with which a directory comes. Only its hash is stored; `prefix` lets people recognise it."""

    directory = models.ForeignKey(Directory, on_delete=models.CASCADE, related_name="keys")
    prefix = models.CharField(max_length=12)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    last_used_at = models.DateTimeField(null=True, blank=True)  # to the minute
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.prefix}… of {self.directory}"


class DirectoryPerson(models.Model):
    """A person in a directory, who has one account and belongs to one directory.

    `document` is the SCIM resource without what we add. The row stays when the directory deletes the person, so that nobody else gets the
    account and the same directory can bring them back.
    """

    directory = models.ForeignKey(Directory, on_delete=models.CASCADE, related_name="people")
    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="from_scim")
    key = models.UUIDField(default=uuid4, unique=True)  # the id that the directory knows
    user_name = models.CharField(max_length=254)  # as it is compared: without case
    external_id = models.CharField(max_length=254, blank=True)
    emails = ArrayField(models.CharField(max_length=254))  # all that it names, in small letters
    document = models.JSONField(default=dict)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["directory", "external_id"], name="person_by_external_id"),
            GinIndex(fields=["emails"], name="person_by_email"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["directory", "user_name"],
                condition=models.Q(deleted_at=None),
                name="one_person_per_user_name",
            )
        ]

    def __str__(self) -> str:
        return f"{self.user_name} of {self.directory}"


class DirectoryGroup(models.Model):
    """A group of a directory. `GroupRole` gives its meaning in a workspace, by its name."""

    directory = models.ForeignKey(Directory, on_delete=models.CASCADE, related_name="groups")
    key = models.UUIDField(default=uuid4, unique=True)
    name = models.CharField(max_length=200)
    external_id = models.CharField(max_length=254, blank=True)
    people = models.ManyToManyField(DirectoryPerson, related_name="groups", blank=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [models.Index(fields=["directory", "external_id"], name="group_by_external_id")]
        constraints = [models.UniqueConstraint(fields=["directory", "name"], name="one_group_per_name")]

    def __str__(self) -> str:
        return f"{self.name} of {self.directory}"
