"""Scores of the answers that people get in *Try it*."""

from django.db import models


class TriedScore(models.Model):
    """An answer that a judge or a reward model shall score, and the result. A worker carries it out.

    `criteria`: the rubric by which it is scored, as `Criterion` records; empty if none is. `result` fits `scoring.Score`.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        FINISHED = "finished"
        FAILED = "failed"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="tried_scores")
    judge_version = models.ForeignKey("judging.JudgeVersion", null=True, on_delete=models.CASCADE, related_name="+")
    reward_model = models.ForeignKey("inference.RegisteredModel", null=True, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=300)  # of the example, or made of the prompt: what stored verdicts are about
    messages = models.JSONField()
    text = models.TextField()
    criteria = models.JSONField(default=list)
    reference = models.TextField(blank=True)
    tokens = models.PositiveIntegerField()  # the judge may use for it
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    problem = models.TextField(blank=True)
    result = models.JSONField(null=True)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    seen_at = models.DateTimeField(auto_now_add=True)  # the worker's last sign of life

    class Meta:
        indexes = [
            models.Index(fields=["created_by", "-id"], name="tried_scores_newest_first"),
            models.Index(fields=["state", "seen_at"], name="tried_scores_liveness"),
        ]

    def __str__(self) -> str:
        return f"score {self.pk}"
