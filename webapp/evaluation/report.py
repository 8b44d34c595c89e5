"""The results of an evaluation, in one format for all recipes: the page, the HTML report and the JSON export draw it in the same way.

A report is plain JSON. A cell has a number with its n, its interval and the number of missing cases, and the tags of the cases behind it:
those with all of the tags, or every case if there are none. A number that does not exist says why.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, Literal

Cell = dict[str, Any]
# "gap": a share minus another one, in percentage points; "p": a p-value
Unit = Literal["share", "gap", "number", "points", "money", "seconds", "count", "weight", "p"]


def estimate(found: Any, *tags: str, unit: Unit = "share", note: str = "") -> Cell:
    """A cell from a `trainer.metrics` estimate, or from its JSON."""
    data = found if isinstance(found, dict) else found.json()
    return {"kind": "estimate", "unit": unit, "tags": list(tags), **data, **({"note": note} if note else {})}


def count(value: int, *tags: str, tone: str = "") -> Cell:
    return {"kind": "count", "value": value, "tags": list(tags), **({"tone": tone} if tone else {})}


def number(
    value: float | None, unit: Unit = "number", why: str = "", *, n: int | None = None, href: str = "", tone: str = ""
) -> Cell:
    """A number that is not an estimate and counts no cases: a setting, a sum, a test of `n` cases. `why` it is missing."""
    cell: Cell = {"kind": "number", "unit": unit, "value": value, **({"undefined": why} if value is None else {})}
    more = {"n": n, "href": href or None, "tone": tone or None}
    return cell | {name: given for name, given in more.items() if given is not None}


def text(words: str, *tags: str, href: str = "") -> Cell:
    return {"kind": "text", "text": words, "tags": list(tags), **({"href": href} if href else {})}


def compared(example: str) -> Cell:
    """An example by its key, with a link to the models' responses side by side."""
    return {"kind": "text", "text": example, "tags": [], "compare": example}


@dataclass
class Table:
    """`columns`: (words, help). `rows` hold one cell per column; the first names the row."""

    title: str
    columns: list[tuple[str, str]]
    rows: list[list[Cell]] = field(default_factory=list)
    note: str = ""
    kind: str = "table"


@dataclass
class Curve:
    """Lines over a common x axis. A point is {"x"} and an estimate; missing values leave gaps."""

    title: str
    x: str
    y: str
    series: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""
    diagonal: bool = False
    kind: str = "curve"


@dataclass
class Scatter:
    """One point per judge or model: {"name", "x": cell, "y": cell}; it leads to the cases of `y`."""

    title: str
    x: str
    y: str
    points: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""
    kind: str = "scatter"


@dataclass
class Entry:
    """A row of the leaderboard. `judge_version` or `model` says what was measured; `protocol` how it was asked: rows with another protocol
    are on another board. `items` is the digest of the items on which it was measured, `item_count` how many. `known` are further cells on
    the judge, which its licence shows, and its `place` among people."""

    name: str
    cell: Cell
    judge_version: int | None = None
    judge: int | None = None
    protocol: str = ""
    items: str = ""
    item_count: int | None = None
    known: dict[str, Any] = field(default_factory=dict)


def measured_on(items: Iterable[object]) -> dict[str, Any]:
    """The fields of an `Entry` about its items: items with equal names are equal, and an item that comes twice counts twice."""
    names = sorted(map(str, items))
    return {"items": sha256("\n".join(names).encode()).hexdigest()[:16], "item_count": len(names)}


@dataclass
class Report:
    """`headline`: {"label", "cell"}. `coverage` counts the examples behind the numbers, and those left out. `made`: the dataset that the
    evaluation made, {"dataset", "name", "version"}, with {"pass_rates"} where pass rates were measured on it, or {"problem"}; None if none
    was asked for."""

    headline: dict[str, Any]
    coverage: list[tuple[str, Cell]]
    blocks: list[Table | Curve | Scatter]
    entries: list[Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    made: dict[str, Any] | None = None

    def json(self, tags: dict[str, int]) -> dict[str, Any]:
        """As stored; `tags` are those of the cases with their numbers."""
        return {**asdict(self), "tags": tags}


def headline(label: str, cell: Cell) -> dict[str, Any]:
    return {"label": label, "cell": cell}


def point(x: float, found: Any, *tags: str) -> dict[str, Any]:
    """A point of a curve from an estimate, with the tags of its cases."""
    data = found if isinstance(found, dict) else found.json()
    return {
        "x": x,
        "tags": list(tags),
        **{name: data.get(name) for name in ("value", "low", "high", "n", "missing", "undefined", "interval")},
    }


def table(title: str, columns: Sequence[str | tuple[str, str]], rows: Iterable[list[Cell]], note: str = "") -> Table:
    heads = [(column, "") if isinstance(column, str) else column for column in columns]
    return Table(title, heads, list(rows), note)
