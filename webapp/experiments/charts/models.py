"""Charts that people have made for the page of a run, and the charts that each person has pinned."""

from django.db import models

MAX_TITLE = 80


class CustomChart(models.Model):
    """Expressions over metrics, drawn for every run of a recipe in the workspace. `place` is its order among them."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="custom_charts")
    recipe = models.CharField(max_length=40)
    title = models.CharField(max_length=MAX_TITLE)
    expressions = models.JSONField(default=list)
    lowest = models.FloatField(null=True, blank=True)  # the ends of the vertical axis; null: automatic
    highest = models.FloatField(null=True, blank=True)
    place = models.PositiveIntegerField()
    created_by = models.ForeignKey("accounts.User", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    removed_at = models.DateTimeField(null=True, blank=True)  # it can be brought back for a day

    class Meta:
        indexes = [models.Index(fields=["workspace", "recipe", "place"], name="custom_chart_listing")]

    def __str__(self) -> str:
        return self.title


class PinnedCharts(models.Model):
    """The charts that a person sees first on the pages of a recipe's runs, in this order, by their ids on the page. Nobody else sees them."""

    workspace = models.ForeignKey("accounts.Workspace", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey("accounts.User", on_delete=models.CASCADE, related_name="+")
    recipe = models.CharField(max_length=40)
    charts = models.JSONField(default=list)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user", "recipe"], name="one_row_of_pins_per_person"),
        ]

    def __str__(self) -> str:
        return f"{len(self.charts)} of {self.recipe}"
