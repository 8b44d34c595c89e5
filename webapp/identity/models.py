"""What a company's directory says of people: which groups mean which role where, and which memberships came of it."""

from django.db import models

from webapp.accounts.models import Membership, Role, Workspace


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
    """A membership that a group has made: it ends with the group. `role` is the one that the groups gave last; where the
    membership has another, an owner has taken it into their own hands."""

    membership = models.OneToOneField(Membership, on_delete=models.CASCADE, related_name="from_directory")
    role = models.CharField(max_length=12, choices=Role.choices, default=Role.ANNOTATOR)

    def __str__(self) -> str:
        return f"{self.membership} by the directory"
