"""Backups that were made, restorations that tried one, and the plan of both."""

from django.conf import settings
from django.db import models
from django.utils import timezone


class Origin(models.TextChoices):
    COMMAND = "command", "Command"
    PAGE = "page", "Page"
    SCHEDULE = "schedule", "Schedule"


class Backup(models.Model):
    """One backup, under way or over. `name` is that of its manifest; `size` is the number of bytes that a restoration would
    write, `added` the number of bytes that the backup added to the place of backups.

    `open` is true while it is under way and null afterwards: being unique, it lets one be under way at a time.
    """

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        FINISHED = "finished", "Finished"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    origin = models.CharField(max_length=8, choices=Origin.choices)
    open = models.BooleanField(null=True, default=True, unique=True)
    folder = models.CharField(max_length=500)
    name = models.CharField(max_length=40, blank=True)
    encrypted = models.BooleanField(default=False)
    done = models.BigIntegerField(default=0)  # bytes
    total = models.BigIntegerField(null=True)
    size = models.BigIntegerField(null=True)
    added = models.BigIntegerField(null=True)
    rows = models.BigIntegerField(null=True)
    files = models.BigIntegerField(null=True)
    problem = models.CharField(max_length=1000, blank=True)
    stopping = models.BooleanField(default=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(auto_now_add=True)  # the last sign of life
    finished_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)  # by the rule of how many are kept

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.name or f"backup {self.pk}"

    @property
    def seconds(self) -> float | None:
        return (self.finished_at - self.started_at).total_seconds() if self.finished_at and self.started_at else None


class BackupPlan(models.Model):
    """The one row says when backups are made and tried automatically, and how many are kept. Null means never, or all.

    A backup is made at `hour`, or at intervals of `minutes`, or not at all if both are null.
    """

    hour = models.PositiveSmallIntegerField(null=True)  # of the day in UTC
    minutes = models.PositiveSmallIntegerField(null=True)
    drill_days = models.PositiveSmallIntegerField(null=True)  # from one drill to the next; null: none by itself
    drill_hour = models.PositiveSmallIntegerField(default=4)
    keep_daily = models.PositiveSmallIntegerField(default=7)
    keep_weekly = models.PositiveSmallIntegerField(default=4)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(pk=1), name="one_backup_plan")]

    def __str__(self) -> str:
        return f"at {self.hour} h, {self.keep_daily} daily, {self.keep_weekly} weekly"


class BackupDrill(models.Model):
    """A backup that is restored beside the installation to see whether it works.

    `passed` is null until the result is known, and if somebody ended the drill. `open` is as for a backup.
    """

    origin = models.CharField(max_length=8, choices=Origin.choices, default=Origin.COMMAND)
    open = models.BooleanField(null=True, default=None, unique=True)
    folder = models.CharField(max_length=500, default="")
    name = models.CharField(max_length=40, blank=True)  # of the backup
    passed = models.BooleanField(null=True)
    problem = models.CharField(max_length=1000, blank=True)
    step = models.CharField(max_length=200, default="", blank=True)  # what was done last, in words
    done = models.BigIntegerField(default=0)  # bytes
    total = models.BigIntegerField(null=True)
    rows = models.BigIntegerField(null=True)
    files = models.BigIntegerField(null=True)
    seconds = models.FloatField(null=True)
    stopping = models.BooleanField(default=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(default=timezone.now)  # the last sign of life
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        told = {True: "passed", False: "failed", None: "under way" if self.open else "cancelled"}
        return f"drill of {self.name or 'the newest backup'} {told[self.passed]}"
