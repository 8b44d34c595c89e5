"""What other programs say of the runs that they log here, in addition to the rows of `experiments`."""

from django.db import models

from webapp.experiments.models import Experiment, Run

HIDDEN = "mlflow.log-model.history"
"""A tag that MLflow's client writes for itself; it holds a whole document."""


class LoggedRun(models.Model):
    """A run that another program trains. `key` is its name towards that program, `tags` what it says of the run, and
    `deleted_at` is set while it has deleted the run and may still restore it."""

    class Door(models.TextChoices):
        MLFLOW = "mlflow", "MLflow"

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="logged")
    key = models.CharField(max_length=32, unique=True)
    door = models.CharField(max_length=12, choices=Door.choices)
    tags = models.JSONField(default=dict)
    deleted_at = models.DateTimeField(null=True, blank=True)
    lost_at = models.DateTimeField(null=True, blank=True)  # since when it counts as failed for its program's silence

    def __str__(self) -> str:
        return str(self.run)

    @property
    def door_name(self) -> str:
        return self.Door(self.door).label

    @property
    def shown_tags(self) -> list[tuple[str, str]]:
        return sorted((key, value) for key, value in self.tags.items() if key != HIDDEN)


class ExperimentTags(models.Model):
    """The tags that programs give an experiment."""

    experiment = models.OneToOneField(Experiment, on_delete=models.CASCADE, related_name="logged")
    tags = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"tags of {self.experiment}"
