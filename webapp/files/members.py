"""A folder of an archive whose files hold one row each, read as the rows of one file: a log may have a hundred thousand of them."""

from collections.abc import Callable, Iterable, Iterator
from typing import IO

from . import budgets
from .records import RowProblem
from .source import UNPACKING_ERRORS, unpacking

JOURNAL = "_journal/start.json"  # in each log of inspect
PIECE = 1 << 20  # bytes of a file that are read at once
FOLDERS = ("samples", "_journal/summaries")  # of such a log


def together(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Folder -> its files, if the archive is a log of inspect."""
    found: dict[str, list[str]] = {}
    known = set(names)
    for name in sorted(known) if JOURNAL in known else ():
        folder = name.rpartition("/")[0]
        if folder in FOLDERS and name.endswith(".json"):
            found.setdefault(folder, []).append(name)
    return {folder: tuple(files) for folder, files in found.items()}


class Members:
    """The contents of the files in their order. `name` is that of the file that was read last, and `tell` counts the bytes that came
    out."""

    def __init__(self, opened: Callable[[str], IO[bytes]], names: tuple[str, ...]) -> None:
        self._opened, self._names = opened, names
        self._bytes = 0
        self.name = ""

    def tell(self) -> int:
        return self._bytes

    def __iter__(self) -> Iterator[bytes | RowProblem]:
        """One that is too long or damaged is a problem of its own; the others are read."""
        for number, name in enumerate(self._names, 1):
            self.name = name
            try:
                with self._opened(name) as file:
                    data = _whole(file)
            except (*UNPACKING_ERRORS, NotImplementedError, OSError) as error:
                if isinstance(error, OSError) and not unpacking(error):
                    raise
                yield RowProblem(number, "", f"the compressed file is damaged: {error}")
                continue
            self._bytes += len(data)
            long = len(data) > budgets.LINE
            yield RowProblem(number, "", f"is longer than {budgets.LINE // 10**6} MB") if long else data


def _whole(file: IO[bytes]) -> bytes:
    """The content, or the start of one that is too long. It is read up to an empty piece, because the checksum is compared there."""
    pieces, left = list[bytes](), budgets.LINE + 1
    while left and (piece := file.read(min(left, PIECE))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def in_its_file(problem: RowProblem, members: Members) -> RowProblem:
    """The problem, at the file whose row was read last."""
    return RowProblem(1, problem.field, problem.reason, members.name)
