"""Makes the index of words, after rollouts are stored: the ingest only marks the run (`Run.words_due`).

Numbers (`models.STORED`) tell what is indexed. The ingest holds the lock of the run when it draws them, and a rollout that replaces another
takes a new one, so all rollouts of a run behind the last number of its newest block are those that are not indexed. A worker indexes some at a time, in a transaction:
a block is there with all its words or not at all. What is deleted or replaced stays in its block, and a search does not find its row.
"""

import time
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.db.models import F, Func, Value
from numpy.typing import NDArray

from webapp.core.database import locks

from ..models import BlockWords, Rollout, Run, WordBlock
from . import blocks, episodes, search_words
from .models import STORED

SECONDS = 4.0  # of one task, and of one transaction in it; beat starts the next one soon
AT_ONCE, HITS_AT_ONCE = 1 << 12, 1 << 20  # rollouts, and about how many hits, of one transaction
LOOKED_AT = 64  # blocks that could be merged: older ones are full
COPY = "COPY experiments_blockwords (block_id, number, packed) FROM STDIN"
ROWS = 16  # rollouts in memory at a time: some have megabytes of text


def index_due() -> None:
    """Indexes rollouts that wait, in runs by chance, for some seconds. Does nothing if another worker is doing it."""
    until = time.monotonic() + SECONDS
    with locks.alone(locks.Work.WORDS, 0) as ours:
        due = Run.objects.filter(words_due=True).order_by("?").values_list("pk", flat=True)[:1000] if ours else []
        for run_id in list(due):
            while time.monotonic() < until and index(run_id):
                pass


def index(run_id: int) -> bool:
    """Indexes the oldest rollouts of the run that wait, and tells whether more may wait."""
    with transaction.atomic():
        stored, hits, more = _waiting(run_id)
        if len(stored):
            _write(run_id, stored, hits)
    if not more:
        _clear(run_id)
    return more


def indexed(run_id: int) -> int:
    """The last number that the index has; what is behind it waits."""
    newest = WordBlock.objects.filter(run=run_id).order_by("-first").values_list("last", flat=True).first()
    return newest or 0


def stored_after(run_id: int, number: int) -> Any:
    """The rollouts that were stored after this one."""
    return Rollout.objects.filter(run=run_id).alias(stored=STORED).filter(stored__gt=number)


def light(rows: Any) -> Iterator[Any]:
    """The rollouts with their numbers, and without their tokens; a few in memory at a time."""
    content = Func(F("content"), Value(search_words.SKIPPED), arg_joiner=" - ", template="(%(expressions)s::text[])")
    found = rows.annotate(stored=STORED, said=content).defer("content", "part_values")
    for row in found.iterator(chunk_size=ROWS):
        row.content = row.said
        yield row


def texts(row: Rollout) -> Iterator[str]:
    """All texts of a rollout, also those of turns that lie apart."""
    return chain(search_words.texts(row.content), episodes.texts(row))


def _waiting(run_id: int) -> tuple[NDArray[np.int64], blocks.Hits, bool]:
    """The numbers and the hits of the oldest rollouts that wait, and whether there are more."""
    stored, found, count = [], [], 0
    until = time.monotonic() + SECONDS
    for row in light(stored_after(run_id, indexed(run_id)).order_by("stored")[:AT_ONCE]):
        stored.append(row.stored)
        found.append(search_words.stored(row.step, row.phase, texts(row)))
        count += len(found[-1])
        if count >= HITS_AT_ONCE or time.monotonic() >= until:  # an episode may have a hundred megabytes
            return np.array(stored, "<i8"), blocks.hits(found), True
    return np.array(stored, "<i8"), blocks.hits(found), len(stored) == AT_ONCE


def _write(run_id: int, stored: NDArray[np.int64], hits: blocks.Hits) -> None:
    """Writes a block, as one with those before it if it is time to merge them."""
    older = list(WordBlock.objects.filter(run=run_id).order_by("-first")[:LOOKED_AT])
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
