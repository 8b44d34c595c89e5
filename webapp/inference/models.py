"""The model registry: what a run may start from and what runs leave behind."""

from django.db import models


class RegisteredModel(models.Model):
    """A local directory or hub id under a name. `path` is never shown to annotators."""

    class Source(models.TextChoices):
        LOCAL = "local", "Local directory"
        HUB = "hub", "Hub id"
        RUN = "run", "Produced by a run"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="models")
    name = models.CharField(max_length=120)
    source = models.CharField(max_length=8, choices=Source.choices)
    path = models.CharField(max_length=500)
    description = models.TextField(blank=True)
    facts = models.JSONField(default=dict)  # architecture, parameters, licence: whatever is known
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_model_per_name")]

    def __str__(self) -> str:
        return self.name
