"""The base of importers: a named way to read one kind of file as examples."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from trainer.contracts import Example
from webapp.files.members import Members, in_its_file
from webapp.files.records import FileHead, Row, RowProblem, Skip
from webapp.files.rows import rows

from .convert import Convert, Mapping, MappingOf, example

DEFAULT_HELDOUT_SHARE = 0.1


@dataclass
class Tally:
    """The number of rows of a file that were read, including skipped ones: the first `taken`, and those read while it is `passing`."""

    taken: int = 0
    rows: int = 0
    passing: bool = False


NumberedRows = Iterator[tuple[int, "Row | RowProblem"]]


class Beside(Protocol):
    """The file that is read, and the files that came with it: its folder, or its archive."""

    @property
    def name(self) -> str:
        """The name of the file that is read, such as `rubrics/rice.json`."""

    @property
    def together(self) -> bool:
        """Whether the files were given together, rather than just lying in one folder."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the files beside it in its folder, if they were given together."""

    def rows(self, name: str) -> Iterator[Row]:
        """The good rows of the file of that name; none if there is no such file. The file is in the same folder, or one above it:
        `../header.json`."""


class Alone:
    """A file of which only the name is known."""

    together = False
    names: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name

    def rows(self, name: str) -> Iterator[Row]:
        return iter(())


def unmapped(row: Row) -> Mapping:
    """The mapping of rows that need none."""
    return {}


@dataclass(frozen=True)
class Importer:
    """`knows` tells from 0 to 1 how surely a row is of this format; `convert` turns one row into the data of a `contracts.Example`.

    Formats that spread over several files, or that keep something in a file's name, give `bind` instead of `convert`: it makes the
    converter for one file. `heldout_share`: of the examples that come without a split, unless the dataset or the person who imports says
    otherwise; 1 for benchmarks, which nobody should train on by accident. `mappable` importers read their columns through a mapping;
    `mapping_of` guesses it for each row of a file from the file's first rows.
    `merge` joins rows that are about one item before they are converted. `aside`: rows that only add to those of another file; if both
    files are given, theirs is not read for examples of its own. `unsaid`: what a row says that an example cannot is named in
    `meta.unsaid`, and an import counts it.
    """

    name: str
    label: str
    help: str
    knows: Callable[[Row], float]
    convert: Convert | None = None
    bind: Callable[[Beside], Convert] | None = None
    heldout_share: float = DEFAULT_HELDOUT_SHARE
    mappable: bool = False
    mapping_of: Callable[[FileHead], MappingOf] = lambda head: unmapped
    aside: Callable[[Row], bool] = lambda row: False
    merge: Callable[["NumberedRows"], "NumberedRows"] | None = None
    unsaid: bool = False

    def sniff(self, head: FileHead) -> float:
        """The confidence in a whole file: the mean over its rows, so that a few malformed ones do not hide the format."""
        return sum(map(self.knows, head.rows)) / len(head.rows) if head.rows else 0.0

    def converter(self, beside: Beside) -> Convert:
        """The function that turns rows of one file into the data of examples. Raises OSError if a file beside it cannot be read."""
        if self.bind:
            return self.bind(beside)
        if self.convert is None:
            raise TypeError(f"importer {self.name!r} has neither convert nor bind")
        return self.convert

    def read(
        self, stream: BinaryIO | Members, name: str, mapping_of: MappingOf | None = None, beside: Beside | None = None
    ) -> Iterator[tuple[int, Example | RowProblem]]:
        """(line number, example or problem) for every row with new content; memory does not grow with the file."""
        found = self.each(stream, name, mapping_of or unmapped, beside or Alone(name), Tally())
        return ((line, given) for line, given in found if given is not None)

    def each(
        self, stream: BinaryIO | Members, name: str, mapping_of: MappingOf, beside: Beside, tally: Tally
    ) -> Iterator[tuple[int, Example | RowProblem | None]]:
        """Like `read`, with None for a row that says nothing new.

        `tally` counts the rows as they are read. Rows that are taken already are left out, and a row that is read while the tally is
        passing gives None. A converter that is bound to its file still sees all rows, because it may need what it saw.
        """
        convert = self.converter(beside)
        found = rows(stream, name)
        for tally.rows, (line, row) in enumerate(self.merge(found) if self.merge else found, 1):
            taken = tally.rows <= tally.taken
            given: Example | RowProblem | None = None
            if self.bind or not (taken or tally.passing):
                with suppress(Skip):
                    if isinstance(row, RowProblem):
                        given = row
                    else:
                        given = example(self.label, convert, line, row, mapping_of(row))
                if isinstance(given, RowProblem) and isinstance(stream, Members):
                    given = in_its_file(given, stream)
            if not taken:
                yield line, None if tally.passing else given
