"""Jobs that need weights outside training, and their results."""

from django.db import models
from django.utils import timezone

from webapp.core.background.priorities import Priority


class WeightsJob(models.Model):
    """One piece of work on the Ray cluster. States move only by conditional updates in `services` and `jobs`.

    Results lie in the order of the items: the job continues after the last one, even if its process died. `key` is the address of the
    question: work that was done once is not done again.
    """

    class Kind(models.TextChoices):
        GENERATE = "generate", "Generate"
        SCORE = "score", "Score"
        LOGPROBS = "logprobs", "Log-probabilities"
        EMBED = "embed", "Embeddings"
        EXPORT = "export", "Export"
        JUDGE = "judge", "Judge"
        TASK = "task", "Task of a claim"

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        STARTING = "starting", "Starting"
        RUNNING = "running", "Running"
        STOPPING = "stopping", "Stopping"
        STOPPED = "stopped", "Stopped"
        FINISHED = "finished", "Finished"
        FAILED = "failed", "Failed"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="weights_jobs")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    title = models.CharField(max_length=300)
    params = models.JSONField(default=dict)
    key = models.CharField(max_length=64)
    model = models.ForeignKey(
        "inference.RegisteredModel", null=True, blank=True, on_delete=models.CASCADE, related_name="weights_jobs"
    )
    version = models.ForeignKey(
        "datasets.DatasetVersion", null=True, blank=True, on_delete=models.PROTECT, related_name="weights_jobs"
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    state_at = models.DateTimeField(default=timezone.now)
    problem = models.TextField(blank=True)
    phase = models.CharField(max_length=40, blank=True)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    acked = models.PositiveIntegerField(default=0)  # batches of results that are stored
    outcome = models.JSONField(default=dict)
    used = models.JSONField(
        default=dict
    )  # of the machine, as the process told last: trainer.contracts.weights.WeightsUse
    memory_needed = models.BigIntegerField(null=True, blank=True)  # bytes: `memory_needs`; null: not known
    attempt = models.PositiveIntegerField(default=1)
    token_digest = models.CharField(max_length=64, blank=True)
    ray_job_id = models.CharField(max_length=80, blank=True)
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True, blank=True)  # the launch is due; null once Ray has accepted
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    # in the line: since when it counts as asked for, null as long as it has no items; and among what its workspace has there
    asked_at = models.DateTimeField(null=True, blank=True)
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL, db_default=0)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "key"], name="one_weights_job_per_key")]
        indexes = [
            models.Index(fields=["workspace", "-id"], name="weights_listing"),
            models.Index(fields=["state", "heartbeat_at"], name="weights_liveness"),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def is_over(self) -> bool:
        return self.state in (self.State.STOPPED, self.State.FINISHED, self.State.FAILED)

    @property
    def steps(self) -> dict[str, float | None] | None:
        """`{"done", "total", "seconds_left"}` of what it does without items, while it does it (`trainer.contracts.weights.WeightsSteps`)."""
        return self.outcome.get("steps") if self.state == self.State.RUNNING else None


ALIVE = frozenset({WeightsJob.State.STARTING, WeightsJob.State.RUNNING, WeightsJob.State.STOPPING})
"""The states with a place in the line: Ray has the job, or is about to."""


class WeightsItem(models.Model):
    """An item of a job that no dataset version holds; deleted once its result is stored."""

    job = models.ForeignKey(WeightsJob, on_delete=models.CASCADE, related_name="items", db_index=False)
    place = models.PositiveIntegerField()
    content = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "place"], name="one_item_per_place")]

    def __str__(self) -> str:
        return f"{self.job_id}/{self.place}"


class WeightsResult(models.Model):
    """The result for the item at `place`."""

    job = models.ForeignKey(WeightsJob, on_delete=models.CASCADE, related_name="results", db_index=False)
    place = models.PositiveIntegerField()
    content = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "place"], name="one_result_per_place")]

    def __str__(self) -> str:
        return f"{self.job_id}/{self.place}"


class WeightsLogLine(models.Model):
    job = models.ForeignKey(WeightsJob, on_delete=models.CASCADE, related_name="lines")
    time = models.DateTimeField(default=timezone.now)
    level = models.CharField(max_length=8)
    message = models.TextField()

    def __str__(self) -> str:
        return self.message
