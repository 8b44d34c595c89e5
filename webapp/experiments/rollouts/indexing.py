"""Makes the index of words, after rollouts are stored: the ingest only marks the run (`Run.words_due`).

Numbers (`models.STORED`) tell what is indexed. The ingest holds the lock of the run when it draws them, and a rollout that replaces another
takes a new one, so all rollouts of a run behind the last number of its newest block are those that are not indexed. A worker indexes some at a time, in a transaction:
a block is there with all its words or not at all. What is deleted or replaced stays in its block, and a search does not find its row.
"""

import time
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.db.models import F, Func, IntegerField, Value
from numpy.typing import NDArray

from webapp.core.database import locks

from ..models import BlockWords, Rollout, Run, WordBlock
from . import blocks, episodes, numbering, search_words
from .models import STORED

SECONDS = 4.0  # of one task, and of one transaction in it; beat starts the next one soon
LAST = (1 << 63) - 1
AT_ONCE, HITS_AT_ONCE = 1 << 12, 1 << 20  # rollouts, and about how many hits, of one transaction
LOOKED_AT = 64  # blocks that could be merged: older ones are full
COPY = "COPY experiments_blockwords (block_id, number, packed) FROM STDIN"
ROWS, BYTES = 256, 1 << 19  # rollouts in memory at a time, and their contents as the database compresses them
CHARACTERS = 1 << 21  # numbered together: each takes some 40 bytes meanwhile
FEW = 16  # as many for a reader: some have megabytes of text
SIZE = Func("content", function="pg_column_size", output_field=IntegerField())
SAID = Func(F("content"), Value(search_words.SKIPPED), arg_joiner=" - ", template="(%(expressions)s::text[])")


def index_due() -> None:
    """Indexes rollouts that wait, in runs by chance, for some seconds. Does nothing if another worker is doing it."""
    until = time.monotonic() + SECONDS
    with locks.exclusive(locks.Work.WORDS, 0) as ours:
        due = Run.objects.filter(words_due=True).order_by("?").values_list("pk", flat=True)[:1000] if ours else []
        for run_id in list(due):
            while time.monotonic() < until and index(run_id):
                pass


def index(run_id: int, start: int = 0, end: int = LAST) -> bool:
    """Indexes the oldest rollouts of the run that wait, and tells whether more may wait. Of a run that nobody searches, several processes may
    index parts, each with the numbers behind `start` up to `end`."""
    with transaction.atomic():
        stored, hits, more = _waiting(run_id, start, end)
        if len(stored):
            _write(run_id, stored, hits, start)
    if not more and end == LAST:
        _clear(run_id)
    return more


def indexed(run_id: int, end: int = LAST) -> int:
    """The last number that the index has; what is behind it waits."""
    newest = WordBlock.objects.filter(run=run_id, first__lte=end)
    return newest.order_by("-first").values_list("last", flat=True).first() or 0


def stored_after(run_id: int, number: int) -> Any:
    """The rollouts that were stored after this one."""
    return Rollout.objects.filter(run=run_id).alias(stored=STORED).filter(stored__gt=number)


def light(rows: Any) -> Iterator[Any]:
    """The rollouts with their numbers, and without their tokens; a few in memory at a time."""
    found = rows.annotate(stored=STORED, said=SAID).defer("content", "part_values")
    for row in found.iterator(chunk_size=FEW):
        row.content = row.said
        yield row


def texts(row: Rollout) -> Iterator[str]:
    """All texts of a rollout, also those of turns that lie apart."""
    return chain(search_words.texts(row.content), episodes.texts(row))


def _waiting(run_id: int, start: int, end: int) -> tuple[NDArray[np.int64], blocks.Hits, bool]:
    """The numbers and the hits of the oldest rollouts that wait, and whether there are more."""
    rows = stored_after(run_id, max(start, indexed(run_id, end))).filter(stored__lte=end)
    sizes = list(rows.annotate(stored=STORED, size=SIZE).order_by("stored").values_list("stored", "size")[:AT_ONCE])
    stored, found, count = list[int](), [blocks.NONE], 0
    until = time.monotonic() + SECONDS
    for first, last in _pieces(sizes):
        rows = _read(run_id, first, last)
        found.append(_hits_of(rows, run_id, len(stored)))
        stored += [row.stored for row in rows]
        count += len(found[-1])
        if count >= HITS_AT_ONCE or time.monotonic() >= until:  # an episode may have a hundred megabytes
            return np.array(stored, "<i8"), np.concatenate(found), True
    return np.array(stored, "<i8"), np.concatenate(found), len(sizes) == AT_ONCE


