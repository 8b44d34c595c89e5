"""Limits that hold for all runs on an endpoint, in any process."""

import threading
from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from webapp.inference.endpoints import sharing
from webapp.inference.endpoints.sharing import fair, places, turns
from webapp.inference.models import Endpoint, EndpointLease

WANTS = st.lists(st.integers(1, 300), max_size=6)


@pytest.mark.parametrize(
    ("size", "mine", "others", "expected"),
    [
        (8, 8, [], 8),
        (8, 3, [], 8),  # no other run wants them
        (8, 8, [8], 4),
        (8, 8, [1], 7),
        (8, 1, [8], 1),
        (9, 9, [9], 5),
        (2, 2, [2, 2], 1),  # there are more runs than places, so a free place goes to the first that asks
        (8, 8, [1, 8], 4),
    ],
)
def test_shares_are_even_and_nothing_wanted_lies_idle(size, mine, others, expected):
    assert fair(size, mine, others) == expected


@given(st.integers(1, 300), st.integers(1, 300), WANTS)
def test_a_share_is_never_empty_nor_more_than_there_is(size, mine, others):
    found = fair(size, mine, others)
    assert 0 < found <= size
    assert found >= min(mine, -(-size // (len(others) + 1)))


@pytest.fixture
def shared(endpoint):
    endpoint.concurrency = 6
    endpoint.save()
    return endpoint


@pytest.mark.django_db
def test_who_comes_second_waits_until_the_first_makes_room(shared):
    first, second = uuid4(), uuid4()
    assert places(shared.pk, first, 0, 6) == 6
    assert places(shared.pk, second, 0, 6) == 0
    assert places(shared.pk, first, 6, 7) == 6  # its requests have been sent
    assert places(shared.pk, first, 2, 5) == 3
    assert places(shared.pk, second, 0, 6) == 3
    sharing.leave(shared.pk, first)
    assert places(shared.pk, second, 3, 9) == 6


@pytest.mark.django_db
def test_a_dead_runs_places_come_back_when_its_lease_runs_out(shared):
    dead, alive = uuid4(), uuid4()
    places(shared.pk, dead, 0, 6)
    assert places(shared.pk, alive, 0, 6) == 0
    EndpointLease.objects.filter(holder=dead).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert places(shared.pk, alive, 0, 6) == 6
    assert EndpointLease.objects.count() == 1


@pytest.mark.django_db
def test_a_limit_changed_on_the_page_holds_at_once(shared):
    run = uuid4()
    places(shared.pk, run, 0, 6)
    Endpoint.objects.filter(pk=shared.pk).update(concurrency=2)
    assert places(shared.pk, run, 1, 6) == 2


@pytest.mark.django_db
def test_blocks_of_turns_follow_each_other_whoever_takes_them(shared):
    Endpoint.objects.filter(pk=shared.pk).update(requests_per_minute=60)
    (first, distance), (second, _) = turns(shared.pk, 5), turns(shared.pk, 5)
    assert distance == 1.0 and first == 0.0 and 4.0 < second <= 5.0
    Endpoint.objects.filter(pk=shared.pk).update(requests_per_minute=None)
    assert turns(shared.pk, 5) == (0.0, 0.0)


@pytest.mark.django_db
def test_nobody_waits_for_a_clock_that_went_back(shared):
    later = timezone.now() + timedelta(hours=2)
    Endpoint.objects.filter(pk=shared.pk).update(requests_per_minute=60, next_turn_at=later)
    assert turns(shared.pk, 5)[0] == 0.0 and 4.0 < turns(shared.pk, 5)[0] <= 5.0
    dead, alive = uuid4(), uuid4()
    places(shared.pk, dead, 0, 6)
    EndpointLease.objects.filter(holder=dead).update(expires_at=later)
    assert places(shared.pk, alive, 0, 6) == 6


@pytest.mark.django_db
def test_turns_that_are_far_ahead_because_many_ask_stay_there(shared):
    Endpoint.objects.filter(pk=shared.pk).update(requests_per_minute=1)
    for _ in range(20):
        places(shared.pk, uuid4(), 0, 1)
    waits = [turns(shared.pk, 1)[0] for _ in range(20)]
    assert waits == pytest.approx([60.0 * place for place in range(20)], abs=30)


@pytest.mark.django_db(transaction=True)
def test_runs_at_the_same_moment_are_never_granted_more_than_there_is(shared):
    problems, most = [], []
    together = threading.Barrier(5)

    def run():
        holder, granted = uuid4(), 0
        try:
            together.wait(60)
            for _ in range(12):
                granted = places(shared.pk, holder, min(granted, 1), 6)
                most.append(sum(EndpointLease.objects.values_list("granted", flat=True)))
        except Exception as error:
            problems.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == [] and max(most) <= 6 and EndpointLease.objects.count() == 5


@pytest.mark.django_db(transaction=True)
def test_turns_taken_at_the_same_moment_do_not_overlap(shared):
    Endpoint.objects.filter(pk=shared.pk).update(requests_per_minute=6000)
    taken = []

    def run():
        for _ in range(5):
            with transaction.atomic():
                turns(shared.pk, 100)
                taken.append(Endpoint.objects.get(pk=shared.pk).next_turn_at)
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ends = sorted(taken)
    assert len(ends) == 20 and all(two - one >= timedelta(seconds=1) for one, two in pairwise(ends))
