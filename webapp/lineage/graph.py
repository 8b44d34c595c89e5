"""The neighbourhood of a row: the rows some steps above and below it, and the relations between them.

One statement for each step and direction. A level follows at most MOST_FOLLOWED rows, so that a base model with which all runs begin has a
neighbourhood too.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .edges import OF_ANSWERS, steps
from .first_steps import Node, Way, by_indexes, from_example
from .kinds import KINDS

MOST_FOLLOWED = 200
MOST_FOUND = 2000
STEPS, DEEPEST = 3, 8
MOST_ANSWERS = 100_000
LAYERS = 12
"""Columns on one side at most. A row stands behind all that it rests on, so there may be more columns than steps."""

_LINKS = """
SELECT DISTINCT r.kind, r.id, found.kind, found.id FROM unnest(%s::text[], %s::bigint[]) AS r (kind, id)
CROSS JOIN LATERAL ({steps}) AS found (kind, id) LIMIT %s
"""
_ANSWERS = f"""
SELECT given.user_id, count(DISTINCT given.id)
FROM (SELECT s.user_id, a.id FROM {OF_ANSWERS} WHERE p.id = ANY(%s) AND s.user_id = ANY(%s) LIMIT {MOST_ANSWERS}) AS given
GROUP BY 1
"""  # noqa: S608  texts of ours


@dataclass
class Surroundings:
    """`links`: (above, below). `columns`: rows above the start have negative numbers, rows below it positive ones. Not `whole`: some rows
    were not followed."""

    start: Node
    links: set[tuple[Node, Node]] = field(default_factory=set)
    columns: dict[Node, int] = field(default_factory=dict)
    whole: bool = True

    @property
    def ids(self) -> dict[str, set[int]]:
        found: defaultdict[str, set[int]] = defaultdict(set)
        for kind, pk in self.columns:
            found[kind].add(pk)
        return dict(found)


def surroundings(workspace_id: int, start: Node, levels: int) -> Surroundings:
    """Up to `levels` steps both ways; rows of this workspace alone."""
    found = Surroundings(start, columns={start: 0})
    for way, sign in (("up", -1), ("down", 1)):
        links, whole = _followed(start, way, levels)  # type: ignore[arg-type]
        links = _within(workspace_id, start, links)
        found.whole &= whole
        found.columns |= {node: sign * layer for node, layer in _layers(start, links).items() if node != start}
        found.links |= {link if way == "down" else link[::-1] for link in links}
    found.links = {link for link in found.links if set(link) <= found.columns.keys()}
    return found


def _followed(start: Node, way: Way, levels: int) -> tuple[set[tuple[Node, Node]], bool]:
    """Links away from the start, and whether all were followed."""
    links, seen, whole = set[tuple[Node, Node]](), {start}, True
    begun = from_example(start[1], way, MOST_FOUND) if start[0] == "example" else None
    frontier: list[Node] = [start]
    for level in range(levels):
        rows = [(start, node) for node in begun.near] if begun and level == 0 else _links(frontier, way)
        whole &= len(rows) <= MOST_FOUND
        links |= set(rows[:MOST_FOUND])
        found = begun.follow if begun and level == 0 else [node for _, node in rows[:MOST_FOUND]]
        fresh = [node for node in dict.fromkeys(found) if node not in seen]
        seen |= set(fresh)
        whole &= len(fresh) <= MOST_FOLLOWED
        frontier = fresh[:MOST_FOLLOWED]
        if not frontier:
            break
    return {(_known(one), _known(other)) for one, other in links}, whole


def _links(frontier: Sequence[Node], way: Way) -> list[tuple[Node, Node]]:
    kinds, ids = [kind for kind, _ in frontier], [pk for _, pk in frontier]
    with by_indexes() as cursor:
        cursor.execute(_LINKS.format(steps=steps(way, MOST_FOUND + 1)), [kinds, ids, MOST_FOUND + 1])
        return [((kind, pk), (other, other_pk)) for kind, pk, other, other_pk in cursor.fetchall()]


def _known(node: Node) -> Node:
    return ("version", node[1]) if node[0] == "held" else node


def _within(workspace_id: int, start: Node, links: Iterable[tuple[Node, Node]]) -> set[tuple[Node, Node]]:
    """The links between rows of the workspace: one query for each kind."""
    links = list(links)
    ids: defaultdict[str, set[int]] = defaultdict(set)
    for kind, pk in (node for link in links for node in link):
        ids[kind].add(pk)
    ours = {start}
    for kind, found in ids.items():
        rows = KINDS[kind].rows(workspace_id).filter(pk__in=found).values_list("pk", flat=True)
        ours |= {(kind, pk) for pk in rows}
    return {link for link in links if ours.issuperset(link)}


def _layers(start: Node, links: Iterable[tuple[Node, Node]]) -> dict[Node, int]:
    """The length of the longest way to each row that can be reached from the start, up to LAYERS: so a link never leads back."""
    after: defaultdict[Node, list[Node]] = defaultdict(list)
    for one, other in links:
        after[one].append(other)
    layers, turned = {start: 0}, [start]
    for layer in range(1, LAYERS + 1):
        turned = list(dict.fromkeys(other for one in turned for other in after[one] if other != start))
        layers |= dict.fromkeys(turned, layer)
    return layers


def answers_given(found: Surroundings) -> dict[int, int]:
    """{person: answers that count in the publications of this neighbourhood}. It counts at most MOST_ANSWERS."""
    people, publications = (sorted(found.ids.get(kind, ())) for kind in ("person", "publication"))
    if not people or not publications:
        return {}
    with by_indexes() as cursor:
        cursor.execute(_ANSWERS, [publications, people])
        return dict(cursor.fetchall())
