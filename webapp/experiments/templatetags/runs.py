"""What the run pages draw on the server: small curves, durations, numbers."""

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from trainer.config.recipe import Metric
from webapp.core.templatetags.ui import duration as in_words

register = template.Library()
WIDTH, HEIGHT = 96, 24
SERIES = 8


@register.simple_tag
def sparkline(values: list[float], label: str) -> SafeString | str:
    """An SVG line through `values` with a dot at its end; nothing where there are fewer than two."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = (WIDTH - 6) / (len(values) - 1)
    points = [(3 + i * step, HEIGHT - 3 - (v - low) / span * (HEIGHT - 6)) for i, v in enumerate(values)]
    summary = f"{label}: first {values[0]:.3g}, last {values[-1]:.3g}, lowest {low:.3g}, highest {high:.3g}"
    return format_html(
        '<svg class="spark" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">'
        '<polyline points="{}"/><circle cx="{}" cy="{}" r="2"/></svg>',
        WIDTH,
        HEIGHT,
        WIDTH,
        HEIGHT,
        summary,
        " ".join(f"{x:.1f},{y:.1f}" for x, y in points),
        f"{points[-1][0]:.1f}",
        f"{points[-1][1]:.1f}",
    )


@register.filter
def score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


@register.filter
def measured(value: float | None, metric: Metric) -> str:
    """A value as its metric is read: per cent, three decimals, or thousands."""
    if value is None:
        return "–"
    if metric.share:
        return f"{value:.1%}" if abs(value) < 0.1 else f"{value:.0%}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


@register.filter
def gained(gain: float, metric: Metric) -> str:
    """A difference with its sign, in the unit of `measured`."""
    sign = "+" if gain >= 0 else "−"
    return f"{sign}{abs(gain) * 100:.1f} points" if metric.share else f"{sign}{abs(gain):.3f}"


@register.filter
def series(run_id: int) -> int:
    """The colour of a run, 1 to 8: the same wherever the run is drawn."""
    return (run_id - 1) % SERIES + 1


@register.filter
def took(start: datetime | None, end: datetime | None) -> str:
    """`4:12 min` from `start` to `end`, or to now."""
    return in_words(((end or timezone.now()) - start).total_seconds()) if start else "–"


@register.filter
def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} kB"
