"""The graph of a neighbourhood as boxes and lines: rows of a kind in a column are one box if there are many. Places are in pixels."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.urls import reverse

from webapp.core.pages.curves import curve

from .first_steps import Node
from .graph import Surroundings, answers_given
from .kinds import KINDS, LineageKind

FEW = 3
"""Rows of a kind in a column that have boxes of their own."""
MANY = 9
"""Boxes in a column; if there would be more, two rows of a kind already stand together."""
WIDTH, HEIGHT, ACROSS, BETWEEN, EDGE = 208, 52, 56, 12, 8
ARROW = 6


@dataclass(eq=False)
class GraphBox:
    """One row, or `count` rows of a kind. `row` is None for rows that stand together, and for people without names. `url` leads to the graph
    around the row or to the list of the rows; empty: there is nothing to open."""

    kind: LineageKind
    column: int
    nodes: tuple[Node, ...]
    name: str
    note: str = ""
    row: Any = None
    url: str = ""
    x: int = 0
    y: int = 0

    @property
    def count(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True)
class GraphLine:
    """`count` relations between rows of two boxes."""

    above: GraphBox
    below: GraphBox
    count: int

    @property
    def path(self) -> str:
        """The line from the right edge of one box to the left edge of the other, as SVG writes it."""
        start = self.above.x + WIDTH, self.above.y + HEIGHT // 2
        end = self.below.x - ARROW, self.below.y + HEIGHT // 2
        return curve(start, end, max(ACROSS // 2, (end[0] - start[0]) // 2))


@dataclass(frozen=True)
class DrawnGraph:
    boxes: list[GraphBox]
    lines: list[GraphLine]
    whole: bool

    @cached_property
    def width(self) -> int:
        return max(box.x for box in self.boxes) + WIDTH + EDGE

    @cached_property
    def height(self) -> int:
        return max(box.y for box in self.boxes) + HEIGHT + EDGE

    def beside(self, box: GraphBox) -> str:
        """The names of the boxes on which a box rests."""
        return ", ".join(line.above.name for line in self.lines if line.below is box)


def draw_graph(workspace_id: int, found: Surroundings, *, named: bool) -> DrawnGraph:
    """`named`: whether the reader may know who the people are."""
    boxes = _boxes(workspace_id, found, named)
    of = {node: box for box in boxes for node in box.nodes}
    pairs = Counter((of[above], of[below]) for above, below in found.links)
    lines = [GraphLine(*pair, count) for pair, count in pairs.items() if pair[0].column < pair[1].column]
    _place(boxes, lines)
    return DrawnGraph(sorted(boxes, key=lambda box: (box.x, box.y)), lines, found.whole)


def _boxes(workspace_id: int, found: Surroundings, named: bool) -> list[GraphBox]:
    columns: defaultdict[int, defaultdict[str, list[Node]]] = defaultdict(lambda: defaultdict(list))
    for node, column in sorted(found.columns.items()):
        columns[column][node[0]].append(node)
    alone, groups = list[tuple[int, Node]](), list[tuple[int, tuple[Node, ...]]]()
    for column, kinds in columns.items():
        few = FEW if sum(len(nodes) if len(nodes) <= FEW else 1 for nodes in kinds.values()) <= MANY else 1
        for kind, nodes in kinds.items():
            if len(nodes) <= few and (named or kind != "person"):
                alone += [(column, node) for node in nodes]
            else:
                groups.append((column, tuple(nodes)))
    rows = _rows(workspace_id, [node for _, node in alone])
    given = answers_given(found)
    made = [_single(found.start, column, node, rows[node], given) for column, node in alone if node in rows]
    _numbered(made)
    return made + [_group(found.start, column, nodes, given, named) for column, nodes in groups]


def _rows(workspace_id: int, nodes: list[Node]) -> dict[Node, Any]:
    """One query for each kind."""
    ids: defaultdict[str, list[int]] = defaultdict(list)
    for kind, pk in nodes:
        ids[kind].append(pk)
    found = ((kind, row) for kind, pks in ids.items() for row in KINDS[kind].rows(workspace_id).filter(pk__in=pks))
    return {(kind, row.pk): row for kind, row in found}


def _single(start: Node, column: int, node: Node, row: Any, given: dict[int, int]) -> GraphBox:
    kind = KINDS[node[0]]
    answers = given.get(node[1], 0) if kind.name == "person" else 0
    note = f"{answers:,} answer{'s' * (answers != 1)}" if answers else kind.one
    url = kind.address(row) if node == start else reverse("lineage_graph", args=node)
    return GraphBox(kind, column, (node,), kind.label(row), note, row, url)


def _numbered(boxes: list[GraphBox]) -> None:
    """Adds the number in their addresses to the notes of rows of a kind that have the same name."""
    same = Counter((box.kind.name, box.name) for box in boxes)
    for box in boxes:
        if same[box.kind.name, box.name] > 1:
            box.note = f"{box.note} {box.nodes[0][1]}"


def _group(start: Node, column: int, nodes: tuple[Node, ...], given: dict[int, int], named: bool) -> GraphBox:
    kind, count = KINDS[nodes[0][0]], len(nodes)
    name = f"{count:,} {kind.one if count == 1 else kind.title.lower()}"
    if kind.name == "person" and (answers := sum(given.get(pk, 0) for _, pk in nodes)):
        name = f"{answers:,} answer{'s' * (answers != 1)} by {name}"
    if kind.name == "person" and not named:
        return GraphBox(kind, column, nodes, name, "without names")
    way = "up" if column < 0 else "down"
    url = f"{reverse('lineage', args=start)}?way={way}&of={kind.name}"
    return GraphBox(kind, column, nodes, name, "open the list of all", url=url)


def _place(boxes: list[GraphBox], lines: list[GraphLine]) -> None:
    """Columns from left to right. In a column, a box is near those to which it is joined in the columns between it and the start."""
    columns: defaultdict[int, list[GraphBox]] = defaultdict(list)
    for box in sorted(boxes, key=lambda box: list(KINDS).index(box.kind.name)):
        columns[box.column].append(box)
    tallest = max(map(len, columns.values())) * (HEIGHT + BETWEEN) - BETWEEN
    first = min(columns)
    for column in sorted(columns, key=abs):
        if column:
            columns[column].sort(key=lambda box: _middle(box, lines))
        height = len(columns[column]) * (HEIGHT + BETWEEN) - BETWEEN
        for place, box in enumerate(columns[column]):
            box.x = EDGE + (column - first) * (WIDTH + ACROSS)
            box.y = EDGE + (tallest - height) // 2 + place * (HEIGHT + BETWEEN)


def _middle(box: GraphBox, lines: list[GraphLine]) -> float:
    ends = ((line.above, line.below) for line in lines)
    joined = [one if other is box else other for one, other in ends if box in (one, other)]
    nearer = [each.y for each in joined if abs(each.column) < abs(box.column)]
    return sum(nearer) / len(nearer) if nearer else 0.0
