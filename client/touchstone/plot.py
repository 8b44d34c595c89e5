"""Draws a curve as lines of text."""

from collections.abc import Sequence

HEIGHT = 6
MARKS = "▁▂▃▄▅▆▇█"


def curve(points: Sequence[tuple[int, float]], width: int, height: int = HEIGHT) -> list[str]:
    """`height` lines of bars over `width` columns, with the greatest and the least value beside them. A column with several points shows
    their mean."""
    if not points:
        return []
    low, high = min(value for _, value in points), max(value for _, value in points)
    columns = _columns(points, width)
    levels = height * len(MARKS)
    span = (high - low) or 1.0
    bars = [None if value is None else 1 + round((value - low) / span * (levels - 1)) for value in columns]
    lines = []
    for row in reversed(range(height)):
        label = f"{high:>10.4g}" if row == height - 1 else f"{low:>10.4g}" if row == 0 else " " * 10
        lines.append(f"{label} {''.join(_mark(bar, row) for bar in bars)}")
    return lines


def _mark(bar: int | None, row: int) -> str:
    filled = 0 if bar is None else min(max(bar - row * len(MARKS), 0), len(MARKS))
    return MARKS[filled - 1] if filled else " "


def _columns(points: Sequence[tuple[int, float]], width: int) -> list[float | None]:
    first, last = points[0][0], points[-1][0]
    wide = min(width, last - first + 1)
    sums, counts = [0.0] * wide, [0] * wide
    for step, value in points:
        at = (step - first) * wide // (last - first + 1)
        sums[at] += value
        counts[at] += 1
    return [total / count if count else None for total, count in zip(sums, counts, strict=True)]
