"""The definition of a recorded verdict, and the declarations that a format must have."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from webapp.datasets.formats.base_importer import Beside
from webapp.files.records import BadRow, Row, RowProblem

__all__ = ["BadRow", "Beside", "VerdictFormat", "Leaf", "RecordedPair", "Record", "Row", "RowProblem", "GradedTree"]


@dataclass(frozen=True)
class RecordedPair:
    """A judge's verdict on a pair. The sides are -1 (A is better), 0 (tie), 1 (B is better) and None (missing).

    `swapped` is the verdict on the responses in swapped order, before un-swapping; it means nothing if the judge was asked in
    the given order only. A verdict that cannot be read is None, with its text in `raw_given` or `raw_swapped`. `label` is the
    truth or the majority of people, None if there is neither. `humans` holds what each person said. `collection` separates
    sets of pairs whose numbers must not be mixed.
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
    """A criterion at the end of a branch. `share` is its share of the root's score. `met` is None without a valid grade."""

    id: str
    text: str
    category: str
    share: float
    met: bool | None
    note: str


@dataclass(frozen=True)
class GradedTree:
    """A rubric tree with the grades of one judge or person. `root` is None if a leaf has no grade.

    Of the `inner` nodes, `stored` have a score in the file, and for `matching` of these the roll-up gives the same score.
    """

    judge: str
    tree: str
    leaves: tuple[Leaf, ...]
    root: float | None
    inner: int
    stored: int
    matching: int


Record = RecordedPair | GradedTree


@dataclass(frozen=True)
class VerdictFormat:
    """`knows` says from 0 to 1 how surely a row has this format. `bind` makes the reader of one file's rows.

    The reader yields one row's records; it raises BadRow for a row that cannot be used.
    """

    name: str
    label: str
    help: str
    knows: Callable[[Row], float]
    bind: Callable[[Beside], Callable[[Row], Iterator[Record]]]
