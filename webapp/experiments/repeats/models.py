"""Runs that are launched again by the clock: the rhythm, and the result of each time."""

from django.db import models


class RunRepeat(models.Model):
    """A run whose config is launched again every few hours, or at a time of the day.

    Either `every_hours` is set, or `at`, a time of the clock in `zone`, and then perhaps `weekday` (0 is Monday). `next_at` is null once it
    has ended. States move under the lock of the row.
    """

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="repeats")
    run = models.ForeignKey("experiments.Run", on_delete=models.CASCADE, related_name="repeats")
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    every_hours = models.PositiveSmallIntegerField(null=True, blank=True)
    at = models.TimeField(null=True, blank=True)
    weekday = models.PositiveSmallIntegerField(null=True, blank=True)
    zone = models.CharField(max_length=64, default="UTC")
    ends_at = models.DateTimeField(null=True, blank=True)
    newest_data = models.BooleanField(default=False)  # else each run trains on the version of the first
    paused = models.BooleanField(default=False)
    next_at = models.DateTimeField(null=True, blank=True)
    launch_key = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 null: nothing to be unique with
    launch_digest = models.CharField(max_length=64, blank=True)  # of what was asked for with the key

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["created_by", "launch_key"], name="one_repeat_per_key_of_a_person"),
            models.CheckConstraint(
                condition=models.Q(every_hours__gte=1, at__isnull=True, weekday__isnull=True)
                | models.Q(every_hours__isnull=True, at__isnull=False, weekday__isnull=True)
                | models.Q(every_hours__isnull=True, at__isnull=False, weekday__lte=6),
                name="a_repeat_has_one_rhythm",
            ),
        ]
        indexes = [models.Index(fields=["next_at"], name="repeats_due", condition=models.Q(paused=False))]

    def __str__(self) -> str:
        return f"repeats of run {self.run_id}"


class RepeatTime(models.Model):
    """The outcome of one time of a repeat. There is one row for each time, so no time is launched twice. `missed`: earlier times, at which
    no worker ran."""

    class RepeatFate(models.TextChoices):
        LAUNCHED = "launched", "Launched"
        LEFT_OUT = "left_out", "Left out"
        REFUSED = "refused", "Refused"

    repeat = models.ForeignKey(RunRepeat, on_delete=models.CASCADE, related_name="times")
    due = models.DateTimeField()
    outcome = models.CharField(max_length=8, choices=RepeatFate.choices)
    reason = models.TextField(blank=True)
    missed = models.PositiveIntegerField(default=0)
    run = models.ForeignKey(
        "experiments.Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="repeated_by"
    )
    decided_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["repeat", "due"], name="a_time_is_launched_once")]

    def __str__(self) -> str:
        return f"{self.due:%Y-%m-%d %H:%M} of {self.repeat}"
