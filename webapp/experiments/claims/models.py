"""Claims of papers put to the test: a study, and which arm and seed of it a run is."""

from django.db import models


class ClaimStudy(models.Model):
    """A paper's claim put to the test: every arm of a plan (`trainer.metrics.claims`) with several seeds, as ordinary runs.

    `plan_digest` is of what decides, as it stood at the launch.
    """

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="claim_studies")
    plan = models.CharField(max_length=40)
    plan_digest = models.CharField(max_length=64)
    launch_key = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 null: nothing to be unique with
    launch_digest = models.CharField(max_length=64, blank=True)  # of what was asked for with the key
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["created_by", "launch_key"], name="one_study_per_key_of_a_person")
        ]

    def __str__(self) -> str:
        return self.plan


class ClaimRun(models.Model):
    """Which arm and seed of a study a run is. A run that is deleted takes it along, and the study misses a value.

    `step` instead of `run`: the run waits for what another run of the study leaves, and is not launched yet. `measures` is written when
    the run finishes; null: it has not, yet.
    """

    study = models.ForeignKey(ClaimStudy, on_delete=models.CASCADE, related_name="runs")
    run = models.OneToOneField("experiments.Run", null=True, on_delete=models.CASCADE, related_name="claim")
    step = models.OneToOneField("experiments.ChainStep", null=True, on_delete=models.CASCADE, related_name="claim")
    arm = models.CharField(max_length=40)
    seed = models.PositiveIntegerField()
    measures = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "arm", "seed"], name="one_run_per_arm_and_seed"),
            models.CheckConstraint(
                condition=models.Q(run__isnull=False, step__isnull=True)
                | models.Q(run__isnull=True, step__isnull=False),
                name="a_run_or_a_step_of_a_claim",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.arm}, seed {self.seed}"
