"""Points of metrics in the database, and the levels to which they are condensed.

The unique index of each table begins with the run, so the run has no index of its own: every row would be written to it as well.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models


class MetricPoint(models.Model):
    """Value of one metric at one step. A resumed run repeats steps; the repeat replaces the point.

    Numbers that come in the order of their steps, as nearly all do, are packed (`MetricStretch`). Here are the others: histograms,
    NaN and infinity, what came late or again, and what was stored before there were stretches. A step of a metric has a row here or a
    place in a stretch, never both.
    """

    run = models.ForeignKey("experiments.Run", on_delete=models.CASCADE, related_name="points", db_index=False)
    key = models.CharField(max_length=250)
    step = models.PositiveIntegerField()
    value = models.FloatField(null=True)  # null if only a histogram was sent, or if it is not a finite number
    # "NaN", "Infinity" or "-Infinity" of a logged run; "" of all others
    not_finite = models.CharField(max_length=9, blank=True, default="", db_default="")
    histogram = models.JSONField(null=True)  # {"edges": [...], "counts": [...]}
    time = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "key", "step"], name="one_point_per_step")]

    def __str__(self) -> str:
        return f"{self.key}@{self.step}"


class MetricStretch(models.Model):
    """Up to `writing.MOST` finite values of one metric, by step, as one row. Stretches of a metric do not overlap."""

    run = models.ForeignKey("experiments.Run", on_delete=models.CASCADE, related_name="stretches", db_index=False)
    key = models.CharField(max_length=250)
    first_step = models.PositiveIntegerField()
    last_step = models.PositiveIntegerField()
    steps = ArrayField(models.IntegerField())
    numbers = ArrayField(models.FloatField())
    times = ArrayField(models.DateTimeField())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "key", "first_step"], name="one_stretch_from_a_step")]

    def __str__(self) -> str:
        return f"{self.key}@{self.first_step}-{self.last_step}"


class MetricProgress(models.Model):
    """For how many values the metric of the rule of a run's early stop has not improved (`patience`), up to `step`. Made from points alone, so
    it may be deleted at any time."""

    run = models.OneToOneField(
        "experiments.Run", on_delete=models.CASCADE, primary_key=True, related_name="metric_progress"
    )
    key = models.CharField(max_length=250)
    higher = models.BooleanField()
    min_delta = models.FloatField()
    step = models.IntegerField()
    best = models.FloatField(null=True)
    waited = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.key}: {self.waited} since {self.best}"


class StepSpans(models.Model):
    """The parts of a step's time (`trainer.contracts.SpansData`). A run keeps those of its newest steps. A resumed run repeats steps; the
    repeat replaces the row."""

    run = models.ForeignKey("experiments.Run", on_delete=models.CASCADE, related_name="step_spans", db_index=False)
    step = models.PositiveIntegerField()
    took = models.BigIntegerField()  # microseconds
    told = models.JSONField()  # {"names": [...], "spans": [[...]], "beside": [[...]]}

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "step"], name="one_row_of_spans_per_step")]

    def __str__(self) -> str:
        return f"spans of step {self.step} of run {self.run_id}"


class Point(models.Model):
    """Every stored point, packed or not: a view. It reads all points of the metrics that it is asked for."""

    pk = models.CompositePrimaryKey("run_id", "key", "step")
    run = models.ForeignKey("experiments.Run", on_delete=models.DO_NOTHING, related_name="+")
    key = models.CharField(max_length=250)
    step = models.PositiveIntegerField()
    value = models.FloatField(null=True)
    not_finite = models.CharField(max_length=9)
    histogram = models.JSONField(null=True)
    time = models.DateTimeField()

    class Meta:
        managed = False

    def __str__(self) -> str:
        return f"{self.key}@{self.step}"


class MetricLevel(models.Model):
    """A stretch of one metric's points, condensed: see `levels`. Made by workers from points alone, so that any of it may be deleted at any
    time. Rows are deleted from a step on that is written again."""

    run = models.ForeignKey("experiments.Run", on_delete=models.CASCADE, related_name="levels", db_index=False)
    key = models.CharField(max_length=250)
    level = models.PositiveSmallIntegerField()
    number = models.PositiveIntegerField()  # its place among those of its level: 0, 1, 2, ...
    last_step = models.PositiveIntegerField()
    points = models.BinaryField()
    means = models.BinaryField(null=True)  # of its units; null of rows that are older than this column

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "key", "level", "last_step"], include=["number"], name="one_level_per_stretch"
            )
        ]

    def __str__(self) -> str:
        return f"{self.key}~{self.level}.{self.number}"
