"""Finds rollouts by their words, the newest that was stored first: a search reads rollouts that are not indexed yet, then block after block.

Workers may merge blocks during a search. So each statement asks for the blocks that begin before a number, and reads them with their words.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet, Sum
from django.db.models.expressions import RawSQL
from numpy.typing import NDArray

from ..models import EpisodeTurn, Rollout, Run, WordBlock
from . import blocks, indexing, search_words
from .models import STORED

READ = 200
"""The newest rollouts that are read themselves if the index does not have them yet."""
COUNTED = 10_000
MOST_READ = 20_000_000
"""Characters that the rollouts of a page are read for: a phrase may stand at the end of an episode of a hundred megabytes."""
NONE = np.empty(0, np.uint16)
MOST_BLOCKS = 64  # of one statement; the first has one block, where a frequent word fills the page
WORDS = """
SELECT block.id, block.first, wanted.number, found.packed
FROM (
    SELECT id, first FROM experiments_wordblock WHERE run_id = %s AND first < %s ORDER BY first DESC LIMIT %s
) AS block
CROSS JOIN unnest(%s::int[]) AS wanted(number)
LEFT JOIN LATERAL (
    SELECT packed FROM experiments_blockwords AS row
    WHERE row.block_id = block.id AND row.number <= wanted.number ORDER BY row.number DESC LIMIT 1
) AS found ON true
ORDER BY block.first DESC
"""

FEW = 500  # places
PLACES = """
SELECT wanted.block, substring(block.places FROM 8 * wanted.place + 1 FOR 8)
FROM unnest(%s::bigint[], %s::int[]) AS wanted(block, place)
JOIN (  -- unpacked once for all its places
    SELECT id, places || ''::bytea AS places FROM experiments_wordblock WHERE id = ANY(%s) OFFSET 0
) AS block ON block.id = wanted.block
"""

PLACE = {name: OuterRef(name) for name in ("run", "step", "phase", "group", "index")}
APART = Exists(EpisodeTurn.objects.filter(**PLACE, number=0))


class WordSearch:
    """A search in the rollouts of a run, or in those of one of its steps or phases."""

    def __init__(
        self, run: Run, wanted: search_words.WantedWords, step: int | None = None, phase: str | None = None
    ) -> None:
        self.wanted, self._run, self._step = wanted, run, step
        self._numbers = search_words.numbers(wanted.words | search_words.placed(step, phase))
        self._indexed = indexing.indexed(run.pk)
        self._read_characters = 0

    def left_out(self) -> tuple[int, int]:
        """The number of rollouts that the search leaves out because the index does not have them yet, counted to COUNTED; and, if it
        leaves out any, how many of the run the index has."""
        rows = self._behind()
        apart = rows.annotate(apart=APART).order_by("-stored").values_list("apart", flat=True)[:READ]
        waiting: int = sum(apart) + rows.values("pk")[READ : READ + COUNTED].count()
        there = WordBlock.objects.filter(run=self._run).aggregate(size=Sum("size"))["size"] if waiting else 0
        return waiting, there or 0

    def _behind(self) -> Any:
        rows = indexing.stored_after(self._run.pk, self._indexed)
        return rows if self._step is None else rows.filter(step=self._step)

    def stored(self, numbers: list[int]) -> QuerySet[Rollout]:
        """The rollouts that have these numbers."""
        asked = RawSQL("SELECT unnest(%s::bigint[])", [numbers])
        return Rollout.objects.filter(run=self._run).annotate(stored=STORED).filter(stored__in=asked)

    def fitting(self, rows: Sequence[Rollout], most: int) -> tuple[list[Rollout], int]:
        """The rollouts that have the words, at most `most`; and how many were looked at. Not all are looked at if that many were found, or
        if the texts of this page's rollouts are too long."""
        found: list[Rollout] = []
        for place, row in enumerate(rows):
            if len(found) == most or self._read_characters > MOST_READ:
                return found, place
            if self.wanted.fits(self._counted(row)):
                found.append(row)
        return found, len(rows)

    def _counted(self, row: Rollout) -> Iterator[str]:
        for text in indexing.texts(row):
            self._read_characters += len(text)
            yield text

    def newest(self, most: int, before: int | None = None) -> list[int]:
        """The numbers of the newest that have the words, of those that were stored before the number `before`."""
        below = 1 << 62 if before is None else int(before)  # a cursor may say true
        return list(islice(self._found(below), most))

    def _found(self, below: int) -> Iterator[int]:
        if below > self._indexed + 1:
            yield from self._read(below)
            below = self._indexed + 1
        count = 1
        while found := self._blocks(below, count):
            hits = [(block, first, self._common(rows)) for block, first, rows in found]
            stored = _places({block: there for block, _, there in hits if len(there)})
            for block, first, there in hits:
                if len(there):
                    if block not in stored:
                        break  # merged meanwhile: another block has these rollouts
                    yield from (each for each in stored[block][::-1].tolist() if each < below)
                below = first
            count = min(4 * count, MOST_BLOCKS)

    def _read(self, below: int) -> Iterator[int]:
        """The rollouts with the words among the newest that are not indexed yet; those whose turns lie apart wait for a worker."""
        newest = self._behind().filter(stored__lt=below).annotate(apart=APART).order_by("-stored")
        short = [pk for pk, apart in newest.values_list("pk", "apart")[:READ] if not apart]
        rows = Rollout.objects.filter(pk__in=short).alias(stored=STORED).order_by("-stored")
        for row in indexing.light(rows):
            if search_words.stored(row.step, row.phase, search_words.texts(row.content)) >= self._numbers:
                yield row.stored

    def _blocks(self, below: int, count: int) -> list[tuple[int, int, dict[int, bytes | None]]]:
        """Blocks that begin before a number, the last first: the id of each, its first rollout, and by number the row that would have the word."""
        found: dict[int, tuple[int, int, dict[int, bytes | None]]] = {}
        with connection.cursor() as cursor:
            cursor.execute(WORDS, [self._run.pk, below, count, list(self._numbers)])
            for block, first, number, packed in cursor.fetchall():
                found.setdefault(block, (block, first, {}))[2][number] = packed
        return list(found.values())

    def _common(self, rows: dict[int, bytes | None]) -> NDArray[np.uint16]:
        """The places of the rollouts of a block that have all words. Those of seldom words are read first: mostly there are none, and the
        many places of a frequent word need not be read."""
        common = None
        for number, row in sorted(rows.items(), key=lambda item: item[1] is not None and blocks.frequent(item[1])):
            places = NONE if row is None else blocks.places(bytes(row), number)
            common = places if common is None else np.intersect1d(common, places, assume_unique=True)
            if not len(common):
                return NONE
        return NONE if common is None else common


def _places(hits: dict[int, NDArray[np.uint16]]) -> dict[int, NDArray[np.int64]]:
    """The numbers of the rollouts at these places of each block that is still there. The database cuts out a few; else it gives all of the block."""
    if sum(map(len, hits.values())) > FEW:
        whole = WordBlock.objects.filter(pk__in=hits).values_list("pk", "places")
        return {block: np.frombuffer(bytes(places), "<i8")[hits[block]] for block, places in whole}
    found: dict[int, list[bytes]] = {}
    if hits:
        blocks_of_hits = np.repeat(list(hits), list(map(len, hits.values()))).tolist()
        with connection.cursor() as cursor:
            cursor.execute(PLACES, [blocks_of_hits, np.concatenate(list(hits.values())).tolist(), list(hits)])
            for block, stored in cursor.fetchall():
                found.setdefault(block, []).append(bytes(stored))
    return {block: np.sort(np.frombuffer(b"".join(stored), "<i8")) for block, stored in found.items()}
