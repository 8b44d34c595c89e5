"""Aliases of models, and what became of aliases and stages."""

from django.db import models

MARK = "@"
STAGES = {"candidate": "Candidate", "production": "In production", "retired": "Retired"}


class ModelAlias(models.Model):
    """A name that points at one model of the workspace and can be moved to another, such as `champion`. Written `@champion`."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="model_aliases")
    name = models.CharField(max_length=60)
    model = models.ForeignKey("inference.RegisteredModel", on_delete=models.PROTECT, related_name="aliases")
    moved_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_alias_per_name")]
        ordering = ["name"]

    def __str__(self) -> str:
        return f"{MARK}{self.name}"


class ModelPromotion(models.Model):
    """One move of an alias, or one change of a stage: never changed afterwards.

    `name` is the alias; empty, it is about the stage `to`. `model_name` and `before` are names as they were at that time, for models can be
    renamed and taken off the list. `before` is the model that had the alias, or the stage that the model had; empty where there was none.
    """

    class Kind(models.TextChoices):
        MOVED = "moved", "Alias moved"
        REMOVED = "removed", "Alias removed"
        STAGE = "stage", "Stage changed"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=7, choices=Kind.choices)
    name = models.CharField(max_length=60, blank=True)
    to = models.CharField(max_length=10, blank=True)
    model = models.ForeignKey(
        "inference.RegisteredModel", null=True, on_delete=models.SET_NULL, related_name="promotions"
    )
    model_name = models.CharField(max_length=120)
    before = models.CharField(max_length=120, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["workspace", "-id"], name="promotions_newest_first")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name or self.to}"

    @property
    def stage_title(self) -> str:
        return STAGES.get(self.to, self.to)

    @property
    def before_title(self) -> str:
        return STAGES.get(self.before, self.before)
