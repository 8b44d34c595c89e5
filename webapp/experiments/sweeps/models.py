"""A sweep, its trials, and the run of each seed of a trial: all that is needed to repeat its choices."""

from django.db import models


class Sweep(models.Model):
    """A search for a good configuration: which keys change, how the next one is chosen, and which metric decides.

    `config` is complete; each trial lays its values over it. `axes` is `space.SweepAxis` as JSON. `clock` counts the reports of trials, so
    that the rows tell what was known when a trial was chosen. States change only under the lock of the row.
    """

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        STOPPING = "stopping", "Stopping"
        STOPPED = "stopped", "Stopped"
        FINISHED = "finished", "Finished"
        FAILED = "failed", "Failed"

    class Chooses(models.TextChoices):
        GRID = "grid", "Every combination"
        RANDOM = "random", "At random"
        TPE = "tpe", "By what has worked (TPE)"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="sweeps")
    experiment = models.ForeignKey("experiments.Experiment", on_delete=models.CASCADE, related_name="sweeps")
    name = models.CharField(max_length=120)
    source = models.ForeignKey(
        "experiments.Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="swept_by"
    )
    recipe = models.CharField(max_length=40)
    config = models.JSONField()
    # what its names of models and judges meant: `launch.named_rows`; nothing in sweeps of before
    named_rows = models.JSONField(default=dict)
    dataset = (
        models.BigIntegerField()
    )  # its id and the number of its version: that it is still there, each launch looks
    version = models.PositiveIntegerField()
    axes = models.JSONField()
    method = models.CharField(max_length=8, choices=Chooses.choices)
    metric = models.CharField(max_length=250)
    higher = models.BooleanField()  # whether higher values of the metric are better
    seeds = models.PositiveIntegerField()  # every trial runs with the seeds 0 to this, without it
    wanted = models.PositiveIntegerField()  # trials in all
    at_once = models.PositiveIntegerField()  # trials under way at the same time
    seed = models.PositiveIntegerField(default=0)  # of the choices
    first_rung = models.PositiveIntegerField(default=0)  # the step at which trials are first compared; 0: never
    factor = models.PositiveIntegerField(
        default=3
    )  # one in this many continues after a rung, and rungs are this many times as far
    together = models.BooleanField(default=False, db_default=False)  # its runs train in one process, in turns
    limits = models.JSONField(
        default=dict, db_default={}, blank=True
    )  # of each run: `lifecycle.limits.RunLimits` as JSON
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    state_reason = models.TextField(blank=True)
    clock = models.PositiveIntegerField(default=0)
    launch_key = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001 null: nothing to be unique with
    launch_digest = models.CharField(max_length=64, blank=True)  # of what was asked for with the key
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["created_by", "launch_key"], name="one_sweep_per_key_of_a_person"),
        ]
        indexes = [
            models.Index(fields=["id"], name="sweeps_under_way", condition=models.Q(state__in=("running", "stopping")))
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_over(self) -> bool:
        return self.state not in (self.State.RUNNING, self.State.STOPPING)

    @property
    def group(self) -> str:
        """The group of its runs in the table."""
        return f"sweep {self.pk}"


class SweepTrial(models.Model):
    """One configuration. It is written together with its runs, so a trial that is there has been launched.

    `asked` is the clock of the sweep when it was chosen. `told` is its outcome when it was first over: {"at", "state", "value"}, `at` the
    clock after it. If runs of a trial without a value are resumed, `told["later"]` has each following outcome, `running` among them. What was
    told never changes. `state` and what the table shows follow the runs. `rungs` has the decision at each: {"at", "step", "value", "goes_on"}.
    """

    class State(models.TextChoices):
        RUNNING = "running", "Under way"
        FINISHED = "finished", "Finished"
        PRUNED = "pruned", "Stopped early"
        LOST = "lost", "Seeds missing"
        REFUSED = "refused", "Cannot be run"

    sweep = models.ForeignKey(Sweep, on_delete=models.CASCADE, related_name="trials")
    number = models.PositiveIntegerField()
    values = models.JSONField()  # path of the config -> value
    digest = models.CharField(max_length=64)  # of the values
    state = models.CharField(max_length=8, choices=State.choices, default=State.RUNNING)
    asked = models.PositiveIntegerField()
    told = models.JSONField(null=True)
    rungs = models.JSONField(default=list)
    problem = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sweep", "number"], name="one_trial_per_number"),
            models.UniqueConstraint(fields=["sweep", "digest"], name="one_trial_per_configuration"),
        ]

    def __str__(self) -> str:
        return f"trial {self.number}"


class SweepRun(models.Model):
    """The seed and the trial of a run. It is deleted with its run, and the trial then lacks a value."""

    trial = models.ForeignKey(SweepTrial, on_delete=models.CASCADE, related_name="runs")
    run = models.OneToOneField("experiments.Run", on_delete=models.CASCADE, related_name="swept")
    seed = models.PositiveIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trial", "seed"], name="one_run_per_seed_of_a_trial")]

    def __str__(self) -> str:
        return f"{self.trial}, seed {self.seed}"