def _pieces(sizes: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The first and the last number of rollouts that fit into memory, from the number and the bytes of each."""
    start = held = 0
    for place, (number, size) in enumerate(sizes):
        held += size
        if place + 1 == len(sizes) or place + 1 - start == ROWS or held + sizes[place + 1][1] > BYTES:
            yield sizes[start][0], number
            start, held = place + 1, 0


def _read(run_id: int, first: int, last: int) -> list[Any]:
    """Rollouts without their tokens, from a number to a number."""
    rows = (
        stored_after(run_id, first - 1).filter(stored__lte=last).annotate(stored=STORED, said=SAID).order_by("stored")
    )
    return list(rows.values_list("stored", "step", "phase", "group", "index", "said", named=True))


def _hits_of(rows: list[Any], run_id: int, first: int) -> blocks.Hits:
    """The hits of rollouts that have the places from `first` on. Turns that lie apart are read one by one."""
    held, apart, placed = [], [], list[int]()
    for place, row in enumerate(rows, first):
        held.append((place, "\n".join(search_words.texts(row.said))))
        placed += [number << blocks.PLACE_BITS | place for number in _of_place(row.step, row.phase)]
        if row.said.get("turns_apart"):
            named = {"run_id": run_id, "step": row.step, "phase": row.phase, "group": row.group, "index": row.index}
            apart.append((place, Rollout(**named, content=row.said)))
    turns = ([(place, text)] for place, rollout in apart for text in episodes.texts(rollout))
    parts = chain(_by_length(held), turns)
    return blocks.distinct(np.concatenate([np.array(placed, np.int64), *map(numbering.hits, parts)]))


def _by_length(texts: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    """Texts of up to `CHARACTERS` together. A text that repeats itself is many times as long as the database has compressed it."""
    part, length = list[tuple[int, str]](), 0
    for place, text in texts:
        if part and length + len(text) > CHARACTERS:
            yield part
            part, length = [], 0
        part.append((place, text))
        length += len(text)
    yield part


@lru_cache(64)
def _of_place(step: int, phase: str) -> tuple[int, ...]:
    return tuple(search_words.numbers(search_words.placed(step, phase)))


def _write(run_id: int, stored: NDArray[np.int64], hits: blocks.Hits, start: int) -> None:
    """Writes a block, as one with those before it if it is time to merge them."""
    before = WordBlock.objects.filter(run=run_id, first__gt=start, last__lt=stored[0])
    older = list(before.order_by("-first")[:LOOKED_AT])
    count = blocks.to_merge([(len(stored), len(hits)), *((block.size, block.hits) for block in older)])
    joined = older[: count - 1][::-1]
    hits = blocks.merged([*((block.size, _hits(block)) for block in joined), (len(stored), hits)])
    stored = np.concatenate([*(np.frombuffer(block.places, "<i8") for block in joined), stored])
    gone = [block.pk for block in joined]
    BlockWords.objects.filter(block__in=gone).delete()
    WordBlock.objects.filter(pk__in=gone).delete()
    block = WordBlock.objects.create(
        run_id=run_id, first=stored[0], last=stored[-1], size=len(stored), hits=len(hits), places=stored.tobytes()
    )
    with connection.cursor() as cursor, cursor.copy(COPY) as to:
        for number, row in blocks.packed(hits):
            to.write_row((block.pk, number, row))


def _hits(block: WordBlock) -> blocks.Hits:
    return blocks.unpacked(map(bytes, block.words.order_by("number").values_list("packed", flat=True)))


def _clear(run_id: int) -> None:
    """The run is due no longer, if no rollout came meanwhile. The lock of the run keeps the ingest out for that moment."""
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).only("pk").filter(pk=run_id).first()
        if not stored_after(run_id, indexed(run_id)).exists():
            Run.objects.filter(pk=run_id).update(words_due=False)
