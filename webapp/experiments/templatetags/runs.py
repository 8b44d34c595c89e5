"""Parts of the run pages that are drawn on the server: small curves, durations, numbers."""

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from trainer.config.recipe import Metric, Recipe
from webapp.core.text.durations import duration as in_words
from webapp.experiments import recipe_metrics
from webapp.experiments.lifecycle import estimates

register = template.Library()
WIDTH, HEIGHT = 96, 24
SERIES = 8


@register.simple_tag
def sparkline(values: list[float], label: str) -> SafeString | str:
    """An SVG line through `values` with a dot at its end; nothing if there are fewer than two."""
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


PANEL, GAP = 88, 10
WAVE = (0.0, 0.04, -0.03, 0.05, -0.04, 0.02, -0.02, 0.03, 0.0)  # what makes a drawn curve look measured


@register.simple_tag
def sketch(recipe: Recipe) -> SafeString:
    """Sketches of a run's charts when it goes well: its headline and the numbers beside it, drawn by hand."""
    shown = recipe.top[:3]
    width = len(shown) * (PANEL + GAP) - GAP
    panels = [
        format_html(
            '<g class="sketch-panel" transform="translate({} 0)"><rect width="{}" height="46" rx="4"/>'
            '<polyline class="sketch-line-{}" points="{}"/></g>',
            place * (PANEL + GAP),
            PANEL,
            place + 1,
            " ".join(f"{x:.0f},{y:.1f}" for x, y in _drawn(metric)),
        )
        for place, metric in enumerate(shown)
    ]
    names = ", ".join(metric.label for metric in shown)
    return format_html(
        '<svg class="sketch" viewBox="0 0 {} 46" preserveAspectRatio="xMinYMid" role="img" aria-label="Sketch of its charts: {}">{}</svg>',
        width,
        names,
        format_html_join("", "{}", ((panel,) for panel in panels)),
    )


def _drawn(metric: Metric) -> list[tuple[float, float]]:
    """Nine points that rise, fall or stay, as is better for this metric."""
    rise = {"higher": 1, "lower": -1}.get(metric.better, 0)
    points = []
    for i, wave in enumerate(WAVE):
        t = i / (len(WAVE) - 1)
        level = 0.5 + rise * (1 - 2 * (1 - t) ** 2) * 0.32 + wave * (1.5 if metric.held_out is False else 0.4)
        points.append((6 + t * (PANEL - 12), 40 - level * 34))
    return points


@register.filter
def score(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


register.filter("measured", recipe_metrics.measured)


@register.filter
def gained(gain: float, metric: Metric) -> str:
    """A difference with its sign, in the unit of `measured`."""
    sign = "+" if gain >= 0 else "−"
    return f"{sign}{abs(gain) * 100:.1f} points" if metric.share else f"{sign}{abs(gain):.3f}"


@register.filter
def series(run_id: int) -> int:
    """The colour of a run, 1 to 8: the same wherever the run is drawn."""
    return (run_id - 1) % SERIES + 1


register.filter("about", estimates.about)


@register.filter
def took(start: datetime | None, end: datetime | None) -> str:
    """`4:12 min` from `start` to `end`, or to now."""
    return in_words(((end or timezone.now()) - start).total_seconds()) if start else "–"
