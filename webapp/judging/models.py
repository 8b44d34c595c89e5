"""Judges, their versions, their verdicts and trials."""

from datetime import UTC, datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models

from trainer.judges.base import BaseSpec
from trainer.judges.spec import KINDS, resolve

MAX_NAME = 120
MAX_KEY = 300  # as long as the key of a recorded output


class Judge(models.Model):
    """A judge has a name and a kind; its versions hold everything else. `fixed_examples` are the ids of the examples on which
    its versions are compared. They come from any versions of `fixed_dataset`."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="judges")
    name = models.CharField(max_length=MAX_NAME)
    kind = models.CharField(max_length=20)
    fixed_dataset = models.ForeignKey("datasets.Dataset", null=True, on_delete=models.SET_NULL, related_name="+")
    fixed_examples = ArrayField(models.BigIntegerField(), default=list)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_judge_per_name")]
        indexes = [models.Index(fields=["workspace", "-id"], name="judge_listing")]

    def __str__(self) -> str:
        return self.name

    @property
    def title(self) -> str:
        return KINDS[self.kind].title


class JudgeVersion(models.Model):
    """A numbered version of a judge. It never changes after its first use, and the database holds that as well.

    `spec` is complete: see trainer.judges.spec. `digest` stands for the spec and the endpoint; keys of verdicts contain it.
    """

    judge = models.ForeignKey(Judge, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    spec = models.JSONField()
    endpoint = models.ForeignKey("inference.Endpoint", on_delete=models.PROTECT, related_name="judge_versions")
    digest = models.CharField(max_length=64)
    note = models.CharField(max_length=300, blank=True)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    first_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["judge", "number"], name="one_judge_version_per_number"),
            models.UniqueConstraint(fields=["judge", "digest"], name="one_judge_version_per_content"),
        ]

    def __str__(self) -> str:
        return f"{self.judge} v{self.number}"

    @property
    def resolved(self) -> BaseSpec:
        return resolve(self.spec)


class Verdict(models.Model):
    """A call and its outcome, stored once per version and key. The states are those of trainer.judges.engine.

    `request` is what was sent, `raw` the reply to the letter, `parsed` what was read from it. `subject` says what the call
    is about: example, response, criterion, order, sample. Tokens and attempts count every time that the judge was asked.
    """

    class State(models.TextChoices):
        DONE = "done", "Done"
        MISSING = "missing", "Missing"
        FAILED = "failed", "Failed"

    class Source(models.TextChoices):
        CALLED = "called", "Called"
        RECORDED = "recorded", "Recorded"

    version = models.ForeignKey(JudgeVersion, on_delete=models.CASCADE, related_name="verdicts", db_index=False)
    key = models.CharField(max_length=MAX_KEY)
    state = models.CharField(max_length=8, choices=State.choices)
    raw = models.TextField(blank=True)
    parsed = models.JSONField(null=True)
    problem = models.TextField(blank=True)
    request = models.JSONField(null=True)
    subject = models.JSONField(default=dict)
    prompt_tokens = models.PositiveIntegerField(null=True)
    cached_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    latency_ms = models.PositiveIntegerField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    source = models.CharField(max_length=8, choices=Source.choices, default=Source.CALLED)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "key"], name="one_verdict_per_call")]

    def __str__(self) -> str:
        return f"{self.state} {self.key[:12]}"


class Trial(models.Model):
    """A trial shows what a judge says on chosen examples: a draft, or two versions against each other.

    A draft has `spec` and `endpoint`. `results` holds its calls, none of which enters the verdict store. A comparison has
    `before` and `after`; its results name stored verdicts. `extra` holds inputs that examples do not have.
    """

    class State(models.TextChoices):
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        FINISHED = "finished", "Finished"
        FAILED = "failed", "Failed"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="trials")
    judge = models.ForeignKey(Judge, null=True, on_delete=models.CASCADE, related_name="trials")
    spec = models.JSONField(null=True)
    endpoint = models.ForeignKey("inference.Endpoint", null=True, on_delete=models.PROTECT, related_name="+")
    before = models.ForeignKey(JudgeVersion, null=True, on_delete=models.CASCADE, related_name="+")
    after = models.ForeignKey(JudgeVersion, null=True, on_delete=models.CASCADE, related_name="+")
    examples = ArrayField(models.BigIntegerField())
    extra = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    problem = models.TextField(blank=True)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(null=True)  # calls; unknown before they are made
    results = models.JSONField(default=dict)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(auto_now_add=True)  # the worker's last sign of life
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["judge", "-id"], name="trials_newest_first")]

    told_at = datetime.min.replace(tzinfo=UTC)  # the worker keeps here when it last told open pages

    def __str__(self) -> str:
        return f"trial {self.pk}"
