"""Charts of a report as SVG, for a file without scripts: lines of means over seeds with a band."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from sys import float_info

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from trainer.metrics.claims.verdict import mean_over_seeds
from webapp.experiments.table.seeds import one_each

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 34
SERIES = 8
TICKS = 5
GRID = 200  # places of a time axis
Values = Sequence[float | None]


@dataclass(frozen=True)
class SvgLine:
    """Points by rising x. If it stands for several seeds, `band` has the interval wherever two of them have a value, or the limits, and
    `limits` are the lowest and the highest seed at each x: the vertical axis follows these, because few seeds have a very wide interval."""

    label: str
    points: tuple[tuple[float, float], ...]
    band: tuple[tuple[float, float, float], ...] = ()
    limits: tuple[tuple[float, float, float], ...] = ()


def line(
    label: str,
    xs: Sequence[float],
    held: Sequence[Values],
    seeds: Sequence[float | None],
    smoothing: float = 0.0,
    around: str = "interval",
) -> SvgLine:
    """The mean over the seeds of these runs at each x where one of them has a value, as the page draws it (`line` of familylines.js).
    `around` is its band: interval or range."""
    at = [(x, one_each(seeds, [values[i] for values in held])) for i, x in enumerate(xs)]
    known = [(x, [value for value in found if value is not None]) for x, found in at]
    known = [(x, found) for x, found in known if found]
    means = smooth([sum(found) / len(found) for _, found in known], smoothing)
    points = tuple(zip((x for x, _ in known), means, strict=True))
    if len(one_each(seeds, [None] * len(seeds))) < 2:
        return SvgLine(label, points)
    limits = tuple((x, min(found), max(found)) for x, found in known)
    if around == "range":
        return SvgLine(label, points, limits, limits)
    estimates = [(x, mean_over_seeds(found)) for x, found in known]
    band = tuple((x, each.low, each.high) for x, each in estimates if each.low is not None and each.high is not None)
    return SvgLine(label, points, band, limits)


def smooth(values: Sequence[float], weight: float) -> list[float]:
    """Exponential moving average with the bias of its start taken out, as the page draws it."""
    average = norm = 0.0
    found = []
    for value in values:
        average, norm = weight * average + (1 - weight) * value, weight * norm + (1 - weight)
        found.append(average / norm if weight else value)
    return found


def by_time(held: Mapping[int, tuple[Values, Values]]) -> tuple[list[float], dict[int, Values]]:
    """Values on one grid of seconds since each run's start, of `held`: run -> values and times."""
    longest = max([time for _, times in held.values() for time in times if time is not None] or [1.0]) or 1.0
    size = longest / GRID
    found: dict[int, Values] = {}
    for run, (values, times) in held.items():
        placed: list[float | None] = [None] * (GRID + 1)
        for value, time in zip(values, times, strict=True):
            if value is not None and time is not None:
                placed[floor(time / size)] = value
        found[run] = placed
    return [place * size for place in range(GRID + 1)], found


def chart(
    title: str,
    lines: Sequence[SvgLine],
    *,
    log: bool = False,
    time: bool = False,
    share: bool = False,
    ends: tuple[float | None, float | None] = (None, None),
) -> SafeString:
    """The chart; empty if the scale has a place for no point of a line. `ends`: those of the vertical axis, None if it is automatic."""
    shown = [(place % SERIES + 1, _positive(each) if log else each) for place, each in enumerate(lines)]
    points = [point for _, each in shown for point in each.points]
    if not points:
        return SafeString("")
    heights = [y for _, y in points] + [y for _, each in shown for _, *seeds in each.limits for y in seeds]
    heights = [y for y in heights if y > 0 or not log]
    across = _SvgScale(min(x for x, _ in points), max(x for x, _ in points), LEFT, WIDTH - RIGHT, whole=not time)
    up = _SvgScale(*_limited(_room(min(heights), max(heights), log), ends, log), HEIGHT - BOTTOM, TOP, log)
    drawn = format_html_join("", "{}", ((_drawn(colour, each, across, up),) for colour, each in shown))
    frame = _frame(across, up, "time since the start" if time else "step", time, share)
    told = "; ".join(f"{each.label}: last {each.points[-1][1]:.3g}" for _, each in shown[:SERIES] if each.points)
    return format_html(
        '<svg class="chart-svg" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}</svg>',
        WIDTH,
        HEIGHT,
        f"{title}. {told}",
        frame,
        _within(drawn) if ends != (None, None) or any(each.band for _, each in shown) else drawn,
    )


