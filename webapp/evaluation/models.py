"""Evaluations, the cases behind their numbers, and recorded verdicts that were sent in."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.utils import timezone

from webapp.core.background.priorities import Priority

MAX_NAME = 120
MAX_TAG = 120


class Recording(models.Model):
    """Verdicts of judges, or scores of reward models, that another program recorded: the lines of the file that was sent. They are kept so
    that an evaluation can be run again. If the same content is sent twice, there is one row."""

    class Kind(models.TextChoices):
        VERDICTS = "verdicts", "Verdicts"
        SCORES = "scores", "Scores"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="recordings")
    name = models.CharField(max_length=MAX_NAME)
    kind = models.CharField(max_length=8, choices=Kind.choices, default=Kind.VERDICTS)
    digest = models.CharField(max_length=64)  # SHA-256 of the file
    # of its pairs, groups and labels, or of the scored responses: recordings with the same digest can be compared
    pairs_digest = models.CharField(max_length=64)
    rows = models.PositiveIntegerField()
    judges = models.PositiveIntegerField()  # or reward models
    content = models.BinaryField()  # zlib
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "digest"], name="one_recording_per_content")]

    def __str__(self) -> str:
        return self.name


class Evaluation(models.Model):
    """One recipe on one body of data. `config` is complete: config and data are enough to run the same evaluation again.

    `results` fits `report.Report`. `benchmark` is the address of the fixed part: recipe, data and settings, without the compared judges or
    models. Evaluations that share it are in one leaderboard.
    """

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        PAUSED = "paused", "Paused"
        FINISHED = "finished", "Finished"
        FAILED = "failed", "Failed"
        CANCELLED = "cancelled", "Cancelled"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="evaluations")
    name = models.CharField(max_length=MAX_NAME)
    recipe = models.CharField(max_length=16)
    config = models.JSONField(default=dict)
    dataset_version = models.ForeignKey(
        "datasets.DatasetVersion", null=True, blank=True, on_delete=models.PROTECT, related_name="evaluations"
    )
    recording = models.ForeignKey(
        Recording, null=True, blank=True, on_delete=models.PROTECT, related_name="evaluations"
    )
    benchmark = models.CharField(max_length=64)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    problem = models.TextField(blank=True)
    progress = models.JSONField(default=dict)  # {"phase", "done", "total", and what became of the calls}
    results = models.JSONField(null=True)
    jobs = models.ManyToManyField("weights.WeightsJob", related_name="evaluations")  # of the models that answer
    rerun_of = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="reruns")
    launch_key = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001  unique where there is one
    launch_digest = models.CharField(max_length=64, blank=True)  # of what was asked for with the key
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    # of its jobs in the line: when they count as asked for, and their priority within the workspace
    asked_at = models.DateTimeField(default=timezone.now)
    priority = models.SmallIntegerField(choices=Priority.choices, default=Priority.NORMAL, db_default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(auto_now_add=True)  # the worker's last sign of life
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["created_by", "launch_key"],
                name="one_evaluation_per_key",
                condition=Q(launch_key__isnull=False),
            )
        ]
        indexes = [
            models.Index(fields=["workspace", "-id"], name="evaluation_listing"),
            models.Index(fields=["workspace", "benchmark"], name="evaluation_benchmark"),
            # finds the evaluations of a judge, a model or a run: see `webapp.lineage`
            GinIndex(fields=["config"], opclasses=["jsonb_path_ops"], name="evaluation_config", fastupdate=False),
        ]

    def __str__(self) -> str:
        return self.name


class Case(models.Model):
    """One thing that a number counts. `tags` say which numbers: the cases of a number are those with its tags."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="cases", db_index=False)
    number = models.PositiveIntegerField()
    subject = models.JSONField()  # {"judge", "example", "a", "b", "response", "criterion", ...}
    values = models.JSONField()  # what was found, and the ids of the verdicts it rests on
    tags = ArrayField(models.CharField(max_length=MAX_TAG), default=list)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "number"], name="one_case_per_number")]

    def __str__(self) -> str:
        return f"case {self.number} of evaluation {self.evaluation_id}"


class EndpointAnswer(models.Model):
    """The answer of a model behind an endpoint to a prompt, as it was sampled. The model is asked once, even if the worker dies.

    `key` is the content's address: messages, sampling, seed and number of the sample. `cost` is None if no price is known.
    """

    class State(models.TextChoices):
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    endpoint = models.ForeignKey("inference.Endpoint", on_delete=models.CASCADE, related_name="answers", db_index=False)
    key = models.CharField(max_length=64)
    state = models.CharField(max_length=6, choices=State.choices)
    text = models.TextField(blank=True)
    finish_reason = models.CharField(max_length=20, blank=True)
    problem = models.TextField(blank=True)
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    latency_ms = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "key"], name="one_answer_per_question")]

    def __str__(self) -> str:
        return f"{self.state} {self.key[:12]}"
