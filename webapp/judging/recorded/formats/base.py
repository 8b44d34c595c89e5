"""What a recorded verdict is, and what a format of them must say."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from webapp.datasets.formats.base_importer import Beside
from webapp.files.records import BadRow, Row, RowProblem

__all__ = ["BadRow", "Beside", "Format", "Leaf", "Pairwise", "Record", "Row", "RowProblem", "Tree"]


@dataclass(frozen=True)
class Pairwise:
    """One pair judged by one judge. Sides: -1 A is better, 0 tie, 1 B is better; None where missing.

    `swapped` is the verdict as said with the responses in swapped order, before un-swapping; it means nothing where
    the judge was asked in the given order only. A verdict that was said but cannot be read is None with its text in
    `raw_given` or `raw_swapped`. `label`: the truth or the majority of people, None where there is neither. `humans`:
    what each person said. `collection` sets apart sets of pairs whose numbers are not to be mixed.
    """

    judge: str
    pair: str
    label: int | None
    given: int | None
    swapped: int | None = None
    orders: Literal["both", "given"] = "both"
    group: str = ""
    collection: str = ""
    humans: Mapping[str, int] = field(default_factory=dict)
    raw_given: str = ""
    raw_swapped: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Leaf:
    """A criterion at the end of a branch; `share`: of the root's score. `met` None: not graded, or not validly."""

    id: str
    text: str
    category: str
    share: float
    met: bool | None
    note: str


@dataclass(frozen=True)
class Tree:
    """A rubric tree graded by one judge or person. `root` None: a leaf without a grade leaves the root without one.

    `inner` nodes have a score of their own in the file for `stored` of them; the roll-up gives `matching` of those.
    """

    judge: str
    tree: str
    leaves: tuple[Leaf, ...]
    root: float | None
    inner: int
    stored: int
    matching: int


Record = Pairwise | Tree


@dataclass(frozen=True)
class Format:
    """`knows` tells from 0 to 1 how surely a row is of this format. `bind` makes the reader of one file's rows.

    The reader yields one row's records; it raises BadRow for a row that cannot be used.
    """

    name: str
    label: str
    help: str
    knows: Callable[[Row], float]
    bind: Callable[[Beside], Callable[[Row], Iterator[Record]]]
