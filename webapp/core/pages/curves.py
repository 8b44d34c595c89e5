"""Curves between the boxes of a picture that the server draws."""

Point = tuple[float, float]
"""(x, y) in pixels."""


def curve(start: Point, end: Point, bend: float) -> str:
    """The path of an SVG that leaves `start` to the right and comes to `end` from the left. `bend`: the larger, the longer it stays level at
    both ends."""
    (x, y), (to_x, to_y) = start, end
    return f"M{x:g} {y:g}C{x + bend:g} {y:g} {to_x - bend:g} {to_y:g} {to_x:g} {to_y:g}"
