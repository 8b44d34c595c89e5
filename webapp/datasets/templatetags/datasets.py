"""Draws numbers of a dataset: the bars of histograms, the fields of a difference."""

import json
from typing import Any

from django import template
from django.utils.http import urlencode

from webapp.datasets.exploration.narrowing import Bar, ColumnHistogram
from webapp.datasets.versions.differences import MISSING
from webapp.datasets.versions.lineage import Step

register = template.Library()
HEIGHT = 40.0  # the height of a histogram in its own units; bars are one unit wide
SHORTEST = 1.5  # so that a bar with one example is visible beside one with a million
LONGEST_VALUE = 2_000


@register.filter
def drawn(histogram: ColumnHistogram) -> list[dict[str, Any]]:
    """Bars with their places: `all` examples in the back, the examples that the filters leave in front."""
    most = max(max(bar.all for bar in histogram.bars), 1)
    return [
        {
            "bar": bar,
            "x": x,
            "says": _says(histogram, bar),
            "all": _height(bar.all, most),
            "left": _height(bar.count, most),
        }
        for x, bar in enumerate(histogram.bars)
    ]


def _height(count: int, most: int) -> dict[str, str]:
    height = max(HEIGHT * count / most, SHORTEST) if count else 0.0
    return {"y": f"{HEIGHT - height:.2f}", "height": f"{height:.2f}"}


def _says(histogram: ColumnHistogram, bar: Bar) -> str:
    """One bar in words, for those who do not see it."""
    of_all = "" if bar.count == bar.all else f" of {bar.all:,}"
    return f"{histogram.label} {between(bar)}: {bar.count:,}{of_all}{', chosen' if bar.chosen else ''}"


def between(bar: Bar) -> str:
    low, _, high = bar.range.partition("..")
    if low == high:
        return low
    return f"{low} to {high}" if high else f"{low} and more"


@register.filter
def ends(histogram: ColumnHistogram) -> tuple[str, str]:
    """The numbers below the left and the right end of a histogram."""
    last = histogram.bars[-1].range.partition("..")[0]
    return histogram.bars[0].range.partition("..")[0], f"{last}+"


@register.simple_tag
def narrowed(query: dict[str, str], name: str, value: str) -> str:
    """The query string with one filter set, or removed if it has this value already."""
    others = {other: text for other, text in query.items() if other != name}
    return urlencode(others if query.get(name) == value else {**others, name: value})


@register.simple_tag
def without(query: dict[str, str], name: str) -> str:
    return urlencode({other: text for other, text in query.items() if other != name})


@register.filter
def shown(value: Any) -> str:
    """A JSON value as text for a difference. A long value is cut, and the text says so."""
    if value is MISSING:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… ({len(text):,} characters)"


@register.filter
def is_missing(value: Any) -> bool:
    return value is MISSING


@register.filter
def lookup(values: dict[str, Any], name: str) -> Any:
    return values.get(name)


LANE = 16  # pixels from one lane of the line of descent to the next


@register.filter
def lane_x(lane: int) -> int:
    return LANE // 2 + LANE * lane


@register.filter
def lanes_width(steps: list[Step]) -> int:
    return LANE * (1 + max((max([step.lane, *step.past]) for step in steps), default=0))
