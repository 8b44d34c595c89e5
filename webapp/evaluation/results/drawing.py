"""Charts drawn on the server: lines and points with their intervals, as SVG with colours from the page's classes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 30, 40
SERIES = 8
TICKS = 5
SLACK = 1e-9  # rounding must not push a value that lies on a mark beyond it
Link = Callable[[Sequence[str]], str]  # from the tags of a point to the page of its cases
MOST_MARKS = 8  # values of x that each get a tick of their own


@dataclass(frozen=True)
class Axis:
    """Maps values from `low`..`high` to pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    marks: tuple[float, ...] = ()  # the places of ticks; if it is empty, they are spaced evenly

    def at(self, value: float) -> float:
        span = (self.high - self.low) or 1.0
        return self.start + (value - self.low) / span * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        return list(self.marks) or [self.low + (self.high - self.low) * i / (TICKS - 1) for i in range(TICKS)]


def curve(block: Mapping[str, Any], link: Link | None = None) -> SafeString:
    """`block` fits `report.Curve`. A point without a value leaves a gap in its line; with `link` it leads to its cases."""
    points = [point for each in block["series"] for point in each["points"] if point.get("value") is not None]
    if not points:
        return format_html('<p class="soft small">{}</p>', "There is no value to draw.")
    places = sorted({point["x"] for point in points})
    if block.get("diagonal"):  # both axes are shares: without the whole square, the diagonal means nothing
        x, y = Axis(0, 1, LEFT, WIDTH - RIGHT), Axis(0, 1, HEIGHT - BOTTOM, TOP)
        return _drawn(block, x, y, link)
    x = _axis(places, LEFT, WIDTH - RIGHT, pad=False)
    if len(places) <= MOST_MARKS and all(float(place).is_integer() for place in places):
        x = replace(x, marks=tuple(places))
    return _drawn(block, x, _axis(_with_intervals(points), HEIGHT - BOTTOM, TOP), link)


def _drawn(block: Mapping[str, Any], x: Axis, y: Axis, link: Link | None) -> SafeString:
    lines = [_line(i % SERIES + 1, each, x, y, link) for i, each in enumerate(block["series"])]
    ideal = _diagonal(x, y) if block.get("diagonal") else ""
    body = format_html("{}{}{}", _frame(block, x, y), ideal, format_html_join("", "{}", ((line,) for line in lines)))
    return _svg(f"{block['title']}: {block['y']} over {block['x']}", body, link)


def scatter(block: Mapping[str, Any], link: Link | None = None) -> SafeString:
    """`block` fits `report.Scatter`. A point that lacks one of its values is not drawn; the table names it."""
    points = [p for p in block["points"] if p["x"].get("value") is not None and p["y"].get("value") is not None]
    if not points:
        return format_html('<p class="soft small">{}</p>', "No point has both values.")
    x = _axis(_with_intervals([point["x"] for point in points]), LEFT, WIDTH - RIGHT)
    y = _axis(_with_intervals([point["y"] for point in points]), HEIGHT - BOTTOM, TOP)
    marks = []
    for i, point in enumerate(points):
        cross = _linked(_cross(point["x"], point["y"], x, y), point["name"], point["y"], link)
        marks.append((i % SERIES + 1, point["name"], cross))
    drawn = format_html_join("", '<g class="mark" data-series="{}"><title>{}</title>{}</g>', marks)
    return _svg(f"{block['title']}: {block['y']} against {block['x']}", _frame(block, x, y) + drawn, link)


def _with_intervals(points: list[Any]) -> list[float]:
    return [point[name] for point in points for name in ("value", "low", "high") if point.get(name) is not None]


def _axis(values: list[float], start: float, end: float, *, pad: bool = True) -> Axis:
    """With `pad`, the axis goes from one round number to another. Without it, it goes from the first value to the last; a single value is
    in the middle."""
    low, high = min(values), max(values)
    if not pad:
        return Axis(low, high, start, end) if high > low else Axis(low - 1, high + 1, start, end, (low,))
    room = 0.0 if high > low else abs(high) * 0.1 or 0.1
    step = _round_step((high - low + 2 * room) / (TICKS - 1))
    first, last = floor((low - room) / step + SLACK), ceil((high + room) / step - SLACK)
    marks = tuple(round(step * i, 10) for i in range(first, last + 1))
    return Axis(marks[0], marks[-1], start, end, marks)


