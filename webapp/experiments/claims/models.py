"""Tests of papers' claims: a study, the arm and seed of each of its runs, and the constructed tasks that were made here."""

from django.db import models


class ClaimTask(models.Model):
    """A constructed task (`trainer.claims.tasks`) as this workspace has it: its examples and the small model that was taught for it.

    `job` makes both, and they are entered together. Each is null until then, and again if somebody deletes it. The workspace has one row
    for each task, so that requests at the same time share one job. `form` is TASK_FORM of the program that makes it.
    """

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="claim_tasks")
    task = models.CharField(max_length=40)
    wanted = models.PositiveIntegerField()
    form = models.PositiveIntegerField()
    job = models.ForeignKey("weights.WeightsJob", null=True, on_delete=models.SET_NULL, related_name="+")
    version = models.ForeignKey("datasets.DatasetVersion", null=True, on_delete=models.SET_NULL, related_name="+")
    model = models.ForeignKey("inference.RegisteredModel", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "task", "wanted", "form"], name="one_task_of_claims_a_workspace"
            )
        ]

    def __str__(self) -> str:
        return f"{self.task}-{self.wanted}" if self.task == "syllables" else self.task


class ClaimStudy(models.Model):
    """A paper's claim put to the test: every arm of a plan (`trainer.metrics.claims`) with several seeds, as ordinary runs.

    `plan_digest` is the digest of the rule of decision at the launch. A study with a `task` waits until that is made; then its runs are
    launched as they were `asked` for, or refused, which `problem` explains.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        LAUNCHED = "launched", "Launched"
        REFUSED = "refused", "Refused"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="claim_studies")
    plan = models.CharField(max_length=40)
    plan_digest = models.CharField(max_length=64)
    state = models.CharField(max_length=8, choices=State.choices, default=State.LAUNCHED)
    task = models.ForeignKey(ClaimTask, null=True, on_delete=models.PROTECT, related_name="studies")
    asked = models.JSONField(default=dict)  # of a study with a task: {"seeds", "config"}
    problem = models.TextField(blank=True)
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
    """The arm and the seed of a run in a study. It is deleted with its run, and the study then lacks a value.

    `step` instead of `run`: the run waits for the output of another run of the study, and is not launched yet. `measures` is written when
    the run finishes; null: it has not finished yet.
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
