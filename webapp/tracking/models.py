"""Data that other programs send about the runs that they log here, in addition to the rows of `experiments`."""

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


class SavedModel(models.Model):
    """A model that a program has logged with a run; MLflow calls it a logged model. Its files are files of the run, below `folder`, and
    nothing here loads them. `deleted_at` is set once the program has deleted the model; its files stay as long as the run."""

    class State(models.TextChoices):
        PENDING = "pending"
        READY = "ready"
        FAILED = "failed"

    row = models.ForeignKey(LoggedRun, on_delete=models.CASCADE, related_name="saved_models")
    key = models.CharField(max_length=34, unique=True)  # m- and 32 hex digits
    name = models.CharField(max_length=250)
    kind = models.CharField(max_length=250, blank=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.PENDING)
    step = models.PositiveBigIntegerField(default=0)  # of the run, when the model was logged
    params = models.JSONField(default=dict)
    tags = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} of {self.row}"

    @property
    def folder(self) -> str:
        return f"models/{self.key}"


class SavedMetric(models.Model):
    """The newest value of a metric of a saved model, measured in the run `row`, and on the dataset of that name and digest unless both are
    empty. The run has all values of the metric."""

    saved = models.ForeignKey(SavedModel, on_delete=models.CASCADE, related_name="metrics")
    row = models.ForeignKey(LoggedRun, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=250)
    dataset = models.CharField(max_length=250, blank=True)
    digest = models.CharField(max_length=100, blank=True)
    step = models.PositiveIntegerField()
    value = models.FloatField()  # it may be NaN or infinite
    time = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["saved", "key", "row", "dataset", "digest"], name="one_value_per_model_metric"
            )
        ]

    def __str__(self) -> str:
        return f"{self.key} of {self.saved}"


class ModelFamily(models.Model):
    """A name under which programs keep one version of a model after another; MLflow calls it a registered model. `aliases`: name of an alias
    -> number of the version."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="model_families")
    name = models.CharField(max_length=250)
    description = models.TextField(blank=True)
    tags = models.JSONField(default=dict)
    aliases = models.JSONField(default=dict)
    last_number = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_family_per_name")]

    def __str__(self) -> str:
        return self.name


class FamilyVersion(models.Model):
    """A version of a family: files of the run `row` below `path`, which may be those of a saved model.

    `model` is the model of the registry that was made of the files, if a run here can load them; otherwise `why_not` says what is missing.
    """

    family = models.ForeignKey(ModelFamily, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    row = models.ForeignKey(LoggedRun, null=True, on_delete=models.SET_NULL, related_name="+")
    saved = models.ForeignKey(SavedModel, null=True, on_delete=models.SET_NULL, related_name="versions")
    path = models.CharField(max_length=500, blank=True)
    source = models.CharField(max_length=1000)
    description = models.TextField(blank=True)
    stage = models.CharField(max_length=20, default="None")
    tags = models.JSONField(default=dict)
    model = models.ForeignKey("inference.RegisteredModel", null=True, on_delete=models.SET_NULL, related_name="+")
    why_not = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["family", "number"], name="one_version_per_family_number")]

    def __str__(self) -> str:
        return f"{self.family} {self.number}"