def _round_step(least: float) -> float:
    """The next of 1, 2, 2.5 and 5 times a power of ten."""
    power = 10.0 ** floor(log10(least))
    return next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= least * (1 - SLACK))


def _linked(mark: SafeString, name: str, point: Mapping[str, Any], link: Link | None) -> SafeString:
    if link is None:
        return mark
    words = f"{name}: {point['value']:.3g}, its cases"
    return format_html('<a href="{}" aria-label="{}">{}</a>', link(point.get("tags") or ()), words, mark)


def _line(colour: int, series: Mapping[str, Any], x: Axis, y: Axis, link: Link | None) -> SafeString:
    runs: list[list[str]] = [[]]
    marks = []
    for point in series["points"]:
        if point.get("value") is None:
            runs.append([])
            continue
        px, py = x.at(point["x"]), y.at(point["value"])
        runs[-1].append(f"{px:.1f},{py:.1f}")
        dot = format_html('{}<circle cx="{}" cy="{}" r="3"/>', _bar(px, y, point), f"{px:.1f}", f"{py:.1f}")
        marks.append((_linked(dot, series["name"], point, link),))
    paths = format_html_join("", '<polyline points="{}"/>', ((" ".join(run),) for run in runs if len(run) > 1))
    dots = format_html_join("", "{}", marks)
    return format_html(
        '<g class="line" data-series="{}"><title>{}</title>{}{}</g>', colour, series["name"], paths, dots
    )


def _bar(px: float, y: Axis, point: Mapping[str, Any]) -> SafeString | str:
    if point.get("low") is None or point.get("high") is None:
        return ""
    top, bottom = y.at(point["high"]), y.at(point["low"])
    return format_html(
        '<line class="interval" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>', f"{px:.1f}", f"{top:.1f}", f"{bottom:.1f}"
    )


def _cross(across: Mapping[str, Any], up: Mapping[str, Any], x: Axis, y: Axis) -> SafeString:
    px, py = x.at(across["value"]), y.at(up["value"])
    level: SafeString | str = ""
    if across.get("low") is not None and across.get("high") is not None:
        left, right = x.at(across["low"]), x.at(across["high"])
        level = format_html(
            '<line class="interval" y1="{0}" y2="{0}" x1="{1}" x2="{2}"/>', f"{py:.1f}", f"{left:.1f}", f"{right:.1f}"
        )
    return format_html('{}{}<circle cx="{}" cy="{}" r="4.5"/>', _bar(px, y, up), level, f"{px:.1f}", f"{py:.1f}")


def _diagonal(x: Axis, y: Axis) -> SafeString:
    ends = [f"{value:.1f}" for value in (x.at(0), y.at(0), x.at(1), y.at(1))]
    return format_html('<line class="ideal" x1="{}" y1="{}" x2="{}" y2="{}"/>', *ends)


def _frame(block: Mapping[str, Any], x: Axis, y: Axis) -> SafeString:
    across = format_html_join(
        "",
        '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>',
        ((f"{x.at(v):.1f}", HEIGHT - BOTTOM + 16, f"{v:.3g}") for v in x.ticks),
    )
    up = format_html_join(
        "",
        '<line class="rule" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/><text class="tick" x="{3}" y="{2}" dy="4" text-anchor="end">{4}</text>',
        ((LEFT, WIDTH - RIGHT, f"{y.at(v):.1f}", LEFT - 6, f"{v:.3g}") for v in y.ticks),
    )
    names = format_html(
        '<text class="axis" x="{}" y="{}" text-anchor="middle">{}</text><text class="axis" x="{}" y="{}">{}</text>',
        (LEFT + WIDTH - RIGHT) // 2,
        HEIGHT - 6,
        block["x"],
        4,
        12,
        block["y"],
    )
    return format_html("{}{}{}", up, across, names)


def _svg(label: str, body: SafeString, link: Link | None) -> SafeString:
    role = "group" if link else "img"  # the parts of an image cannot be reached one by one
    return format_html(
        '<svg class="chart-svg" viewBox="0 0 {} {}" role="{}" aria-label="{}">{}</svg>',
        WIDTH,
        HEIGHT,
        role,
        label,
        body,
    )
