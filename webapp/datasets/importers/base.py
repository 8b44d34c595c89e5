"""What an importer is: a named way to read one kind of file as examples."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

from trainer.contracts import Example

Row = dict[str, Any]
Mapping = dict[str, str]  # our field -> column of the file
Splits = Literal["file", "share"]


@dataclass(frozen=True)
class RowProblem:
    """Why one line is refused. `field` is a dotted path, empty when the whole line is at fault."""

    line: int
    field: str
    reason: str


class BadRow(ValueError):
    """Raised by a converter: the row cannot become an example because of `field`."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}")


@dataclass(frozen=True)
class Head:
    """The start of a file, as far as detection needs it: its name and its first rows as objects."""

    name: str
    rows: tuple[Row, ...]


RowReader = Callable[[BinaryIO, str], Iterator[tuple[int, "Row | RowProblem"]]]


@dataclass(frozen=True)
class Importer:
    """`knows` tells from 0 to 1 how surely a row is of this format; `convert` turns one row into the data of a `contracts.Example`.

    `splits`: "file" takes the file's split as it is, none included; "share" gives an example without a split one by
    the dataset's held-out share. `mappable` importers read their columns through a mapping.
    """

    name: str
    label: str
    help: str
    knows: Callable[[Row], float]
    convert: Callable[[Row, Mapping], dict[str, Any]]
    splits: Splits = "share"
    mappable: bool = False
    guess: Callable[[Head], Mapping] = lambda head: {}

    def sniff(self, head: Head) -> float:
        """The confidence in a whole file: the mean over its rows, so that a few malformed ones do not hide it."""
        return sum(map(self.knows, head.rows)) / len(head.rows) if head.rows else 0.0

    def read(
        self, stream: BinaryIO, name: str, mapping: Mapping | None = None
    ) -> Iterator[tuple[int, Example | RowProblem]]:
        """(line number, example or problem) for every row of the file; memory does not grow with the file."""
        from .convert import example  # imports the row readers, which import this module
        from .rows import rows

        for line, row in rows(stream, name):
            yield line, row if isinstance(row, RowProblem) else example(self, line, row, mapping or {})
