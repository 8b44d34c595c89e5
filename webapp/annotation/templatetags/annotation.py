"""What the pages of projects draw on the server: a picture of each kind, bars over time."""

from typing import Any

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()
BAR, GAP, HEIGHT = 16, 4, 96


@register.simple_tag
def picture(kind: str) -> SafeString:
    """A small drawing of what the page of this kind of task looks like."""
    return format_html(
        '<svg class="kind-picture" viewBox="0 0 64 44" aria-hidden="true"><use href="{}#{}"></use></svg>',
        static("img/kinds.svg"),
        kind,
    )


@register.simple_tag
def bars(points: list[dict[str, Any]], unit: str) -> SafeString:
    """`[{"at", "count"}]` as bars over time; each tells its number when it is pointed at, the whole to a reader."""
    most = max((point["count"] for point in points), default=0)
    width = max(len(points), 1) * (BAR + GAP)
    hourly = len(points) > 1 and (points[1]["at"] - points[0]["at"]).total_seconds() < 86_400
    total = sum(point["count"] for point in points)
    label = f"{total} {unit} over {len(points)} {'hours' if hourly else 'days'}, at most {most} in one"
    drawn = format_html_join("", "{}", ((_bar(i, point, most, hourly, unit),) for i, point in enumerate(points)))
    return format_html(
        '<svg class="bars" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>',
        width,
        HEIGHT,
        label,
        drawn,
    )


def _bar(index: int, point: dict[str, Any], most: int, hourly: bool, unit: str) -> SafeString:
    height = max(HEIGHT * point["count"] / most, 2) if point["count"] else 0
    when = timezone.localtime(point["at"]).strftime("%Y-%m-%d %H:%M" if hourly else "%Y-%m-%d")
    words = format_html("<title>{}: {} {}</title>", when, point["count"], unit)
    hit = format_html('<rect class="hit" x="{}" y="0" width="{}" height="{}"/>', index * (BAR + GAP), BAR + GAP, HEIGHT)
    bar = format_html(
        '<rect class="bar" x="{}" y="{}" width="{}" height="{}"/>',
        index * (BAR + GAP) + GAP / 2,
        f"{HEIGHT - height:.1f}",
        BAR,
        f"{height:.1f}",
    )
    return format_html("<g>{}{}{}</g>", words, hit, bar)


@register.filter
def at(mapping: dict[str, Any], key: str) -> Any:
    """`mapping[key]`, or None: for errors at a path and labels by name."""
    return mapping.get(key) if mapping else None


@register.filter
def under(path: str, index: int) -> bool:
    """Whether an error's path lies in the scale at `index`."""
    return path.startswith(f"settings.scales.{index}.") or path == f"settings.scales.{index}"
