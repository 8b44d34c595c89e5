"""Template tags of the reviewer's pages: coefficients as bars, tints of matrices."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from webapp.core.templatetags.ui import icon

register = template.Library()

WIDTH, HEIGHT, EDGE = 132, 16, 4
LOW = -0.25  # coefficients may be negative; below this the bar is cut
TINTS = 8


@register.simple_tag
def interval(estimate: Mapping[str, Any] | None, low: float = LOW) -> SafeString:
    """A value with its 95% interval as a bar from `low` to 1, or the reason why there is none.

    Ticks are at 0, 2/3 and 0.8, the limits of Krippendorff (2004) for tentative and firm conclusions.
    """
    if not estimate:
        return format_html('<span class="missing">–</span>')
    if "undefined" in estimate:
        return format_html('<span class="undefined">undefined: {}</span>', estimate["undefined"])
    value = estimate["value"]
    if estimate.get("low") is None:
        reason = estimate.get("interval", "no interval")
        return format_html(
            '<span class="estimate"><b class="num">{}</b> <span class="tiny muted">{}</span></span>',
            f"{value:z.2f}",
            reason,
        )
    return format_html(
        '<span class="estimate" title="{} with n = {}; 95% interval {} to {}">'
        '<span class="estimate-numbers"><b class="num">{}</b><span class="tiny muted num">{} – {}</span></span>{}</span>',
        f"{value:z.4f}",
        estimate["n"],
        f"{estimate['low']:z.4f}",
        f"{estimate['high']:z.4f}",
        f"{value:z.2f}",
        f"{estimate['low']:z.2f}",
        f"{estimate['high']:z.2f}",
        _bar(value, estimate["low"], estimate["high"], low),
    )


def _bar(value: float, left: float, right: float, low: float) -> SafeString:
    def x(number: float) -> float:
        return round(EDGE + (WIDTH - 2 * EDGE) * (min(max(number, low), 1) - low) / (1 - low), 1)

    ticks = [
        format_html('<line class="bar-tick" x1="{0}" x2="{0}" y1="3" y2="13"></line>', x(t)) for t in (0, 2 / 3, 0.8)
    ]
    return format_html(
        '<svg class="interval" viewBox="0 0 {} {}" width="{}" height="{}" aria-hidden="true">'
        '<line class="bar-track" x1="{}" x2="{}" y1="8" y2="8"></line>{}{}{}'
        '<rect class="bar-range" x="{}" y="5.5" width="{}" height="5" rx="2.5"></rect>'
        '<circle class="bar-value" cx="{}" cy="8" r="3.5"></circle></svg>',
        *(WIDTH, HEIGHT, WIDTH, HEIGHT, EDGE, WIDTH - EDGE),
        *ticks,
        x(left),
        max(1.0, round(x(right) - x(left), 1)),
        x(value),
    )


@register.filter
def tint(value: float | None) -> str:
    """0..8 for a share in [0, 1], as `data-tint` of a cell; a negative value is 0."""
    return "" if value is None else str(round(max(0.0, min(1.0, value)) * TINTS))


SOURCES = {  # of a resolution; the icon says the same without colour
    "unanimous": {"words": "Unanimous", "tone": "good", "icon": "check-check"},
    "consolidated": {"words": "Consolidated", "tone": "accent", "icon": "gavel"},
    "majority": {"words": "Majority", "tone": "info", "icon": "users"},
    "unresolved": {"words": "Unresolved", "tone": "warn", "icon": "circle-help"},
}


@register.simple_tag
def meter(agreement: float | None) -> SafeString:
    """A task's agreement as a short bar with its number."""
    if agreement is None:
        return format_html('<span class="missing">{}</span>', "one answer")
    return format_html(
        '<span class="meter"><svg viewBox="0 0 48 6" width="48" height="6" aria-hidden="true">'
        '<rect class="meter-track" width="48" height="6" rx="3"></rect>'
        '<rect class="meter-fill" width="{}" height="6" rx="3" data-tint="{}"></rect></svg>'
        '<span class="num small">{}</span></span>',
        round(48 * agreement, 1),
        tint(agreement),
        f"{agreement:.2f}",
    )


@register.simple_tag
def source(resolution: Any) -> SafeString:
    """The source of a task's resolution."""
    if resolution is None:
        return format_html('<span class="missing">{}</span>', "to decide")
    shown = SOURCES[resolution.source]
    return format_html(
        '<span class="chip" data-tone="{}">{}{}</span>', shown["tone"], icon(shown["icon"]), shown["words"]
    )
