"""Finds the rows of an import whose key came before.

An index of the keys, and a look-up for each key, would take a tenth of an import's time. So the hashes of all keys stay in memory,
eight bytes each, and only a key whose hash came before is looked up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection
from numpy.typing import NDArray

Hashes = NDArray[np.int64]
READ = 20_000  # keys read at a time


@dataclass(frozen=True)
class Repeat:
    """A row with the key of an earlier row, maybe in an earlier file. `same`: it has the same content, too."""

    file: int
    line: int
    key: str
    first_file: int
    first_line: int
    same: bool


class SeenKeys:
    """The keys in `table` (key, digest, file, line), which holds the rows of an import whose keys are new. Its name comes from code, never
    from people."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._runs: list[Hashes] = []  # sorted, each less than half as long as the one before it
        with connection.chunked_cursor() as cursor:
            cursor.execute(f"SELECT key FROM {table}")  # noqa: S608
            while rows := cursor.fetchmany(READ):
                self._doubtful(_hashes([key for (key,) in rows]))

    def repeats(
        self, file: int, keys: Sequence[str], lines: Sequence[int], digests: Sequence[str]
    ) -> dict[int, Repeat]:
        """The rows, by their index, whose key is in the table or came before among these rows. The caller writes the others to the table
        next."""
        doubtful = np.flatnonzero(self._doubtful(_hashes(keys))).tolist()
        first = self._written([keys[index] for index in doubtful]) if doubtful else {}
        found = {}
        for index in doubtful:
            here = (file, lines[index], digests[index])
            known = first.setdefault(keys[index], here)
            if known != here:
                found[index] = Repeat(file, lines[index], keys[index], *known[:2], same=known[2] == digests[index])
        return found

    def _doubtful(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Whether each hash came before or comes more than once. All hashes are kept."""
        run, places, counts = np.unique(hashes, return_inverse=True, return_counts=True)
        doubtful: NDArray[np.bool_] = counts > 1
        for earlier in self._runs:
            doubtful |= earlier[np.minimum(np.searchsorted(earlier, run), len(earlier) - 1)] == run
        while self._runs and 2 * len(run) > len(self._runs[-1]):
            run = np.sort(np.concatenate((self._runs.pop(), run)), kind="stable")
        if len(run):
            self._runs.append(run)
        return doubtful[places]

    def _written(self, keys: list[str]) -> dict[str, tuple[int, int, str]]:
        """File, line and digest of the keys that are in the table."""
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE INDEX IF NOT EXISTS {self._table}_key ON {self._table} (key)")
            cursor.execute(f"SELECT key, file, line, digest FROM {self._table} WHERE key = ANY(%s)", [keys])  # noqa: S608
            return {key: (file, line, digest) for key, file, line, digest in cursor.fetchall()}


def _hashes(keys: Sequence[str]) -> Hashes:
    return np.fromiter(map(hash, keys), np.int64, len(keys))
