"""Custom charts are made, changed, moved, removed and restored; charts are pinned. The one write path of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from webapp.accounts.models import Membership, Workspace
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid

from ..models import CustomChart, PinnedCharts, Run
from . import formulas, queries
from .models import MAX_TITLE

MOST_CHARTS = 50  # of a recipe
MOST_LINES = 8  # of a chart
MOST_PINS = 50
KEPT = timedelta(days=1)  # for which a removed chart can be brought back


@dataclass(frozen=True)
class ChartContent:
    """The part of a chart that people write."""

    title: str
    expressions: Sequence[str]
    lowest: float | None = None
    highest: float | None = None

    def fields(self) -> dict[str, Any]:
        """The fields of its row. Raises Invalid at `title`, `expressions` or `highest`."""
        texts = [formula.text for formula in parsed(self.expressions)]
        if self.lowest is not None and self.highest is not None and self.lowest >= self.highest:
            raise Invalid("This range is empty.", {"highest": "The highest value must be above the lowest."})
        return {
            "title": _titled(self.title, texts),
            "expressions": texts,
            "lowest": self.lowest,
            "highest": self.highest,
        }


def parsed(expressions: Sequence[str]) -> list[formulas.ChartFormula]:
    """Raises Invalid at `expressions.N`; `extra` has the place in it."""
    if not 1 <= len(expressions) <= MOST_LINES:
        raise Invalid("A chart needs expressions.", {"expressions": f"1 to {MOST_LINES} expressions"})
    found = []
    for number, text in enumerate(expressions):
        try:
            found.append(formulas.parse(text.replace("\0", " ")))
        except formulas.FormulaProblem as problem:
            place = {"number": number, "start": problem.start, "end": problem.end}
            raise Invalid(
                "An expression is wrong.", {f"expressions.{number}": problem.message}, extra={"place": place}
            ) from problem
    return found


def _titled(text: str, expressions: Sequence[str]) -> str:
    """Without a title a chart is called by its expressions. Raises Invalid at `title`."""
    title = " ".join(text.replace("\0", "").split())
    if len(title) > MAX_TITLE:
        raise Invalid("This title is too long.", {"title": f"at most {MAX_TITLE} characters"})
    return title or ", ".join(expressions)[:MAX_TITLE]


def create(membership: Membership, run: Run, content: ChartContent) -> CustomChart:
    """Creates a chart for all runs of the recipe, behind the charts that are there. Raises Invalid like `fields`, Conflict if there are too
    many."""
    fields = content.fields()
    with transaction.atomic():
        _locked(membership)
        rows = queries.charts(membership.workspace_id, run.recipe)
        if rows.count() >= MOST_CHARTS:
            raise Conflict(f"There are {MOST_CHARTS} charts already, and no more can be made.", code="full")
        last = rows.aggregate(last=Max("place"))["last"]
        chart = CustomChart.objects.create(
            workspace_id=membership.workspace_id,
            recipe=run.recipe,
            **fields,
            place=0 if last is None else last + 1,
            created_by=membership.user,
        )
        audit.record(membership, membership.user, "custom_chart.create", chart, title=chart.title, recipe=run.recipe)
    return chart


def change(membership: Membership, chart: CustomChart, content: ChartContent) -> CustomChart:
    """Raises Invalid like `fields`."""
    fields = content.fields()
    with transaction.atomic():
        for name, value in fields.items():
            setattr(chart, name, value)
        chart.save(update_fields=list(fields))
        audit.record(membership, membership.user, "custom_chart.change", chart, title=chart.title)
    return chart


def move(membership: Membership, chart: CustomChart, place: int) -> None:
    """Moves a chart to this place among those of its recipe, counted from 0; the others make room."""
    with transaction.atomic():
        _locked(membership)
        rows = [row for row in queries.charts(chart.workspace_id, chart.recipe) if row.pk != chart.pk]
        rows.insert(place, chart)
        for number, row in enumerate(rows):
            CustomChart.objects.filter(pk=row.pk).exclude(place=number).update(place=number)
        audit.record(membership, membership.user, "custom_chart.move", chart, place=rows.index(chart))


def remove(membership: Membership, chart: CustomChart) -> None:
    """Remove a chart, which can be brought back for a day. Charts that were removed before that are deleted."""
    now = timezone.now()
    with transaction.atomic():
        CustomChart.objects.filter(workspace_id=chart.workspace_id, removed_at__lt=now - KEPT).delete()
        CustomChart.objects.filter(pk=chart.pk).update(removed_at=now)
        audit.record(membership, membership.user, "custom_chart.remove", chart, title=chart.title)


def bring_back(membership: Membership, chart: CustomChart) -> CustomChart:
    """Restores a removed chart at its old place. Raises Conflict if the recipe has too many meanwhile."""
    with transaction.atomic():
        _locked(membership)
        rows = queries.charts(chart.workspace_id, chart.recipe)
        if rows.count() >= MOST_CHARTS:
            raise Conflict(f"There are {MOST_CHARTS} charts already, and no more can be made.", code="full")
        rows.filter(place__gte=chart.place).update(place=F("place") + 1)
        chart.removed_at = None
        chart.save(update_fields=["removed_at"])
        audit.record(membership, membership.user, "custom_chart.bring_back", chart, title=chart.title)
    return chart


def _locked(membership: Membership) -> None:
    """Make one of two people who change the order at once wait."""
    Workspace.objects.select_for_update(no_key=True).only("pk").get(pk=membership.workspace_id)


def pin(membership: Membership, run: Run, chart: str, pinned: bool) -> list[str]:
    """A person's own, behind those that are pinned; pressed twice it stays as it is. Raises Conflict if there are too many."""
    with transaction.atomic():
        mine, _ = PinnedCharts.objects.select_for_update().get_or_create(
            workspace_id=membership.workspace_id, user=membership.user, recipe=run.recipe
        )
        rest = [each for each in mine.charts if each != chart]
        if pinned and chart not in mine.charts and len(rest) >= MOST_PINS:
            raise Conflict(f"{MOST_PINS} charts are pinned already. Unpin one of them first.", code="full")
        if pinned != (chart in mine.charts):
            mine.charts = [*rest, chart] if pinned else rest
            mine.save(update_fields=["charts"])
    return list(mine.charts)
