"""Exports of a person's data, and the rule by which unused accounts end."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone


class DataExport(models.Model):
    """One file, asked for by the person, or by an administrator for somebody who cannot sign in.

    `digest` is that of the link's secret, if an administrator asked: the link opens the file for anybody who has it. Without one, only
    the person fetches the file, signed in. `file` is a name below `var/personal_data/`.
    """

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        READY = "ready", "Ready"
        FAILED = "failed", "Failed"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="data_exports")
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    state = models.CharField(max_length=8, choices=State.choices, default=State.QUEUED)
    digest = models.CharField(max_length=64, blank=True)
    file = models.CharField(max_length=60)
    size = models.BigIntegerField(null=True)  # bytes
    rows = models.BigIntegerField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)
    problem = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(auto_now_add=True)  # the worker's last sign of life
    finished_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField()  # file, row and link go then

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user"], condition=Q(finished_at=None), name="one_open_data_export_per_person"
            ),
            models.UniqueConstraint(fields=["digest"], condition=~Q(digest=""), name="one_data_export_per_link"),
        ]

    def __str__(self) -> str:
        return f"data of person {self.user_id}"

    @property
    def ready(self) -> bool:
        """Whether it can be fetched now."""
        return self.state == self.State.READY and self.expires_at > timezone.now()


class Retention(models.Model):
    """The one row that says how long the installation keeps unused accounts. See `retention`."""

    unused_days = models.PositiveIntegerField(null=True)  # None: accounts stay

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="one_retention")]

    def __str__(self) -> str:
        return "retention of the installation"


class UnusedAccount(models.Model):
    """An account whose erasure was announced. `rounds` counts the daily rounds that found it unused, without the first one."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="unused_account")
    rounds = models.PositiveSmallIntegerField(default=0)
    counted_at = models.DateTimeField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"unused account of person {self.user_id}"
