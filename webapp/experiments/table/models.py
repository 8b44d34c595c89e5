"""The rows behind the table of runs: one narrow row for each value of a run, to sort and filter by, and tags, stars and saved views."""

from django.db import models
from django.db.models import Case, CharField, F, Value, When
from django.db.models.functions import Cast, Concat, LPad
from django.utils import timezone

MAX_PATH = 200
MAX_TAG = 40
MAX_TEXT = 200  # characters of a text value that filters and sorting see

SHOWN_NAME = Case(
    When(name="", then=Concat(Value("run "), LPad(Cast("number", CharField()), 9, Value(" ")))),
    default=F("name"),
    output_field=CharField(),
)
"""Sorts runs by name; a run without a name is sorted by its number. An index has this expression, so only a migration can change it."""


KIN = Case(When(family="", then=Cast("id", CharField())), default=F("family"), output_field=CharField())
"""Equal for runs of an experiment that are one folded row. A run that was made elsewhere may have no family: it is a row of its own. An
index has this expression too."""


class RunColumn(models.Model):
    """A name under which runs of a workspace have values: a path of the config, a metric, or a fact of the run itself."""

    class Source(models.TextChoices):
        CONFIG = "config", "Config"
        METRIC = "metric", "Metric"
        RUN = "run", "Run"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="run_columns")
    source = models.CharField(max_length=6, choices=Source.choices)
    path = models.CharField(max_length=MAX_PATH)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "source", "path"], name="one_run_column_per_path"),
        ]

    def __str__(self) -> str:
        return self.path


class RunValue(models.Model):
    """A run's value in a column. For a metric, `number` is the last value, at `step`, and `low` and `high` are the extremes.

    A config value that is not a number is in `text`; its first `MAX_TEXT` characters are kept.
    """

    run = models.ForeignKey("experiments.Run", on_delete=models.CASCADE, related_name="values", db_index=False)
    column = models.ForeignKey(RunColumn, on_delete=models.CASCADE, related_name="values", db_index=False)
    number = models.FloatField(null=True)
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)
    text = models.CharField(max_length=MAX_TEXT, null=True)  # noqa: DJ001 null: the value is a number
    step = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "column"], name="one_run_value_per_column")]
        # each has all columns that a filter or an order of the table reads, so neither reads the rows themselves
        indexes = [
            models.Index(fields=["column", "number", "run"], name="run_numbers"),
            models.Index(fields=["column", "text", "run"], name="run_texts", condition=models.Q(text__isnull=False)),
            models.Index(fields=["column", "low", "run"], name="run_lows", condition=models.Q(low__isnull=False)),
            models.Index(fields=["column", "high", "run"], name="run_highs", condition=models.Q(high__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.column_id}: {self.text if self.number is None else self.number}"


class FamilyMean(models.Model):
    """The means that a folded row shows of a metric, or of a fact of its runs, over its seeds: each seed counts once. They order the rows.

    A folded row is an experiment and a `kin` (`KIN`); `newest` is the newest of its runs that has a value. Archived and deleted runs are
    left out. `family_means` alone writes means. If a folded row has a `FamilyChange`, its means may be old.
    """

    column = models.ForeignKey(RunColumn, on_delete=models.CASCADE, related_name="+", db_index=False)
    experiment = models.ForeignKey(
        "experiments.Experiment", on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    kin = models.CharField(max_length=32)
    newest = models.BigIntegerField()
    number = models.FloatField()
    low = models.FloatField(null=True)
    high = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["experiment", "kin", "column"], name="one_mean_per_family_and_column")
        ]
        indexes = [
            models.Index(fields=["column", "number", "newest"], name="family_means"),
            models.Index(fields=["column", "low", "newest"], name="family_lows", condition=models.Q(low__isnull=False)),
            models.Index(
                fields=["column", "high", "newest"], name="family_highs", condition=models.Q(high__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.column_id}: {self.number}"


class FamilyChange(models.Model):
    """Says that a value, or the runs, of a folded row have changed since its means were stored.

    Triggers of the database write it in the transaction of the change, and a change adds a row even if there is one. So a worker deletes
    only changes that it could see, and no transaction waits for another.
    """

    experiment = models.ForeignKey(
        "experiments.Experiment", on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    kin = models.CharField(max_length=32)

    class Meta:
        indexes = [models.Index(fields=["experiment", "kin"], name="changed_families")]

    def __str__(self) -> str:
        return f"{self.kin} of experiment {self.experiment_id}"


class RunTag(models.Model):
    """A word that people put on a run."""

    run = models.ForeignKey("experiments.Run", on_delete=models.CASCADE, related_name="tags", db_index=False)
    name = models.CharField(max_length=MAX_TAG)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="one_tag_per_name")]
        indexes = [models.Index(fields=["name", "run"], name="runs_of_a_tag")]

    def __str__(self) -> str:
        return self.name


class RunStar(models.Model):
    """A person's star on a run, which nobody else sees."""

    run = models.ForeignKey("experiments.Run", on_delete=models.CASCADE, related_name="stars")
    user = models.ForeignKey("accounts.User", on_delete=models.CASCADE, related_name="+", db_index=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "run"], name="one_star_per_run")]

    def __str__(self) -> str:
        return f"run {self.run_id}"


class RunView(models.Model):
    """A query, an order, columns and groups of the table under a name, for everybody in the workspace."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="run_views")
    name = models.CharField(max_length=80)
    query = models.CharField(max_length=1000, blank=True)
    sort = models.CharField(max_length=MAX_PATH + 10, blank=True)
    columns = models.JSONField(default=list)
    folded = models.BooleanField(default=False)  # runs that differ only by seed are one row
    group_by = models.CharField(max_length=MAX_PATH + 10, blank=True, default="", db_default="")
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="one_run_view_per_name")]

    def __str__(self) -> str:
        return self.name


class RunViewChoice(models.Model):
    """The saved view that somebody's table opens with."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey("accounts.User", on_delete=models.CASCADE, related_name="+")
    view = models.ForeignKey(RunView, on_delete=models.CASCADE, related_name="chosen_by")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "user"], name="one_run_view_choice_per_person")]

    def __str__(self) -> str:
        return f"view {self.view_id}"


class RunChange(models.Model):
    """The change of runs by one action, kept so that it can be undone, and so that the undo of an earlier one leaves its runs. `runs` are the
    ids of the runs that it really changed."""

    class Kind(models.TextChoices):
        ARCHIVE = "archive", "Archived"
        RESTORE = "restore", "Restored"
        TAG = "tag", "Tagged"
        UNTAG = "untag", "Untagged"
        GROUP = "group", "Grouped"

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="run_changes")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    word = models.CharField(max_length=80, blank=True)  # the tag or the group
    runs = models.JSONField(default=list)
    before = models.JSONField(default=dict)  # of a change of groups: run id -> its group before
    made_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    made_at = models.DateTimeField(default=timezone.now)
    undone_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.kind} of {len(self.runs)} runs"
