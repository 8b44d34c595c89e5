"""Workers index the words of rollouts after they are stored."""

import random
import threading

import numpy as np
import pytest
from django.db import IntegrityError, connection, transaction

from webapp.core.database import locks
from webapp.experiments.models import BlockWords, Rollout, Run, WordBlock
from webapp.experiments.rollouts import blocks, indexing, queries, search_words
from webapp.experiments.rollouts.queries import RolloutQuery
from workers import runs as tasks


def put(run, start, end, step=1):
    Rollout.objects.bulk_create(
        Rollout(run=run, step=step, phase="train", group=0, index=i, content={"response": f"red only{i}"})
        for i in range(start, end)
    )
    Run.objects.filter(pk=run.pk).update(words_due=True)


def count_found(run, text, **filters):
    return len(queries.rollouts(run, RolloutQuery(text=text, **filters), limit=1000).items)


def whole(run):
    """The hits of all blocks, by id."""
    got = []
    for block in WordBlock.objects.filter(run=run).order_by("first"):
        ids = np.frombuffer(bytes(block.places), "<i8")
        hits = indexing._hits(block)
        assert (len(ids), len(hits), ids[0], ids[-1]) == (block.size, block.hits, block.first, block.last)
        got += [(int(ids[each & 0xFFFF]), int(each >> 16)) for each in hits]
    return got


def expected(run):
    rows = Rollout.objects.filter(run=run)
    return sorted(
        (row.pk, number)
        for row in rows
        for number in search_words.stored(row.step, row.phase, search_words.texts(row.content))
    )


def due(run):
    return Run.objects.get(pk=run.pk).words_due


def test_the_ingest_marks_the_run_and_a_worker_indexes_it(run, trainer, django_assert_num_queries):
    assert not due(run)
    trainer.post(trainer.metrics(1, loss=1.0))
    assert not due(run)
    trainer.post(trainer.event("rollouts", 1, rollouts=[trainer.rollout(i) for i in range(3)]))
    assert due(run) and not WordBlock.objects.exists()
    tasks.index_words()
    assert not due(run)
    assert WordBlock.objects.get().size == 3
    assert sorted(whole(run)) == expected(run)
    with django_assert_num_queries(3):
        tasks.index_words()


def test_a_rollout_that_replaces_another_keeps_its_id_and_is_indexed_again(run, trainer):
    def send(response):
        trainer.post(trainer.event("rollouts", 1, rollouts=[trainer.rollout(0, response=response)]))
        tasks.index_words()
        return Rollout.objects.get()

    first, second, third = send("crimson"), send("scarlet"), send("vermilion")
    assert first.pk == second.pk == third.pk, "links lead to it"
    assert first.stored_again is None and first.pk < second.stored_again < third.stored_again
    assert count_found(run, "vermilion") == 1
    assert count_found(run, "crimson") == count_found(run, "scarlet") == 0
    assert indexing.indexed(run.pk) == third.stored_again


@pytest.mark.parametrize("hits_at_once", [1 << 20, 1])
def test_a_run_is_indexed_in_pieces(run, monkeypatch, hits_at_once):
    monkeypatch.setattr(indexing, "AT_ONCE", 7)
    monkeypatch.setattr(indexing, "HITS_AT_ONCE", hits_at_once)
    monkeypatch.setattr(indexing, "BYTES", hits_at_once)
    put(run, 0, 50)
    assert indexing.index(run.pk)
    assert due(run) and WordBlock.objects.get().size == (7 if hits_at_once > 1 else 1)
    indexing.index_due()
    assert not due(run)
    assert sorted(whole(run)) == expected(run)
    put(run, 50, 51)
    indexing.index_due()
    assert sorted(whole(run)) == expected(run)


@pytest.mark.parametrize("held", [{"ROWS": 1}, {"ROWS": 7}, {"BYTES": 1}, {"BYTES": 200}, {"CHARACTERS": 1}])
def test_the_index_is_the_same_however_few_rollouts_are_held_at_once(run, trainer, monkeypatch, held):
    for name, value in held.items():
        monkeypatch.setattr(indexing, name, value)
    put(run, 0, 50)
    turns = [{"author": "environment", "text": f"赤い kitsune{i} " * 9, "tool": "search"} for i in range(3)]
    trainer.post(trainer.event("rollouts", 2, rollouts=[trainer.rollout(i, turns=turns[:i]) for i in range(4)]))
    indexing.index_due()
    assert sorted(whole(run)) == expected(run)


def test_parts_of_a_run_may_be_indexed_each_by_itself(run):
    put(run, 0, 50)
    first = Rollout.objects.order_by("pk")[0].pk
    ends = [0, first + 19, first + 39, indexing.LAST]
    for start, end in [(ends[2], ends[3]), (ends[0], ends[1]), (ends[1], ends[2])]:
        while indexing.index(run.pk, start, end):
            pass
    assert list(WordBlock.objects.order_by("first").values_list("size", flat=True)) == [20, 20, 10]
    assert sorted(whole(run)) == expected(run)


def test_a_task_ends_after_some_seconds_and_the_next_goes_on(run, monkeypatch):
    monkeypatch.setattr(indexing, "AT_ONCE", 7)
    monkeypatch.setattr(indexing, "SECONDS", 0)
    put(run, 0, 20)
    indexing.index_due()
    assert not WordBlock.objects.exists()
    monkeypatch.setattr(indexing, "SECONDS", 60)
    indexing.index_due()
    assert count_found(run, "red") == 20


