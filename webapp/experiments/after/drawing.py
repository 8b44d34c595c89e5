"""Places the boxes and the lines of a chain in its picture: levels go from left to right, and a step is to the right of everything for
which it waits."""

from collections.abc import Sequence
from dataclasses import dataclass

from webapp.core.pages.curves import curve

from .queries import ChainNode

WIDTH, HEIGHT = 216, 60  # of a box
ACROSS, DOWN = 48, 20  # between boxes
EDGE = 8  # around all, so that no outline is cut
BEND = 24


@dataclass(frozen=True)
class ChainBox:
    node: ChainNode
    x: float
    y: float
    width: int = WIDTH
    height: int = HEIGHT


@dataclass(frozen=True)
class ChainPicture:
    """`lines`: the path of each line, with its arrow."""

    boxes: list[ChainBox]
    lines: list[str]
    width: float
    height: float


def picture(nodes: Sequence[ChainNode]) -> ChainPicture:
    """The picture of nodes that `queries.chain` has put in order."""
    levels: dict[int, list[ChainNode]] = {}
    for node in nodes:
        levels.setdefault(node.level, []).append(node)
    rows: dict[int, float] = {}
    for number in sorted(levels):
        _stand(levels[number], rows)
    lowest = min(rows.values(), default=0.0)
    boxes = {id(node): _box(node, rows[id(node)] - lowest) for node in nodes}
    lines = [_line(boxes[id(before)], boxes[id(node)]) for node in nodes for before in node.before]
    width = max((box.x + WIDTH for box in boxes.values()), default=0) + EDGE
    height = max((box.y + HEIGHT for box in boxes.values()), default=0) + EDGE
    return ChainPicture(list(boxes.values()), lines, width, height)


def _stand(level: list[ChainNode], rows: dict[int, float]) -> None:
    """Gives each node of a level a row: as near as possible to the middle of those for which it waits, one below the other."""

    def wished(node: ChainNode) -> float:
        found = [rows[id(each)] for each in node.before]
        return sum(found) / len(found) if found else 0.0

    free = -float("inf")
    for node in sorted(level, key=wished):
        rows[id(node)] = max(wished(node), free)
        free = rows[id(node)] + 1


def _box(node: ChainNode, row: float) -> ChainBox:
    return ChainBox(node, EDGE + node.level * (WIDTH + ACROSS), EDGE + row * (HEIGHT + DOWN))


def _line(start: ChainBox, end: ChainBox) -> str:
    x, y = end.x - 1, end.y + HEIGHT / 2
    line = curve((start.x + WIDTH, start.y + HEIGHT / 2), (x, y), BEND)
    return f"{line}M{x - 5:g} {y - 4:g}L{x:g} {y:g}L{x - 5:g} {y + 4:g}"
