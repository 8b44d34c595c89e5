"""For how many values a metric has not improved: against a direct copy of Keras' rule, whatever was read before, and with what came again."""

from functools import partial

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from tests.concurrency import concurrently
from webapp.experiments.metrics import patience, points
from webapp.experiments.metrics.patience import Patience
from webapp.experiments.models import MetricProgress, Run

KEY = "eval/rubric_score"


def keras(values, patience, min_delta, higher):
    """The place at which Keras' EarlyStopping stops; None if it does not. As in `on_epoch_end`, with the names there."""
    best, wait = (float("-inf") if higher else float("inf")), 0
    delta = min_delta if higher else -min_delta
    for epoch, current in enumerate(values):
        wait += 1
        if (current - delta > best) if higher else (current - delta < best):
            best, wait = current, 0
            continue
        if wait >= patience and epoch > 0:
            return epoch
    return None


def ours(values, patience, min_delta, higher):
    """The first place at which a run would be stopped that is looked at after each value."""
    standing = Patience()
    for place, value in enumerate(values):
        standing = standing.after([(place, value)], higher, min_delta)
        if standing.waited >= patience:
            return place
    return None


@pytest.mark.parametrize(
    ("values", "waits"),
    [
        ([], 0),
        ([1], 0),
        ([1, 1], 1),
        ([1, 2, 1.5], 1),
        ([1, 1.05, 1.1], 2),  # exactly by min_delta is not more than that
        ([1, 1.05, 1.2, 1.25, 1.31], 0),
        ([1, 1.05, 1.2, 1.25, 1.3], 2),
        ([3, 2, 1], 2),
    ],
)
def test_sequences_by_hand(values, waits):
    steps = list(enumerate(values))
    assert Patience().after(steps, True, 0.1).waited == waits
    mirrored = [(step, -value) for step, value in steps]
    assert Patience().after(mirrored, False, 0.1).waited == waits


NUMBERS = st.lists(st.integers(-8, 8).map(lambda n: n / 8), max_size=40)


@given(NUMBERS, st.integers(1, 6), st.sampled_from([0.0, 0.125, 0.3, 1.0]), st.booleans())
def test_it_stops_where_keras_does(values, patience, min_delta, higher):
    assert ours(values, patience, min_delta, higher) == keras(values, patience, min_delta, higher)


@given(NUMBERS, st.lists(st.integers(0, 40), max_size=5), st.booleans())
def test_it_does_not_matter_in_which_pieces_it_is_read(values, cuts, higher):
    steps, found = list(enumerate(values)), Patience()
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(steps)], strict=True):
        found = found.after(steps[start:end], higher, 0.25)
    assert found == Patience().after(steps, higher, 0.25)


def tell(trainer, values, first=0):
    for step, value in enumerate(values, first):
        assert trainer.post(trainer.metrics(step, **{KEY: value})).status_code == 200


def waited(run, higher=True, min_delta=0.0):
    with transaction.atomic():
        Run.objects.select_for_update(no_key=True).get(pk=run.pk)
        return patience.waited(run.pk, KEY, higher, min_delta)


def test_only_what_came_since_is_read(trainer, run, monkeypatch):
    read, copied = [], points.read_points

    def counted(*asked):
        for place, piece in copied(*asked):
            read.extend(piece["step"].tolist())
            yield place, piece

    monkeypatch.setattr(points, "read_points", counted)
    tell(trainer, [0.1, 0.3, 0.2])
    assert waited(run) == 1 and read == [0, 1, 2]
    read.clear()
    assert waited(run) == 1 and read == []
    tell(trainer, [0.2, 0.25], first=3)
    assert waited(run) == 3 and read == [3, 4]


def test_a_look_reads_a_piece_and_a_later_one_goes_on(trainer, run, monkeypatch):
    monkeypatch.setattr(patience, "PIECE", 2)
    tell(trainer, [0.9, 0.3, 0.2, 0.1])
    assert [waited(run) for _ in range(3)] == [None, None, 3]
    monkeypatch.setattr(patience, "PIECE", 3)
    tell(trainer, [0.1], first=0)  # from here on all are read again
    assert [waited(run) for _ in range(2)] == [None, 2]


def test_another_rule_counts_from_the_beginning(trainer, run):
    tell(trainer, [0.1, 0.3, 0.2, 0.35])
    assert (waited(run), waited(run, min_delta=0.1), waited(run, higher=False), waited(run)) == (0, 2, 3, 0)
    assert MetricProgress.objects.count() == 1


def test_what_comes_late_or_again_counts_as_it_was_told_last(trainer, run):
    tell(trainer, [0.3, 0.4, 0.1, 0.1])
    assert waited(run) == 2
    tell(trainer, [0.1], first=1)
    assert waited(run) == 3
    tell(trainer, [0.5], first=3)
    assert waited(run) == 0


@pytest.mark.django_db(transaction=True)
def test_a_point_that_comes_again_while_it_is_counted_is_not_lost(trainer, run):
    tell(trainer, [0.9, *[0.1] * 5])
    lowered = trainer.metrics(0, **{KEY: 0.05})
    concurrently([partial(waited, run), partial(trainer.post, lowered), partial(waited, run)])
    assert waited(run) == 4, "the first is not the best any more"
