"""Steps of a chain: runs and evaluations that are launched once a run has finished, or once an annotation project is settled."""

from django.db import models


class ChainStep(models.Model):
    """A run or an evaluation that waits for a run (`after`), for an earlier step that is not launched yet (`behind`), or for an annotation
    `project`, on whose answers it trains. It may wait for other runs too (`waits`).

    `asked` is the request as it was checked: recipe, config, dataset and, for a run, whether it begins with the model that the previous run
    leaves. States move by conditional updates under the lock of the row.
    """

    class Kind(models.TextChoices):
        RUN = "run", "Train"
        EVALUATION = "evaluation", "Evaluate"

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        LAUNCHED = "launched", "Launched"
        REFUSED = "refused", "Refused"
        CANCELLED = "cancelled", "Cancelled"

    after = models.ForeignKey(
        "experiments.Run", null=True, blank=True, on_delete=models.CASCADE, related_name="chain_steps"
    )
    behind = models.ForeignKey("self", null=True, blank=True, on_delete=models.CASCADE, related_name="steps")
    project = models.ForeignKey(
        "annotation.Project",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="chain_steps",
        db_index=False,
    )
    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="chain_steps")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    name = models.CharField(max_length=120, blank=True)
    asked = models.JSONField()
    state = models.CharField(max_length=9, choices=State.choices, default=State.WAITING)
    reason = models.TextField(blank=True)
    run = models.ForeignKey(
        "experiments.Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="launched_by_step"
    )
    evaluation = models.ForeignKey(
        "evaluation.Evaluation", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    launch_key = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 null: nothing to be unique with
    launch_digest = models.CharField(max_length=64, blank=True)  # of what was asked for with the key
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["created_by", "launch_key"], name="one_step_per_key_of_a_person"),
            models.CheckConstraint(
                condition=models.Q(after__isnull=False, behind__isnull=True, project__isnull=True)
                | models.Q(after__isnull=True, behind__isnull=False, project__isnull=True)
                | models.Q(after__isnull=True, behind__isnull=True, project__isnull=False),
                name="a_step_waits_for_one_thing",
            ),
        ]
        indexes = [
            models.Index(fields=["after"], name="waiting_steps", condition=models.Q(state="waiting")),
            models.Index(fields=["project"], name="steps_of_projects", condition=models.Q(project__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name or f"{self.get_kind_display()} ({self.asked.get('recipe', '')})"


class ChainWait(models.Model):
    """Another run for which a step waits, besides the one that it comes after: `run`, or the one that the step `on` becomes once it is
    launched. Both are null once it was deleted: then the step is never launched."""

    step = models.ForeignKey(ChainStep, on_delete=models.CASCADE, related_name="waits")
    run = models.ForeignKey("experiments.Run", null=True, on_delete=models.SET_NULL, related_name="joined_steps")
    on = models.ForeignKey(ChainStep, null=True, on_delete=models.SET_NULL, related_name="awaited_by")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["step", "run"], name="a_step_waits_once_for_a_run"),
            models.UniqueConstraint(fields=["step", "on"], name="a_step_waits_once_for_a_step"),
            models.CheckConstraint(
                condition=models.Q(run__isnull=True) | models.Q(on__isnull=True), name="a_wait_is_for_one_thing"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.step} after {self.run or self.on or 'a run that was deleted'}"
