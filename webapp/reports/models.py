"""Reports, which are pages of text with charts, tables and rollouts of runs, and each version that was saved."""

from django.db import models

MAX_TITLE = 120


class ReportPage(models.Model):
    """`newest` is the number of its newest version, which is the one that people read."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="report_pages")
    title = models.CharField(max_length=MAX_TITLE)
    newest = models.PositiveIntegerField(default=1)
    experiment = models.ForeignKey(
        "experiments.Experiment", null=True, blank=True, on_delete=models.SET_NULL, related_name="report_pages"
    )
    project = models.ForeignKey(
        "annotation.Project", null=True, blank=True, on_delete=models.SET_NULL, related_name="report_pages"
    )
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    written_at = models.DateTimeField()
    archived_at = models.DateTimeField(null=True, blank=True)
    sources_at = models.DateTimeField(
        null=True, blank=True, editable=False
    )  # when `sources` was last brought up to date

    class Meta:
        indexes = [models.Index(fields=["workspace", "-id"], name="report_page_listing")]

    def __str__(self) -> str:
        return self.title

    @property
    def name(self) -> str:
        return self.title


class ReportPageVersion(models.Model):
    """A saved version. It never changes; restoring one saves it again as the newest."""

    report = models.ForeignKey(ReportPage, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=MAX_TITLE)
    body = models.TextField(blank=True)
    restored_from = models.PositiveIntegerField(null=True, blank=True)
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["report", "number"], name="one_report_page_version_per_number")]

    def __str__(self) -> str:
        return f"{self.title} v{self.number}"


class ReportSource(models.Model):
    """A row that the newest version of a report shows, or to which its text links (`origins`): a run, one of its rollouts, or an evaluation.

    The database does not check that they exist: a run that is deleted in the same moment must not refuse a save.
    """

    report = models.ForeignKey(ReportPage, on_delete=models.CASCADE, related_name="sources")
    run = models.ForeignKey(
        "experiments.Run", null=True, on_delete=models.CASCADE, related_name="shown_in", db_constraint=False
    )
    evaluation = models.ForeignKey(
        "evaluation.Evaluation", null=True, on_delete=models.CASCADE, related_name="shown_in", db_constraint=False
    )
    rollout = models.ForeignKey(
        "experiments.Rollout", null=True, on_delete=models.CASCADE, related_name="shown_in", db_constraint=False
    )

    def __str__(self) -> str:
        return f"report {self.report_id}: run {self.run_id}, evaluation {self.evaluation_id}, rollout {self.rollout_id}"


class SharedReport(models.Model):
    """The version of a report that a share link shows. The link's own runs are those that the version showed when it was shared."""

    link = models.OneToOneField("experiments.ShareLink", on_delete=models.CASCADE, related_name="report")
    version = models.ForeignKey(ReportPageVersion, on_delete=models.CASCADE, related_name="shared")

    def __str__(self) -> str:
        return str(self.version)