@dataclass(frozen=True)
class _SvgScale:
    low: float
    high: float
    start: float
    end: float
    log: bool = False
    whole: bool = False  # its values are whole numbers, so its ticks are too

    def at(self, value: float) -> float:
        low, high, value = (log10(each) if self.log else each for each in (self.low, self.high, value))
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        if self.log:
            powers = [10.0**power for power in range(ceil(log10(self.low)), floor(log10(self.high)) + 1)]
            return powers[:: max(1, len(powers) // TICKS)] or [self.low, self.high]
        step = _round((self.high - self.low or 1.0) / TICKS, self.whole)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        return [round(step * i, 12) for i in range(first, last + 1)]


def _round(least: float, whole: bool) -> float:
    power = 10.0 ** floor(log10(least))
    steps = (power * each for each in (1, 2, 2.5, 5, 10))
    return next(step for step in steps if step >= least * (1 - 1e-9) and (step.is_integer() or not whole))


def _room(low: float, high: float, log: bool) -> tuple[float, float]:
    """A little air above and below; a flat line gets room around it."""
    if log:
        return (low / 1.1, high * 1.1)
    size = max(abs(low), abs(high))
    air = (high - low) * 0.08 if high - low > size * 1e-6 else size * 0.1 or 0.5
    return (0.0 if low >= 0 > low - air else low - air, high + air)


def _limited(room: tuple[float, float], ends: tuple[float | None, float | None], log: bool) -> tuple[float, float]:
    """The ends that are given in the place of the automatic ones, as the page has them (`limited` of chartrange.js)."""
    low, high = room
    first, last = (None if end is None or (log and end <= 0) else end for end in ends)
    if first is not None and last is None and high <= first:
        high = first * 10 if log else first + (abs(first) or 1.0)
    if last is not None and first is None and low >= last:
        low = last / 10 if log else last - (abs(last) or 1.0)
    return (low if first is None else first, high if last is None else last)


def _within(drawn: SafeString) -> SafeString:
    """The lines without what lies outside the axes."""
    frame = '<svg x="{0}" y="{1}" width="{2}" height="{3}" viewBox="{0} {1} {2} {3}">{4}</svg>'
    return format_html(frame, LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, drawn)


def _positive(each: SvgLine) -> SvgLine:
    """The line as a log scale has a place for it: an interval that ends at or below 0 leaves the picture below."""
    points = tuple(point for point in each.points if point[1] > 0)
    band = tuple((x, max(low, float_info.min), high) for x, low, high in each.band if high > 0)
    return SvgLine(each.label, points, band, each.limits)


def _drawn(colour: int, each: SvgLine, across: _SvgScale, up: _SvgScale) -> SafeString:
    path = " ".join(f"{across.at(x):.1f},{up.at(y):.1f}" for x, y in each.points)
    lows = [f"{across.at(x):.1f},{up.at(low):.1f}" for x, low, _ in each.band]
    highs = [f"{across.at(x):.1f},{up.at(high):.1f}" for x, _, high in each.band]
    band = format_html('<polygon points="{}"/>', " ".join([*highs, *reversed(lows)])) if each.band else ""
    dot = format_html('<circle cx="{}" cy="{}" r="3"/>', *path.split(",")) if len(each.points) == 1 else ""
    shape = format_html('<polyline points="{}"/>', path)
    return format_html('<g data-series="{}"><title>{}</title>{}{}{}</g>', colour, each.label, band, shape, dot)


def _frame(across: _SvgScale, up: _SvgScale, words: str, time: bool, share: bool) -> SafeString:
    below = HEIGHT - BOTTOM
    numbers = format_html_join(
        "",
        '<text x="{}" y="{}" text-anchor="middle">{}</text>',
        ((f"{across.at(x):.1f}", below + 16, _seconds(x) if time else f"{x:,.10g}") for x in across.ticks),
    )
    rules = format_html_join(
        "",
        '<line class="rule" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/><text x="{3}" y="{2}" dy="4" text-anchor="end">{4}</text>',
        (
            (LEFT, WIDTH - RIGHT, f"{up.at(y):.1f}", LEFT - 6, f"{y:.3g}" if not share else f"{100 * y:.3g}%")
            for y in up.ticks
        ),
    )
    name = format_html('<text x="{}" y="{}" text-anchor="end">{}</text>', WIDTH - RIGHT, HEIGHT - 4, words)
    return format_html("{}{}{}", rules, numbers, name)


def _seconds(value: float) -> str:
    if value >= 5400:
        return f"{value / 3600:.3g} h"
    return f"{value / 60:.3g} m" if value >= 90 else f"{value:.3g} s"
