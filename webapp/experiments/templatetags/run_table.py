"""Cells of the table of runs."""

from typing import Any

from django import template
from django.utils.http import urlencode

from ..table import cell_texts, grouping, label_form, seed_groups
from ..table.language import quote_text

register = template.Library()
register.filter("cell_text", cell_texts.cell_text)
register.filter("mean_text", cell_texts.mean_text)
register.filter("interval_text", cell_texts.interval_text)
register.filter("is_number", cell_texts.is_number)


@register.filter
def group_text(row: "grouping.GroupRow") -> str:
    """The value of a group."""
    if isinstance(row.value, float):
        return f"{row.value:.6g}"
    return "without a value" if row.value is None else row.value or "empty"


@register.filter
def ids_text(row: "grouping.GroupRow | seed_groups.FoldedRow") -> str:
    """The ids of the runs of a row. The filter `join` would look for signs to escape in each of thousands of numbers."""
    return ",".join(map(str, row.ids))


@register.filter
def members(row: "seed_groups.FoldedRow") -> str:
    """The address of the runs of a row."""
    return urlencode({"q": f"is:any run:{','.join(map(str, row.ids[:100]))}"})


@register.simple_tag
def query_of(field: str, value: Any) -> str:
    """The address of the runs that have this value."""
    return urlencode({"q": f"{field}:{quote_text(str(value))}"})


@register.simple_tag(takes_context=True)
def unsaved_notes(context: template.Context, run_id: int) -> str | None:
    """The notes of this run that the person has typed and that could not be stored, once."""
    return label_form.take_unsaved(context["request"].session, run_id)