def test_blocks_are_merged_and_stay_few(run):
    for start in range(0, 300, 3):
        put(run, start, start + 3)
        indexing.index(run.pk)
    assert WordBlock.objects.filter(run=run).count() < 12
    assert sorted(whole(run)) == expected(run)
    assert BlockWords.objects.exclude(block__in=WordBlock.objects.all()).count() == 0
    assert count_found(run, "red") == 300
    assert count_found(run, "only77") == 1


def test_a_block_has_no_more_rollouts_and_words_than_it_may(run, monkeypatch):
    monkeypatch.setattr(blocks, "MOST", 40)
    for start in range(0, 200, 5):
        put(run, start, start + 5)
        indexing.index(run.pk)
    sizes = list(WordBlock.objects.filter(run=run).values_list("size", flat=True))
    assert max(sizes) <= 40 and len(sizes) < 14
    monkeypatch.setattr(blocks, "MOST_HITS", 100)
    put(run, 200, 205)
    indexing.index(run.pk)
    assert WordBlock.objects.order_by("-first")[0].size == 5
    assert count_found(run, "red") == 205


def test_words_of_many_rollouts_come_back_from_their_bytes():
    draw = random.Random(1)  # noqa: S311
    each = [{draw.randrange(-(2**31), 2**31) for _ in range(50)} | {-5, 7} for _ in range(3000)]
    for number, every in (
        (-(2**31), 3),
        (2**31 - 1, 5),
        (8, 17),
    ):  # the last block has many hits, but not so many that bits are shorter
        for them in each[::every]:
            them.add(number)
    hits = blocks.merged([(1000, blocks.hits(each[at : at + 1000])) for at in range(0, 3000, 1000)])
    rows = blocks.packed(hits)
    assert np.array_equal(blocks.unpacked(row for _, row in rows), hits)
    assert len(rows) > 100
    firsts = [number for number, _ in rows]
    assert firsts == sorted(set(firsts))
    assert max(len(row) for _, row in rows) < 2 * blocks.ROW
    assert sum(row[:4] == bytes(4) for _, row in rows) == 4, "with a row for each frequent word"
    for number in (-5, 7, 8, -(2**31), 2**31 - 1, *each[2000], 9):
        row = rows[max(int(np.searchsorted(firsts, number, "right")) - 1, 0)][1]
        assert blocks.places(row, number).tolist() == [place for place, them in enumerate(each) if number in them]


def test_nothing_is_packed_into_nothing():
    assert blocks.packed(blocks.hits([])) == []
    assert len(blocks.unpacked([])) == 0


def test_a_block_goes_with_its_run(run, launch):
    other = launch()
    put(run, 0, 5)
    put(other, 0, 5)
    indexing.index_due()
    Run.objects.filter(pk=run.pk).delete()
    assert WordBlock.objects.get().run == other
    assert set(BlockWords.objects.values_list("block", flat=True)) == {WordBlock.objects.get().pk}


def test_a_run_that_is_gone_is_no_fault(run):
    assert not indexing.index(run.pk + 1)


@pytest.mark.django_db(transaction=True)
def test_one_worker_at_a_time_indexes(run):
    put(run, 0, 5)
    with locks.exclusive(locks.Work.WORDS, 0) as ours:
        assert ours
        thread = threading.Thread(target=lambda: (indexing.index_due(), connection.close()))
        thread.start()
        thread.join(30)
        assert not WordBlock.objects.exists() and due(run)
    indexing.index_due()
    assert WordBlock.objects.get().size == 5


@pytest.mark.django_db(transaction=True)
def test_two_workers_without_the_lock_never_index_a_rollout_twice(run, monkeypatch):
    """A lock may be lost with its connection. The database then refuses the second writer."""
    put(run, 0, 5)
    read, written = threading.Barrier(2), []
    real = indexing._write

    def both_have_read(*given):
        read.wait(30)
        real(*given)

    def work():
        try:
            written.append(indexing.index(run.pk))
        except IntegrityError:
            pass
        finally:
            connection.close()

    monkeypatch.setattr(indexing, "_write", both_have_read)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert len(written) == 1
    assert sorted(whole(run)) == expected(run)


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_dies_leaves_nothing_half_done(run, monkeypatch):
    put(run, 0, 5)
    indexing.index(run.pk)
    put(run, 5, 9)
    monkeypatch.setattr(blocks, "packed", lambda hits: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        indexing.index(run.pk)
    monkeypatch.undo()
    assert WordBlock.objects.get().size == 5 and due(run)
    assert count_found(run, "red") == 9
    indexing.index_due()
    assert sorted(whole(run)) == expected(run)


@pytest.mark.django_db(transaction=True)
def test_a_run_stays_due_if_rollouts_come_while_a_worker_looks(run, monkeypatch):
    """The ingest has the lock of the run and has not committed when the worker has indexed all rollouts that it sees."""
    put(run, 0, 5)
    begun, over = threading.Event(), threading.Event()
    real = indexing._clear

    def work():
        indexing.index(run.pk)
        over.set()
        connection.close()

    monkeypatch.setattr(indexing, "_clear", lambda run_id: (begun.set(), real(run_id)))
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        put(run, 5, 6)
        thread = threading.Thread(target=work)
        thread.start()
        assert begun.wait(30) and not over.wait(0.5)
    thread.join(30)
    assert due(run) and WordBlock.objects.get().size == 5
