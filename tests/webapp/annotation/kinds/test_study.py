"""Two arms of a study: each pair is judged under both rubrics, but not by the same person."""

from collections import Counter

import pytest
from django.db.models import Count

from tests.concurrency import concurrently
from tests.team import make_team
from trainer.contracts import Criterion
from webapp.annotation.kinds import Settings
from webapp.annotation.models import Assignment, Task
from webapp.annotation.tasks import blinding, task_factory
from webapp.annotation.work import queue

from ..seed import ANSWER, make_annotators, make_project, pair
from ..work.test_races import claiming

ARMS = {
    "human": [
        {"id": "h1", "text": "Says it in one line", "points": 7, "importance": "essential", "tags": ["HUMAN"]},
        {"id": "h2", "text": "Makes a joke", "points": -2},
    ],
    "own": [{"id": "g1", "text": "Is correct", "points": 3}],
}


def studied(key: str) -> dict:
    return pair(key, meta={"study": {"evaluation": 1, "arms": ARMS}})


def study(lab, people, pairs=6, overlap=1, **fields):
    return make_project(lab, [studied(f"q{n}") for n in range(pairs)], people=people, overlap=overlap, **fields)


def tasks_of(person):
    """(example, arm) of every task that this person ever had."""
    rows = Assignment.objects.filter(user=person.user).values_list("task__example__key", "task__subject__arm")
    return sorted(rows)


def submit_all(people):
    for person in people:
        for seat in Assignment.objects.filter(user=person.user, state="claimed"):
            queue.submit(person, seat, ANSWER)


def test_each_arm_of_the_first_pair_is_a_subject_and_shows_its_own_rubric_without_its_name():
    content = studied("q")
    found = task_factory.subjects_of("pairwise", content)
    assert found == [{"a": "ID-ONE", "b": "ID-TWO", "arm": arm} for arm in ("human", "own")]
    views = [blinding.view("pairwise", Settings(), each, [0, 1], content, done=False) for each in found]
    assert [[one["text"] for one in view["criteria"]] for view in views] == [
        ["Says it in one line", "Makes a joke"],
        ["Is correct"],
    ]
    first, pitfall = (Criterion.model_validate(one) for one in views[0]["criteria"])
    assert (first.points, first.importance, first.tags) == (1, "important", ()) and (pitfall.id, pitfall.points) == (
        "2",
        -1,
    )
    assert "HUMAN" not in str(views) and "human" not in str(views) and "h1" not in str(views)


def test_an_ordinary_pair_shows_no_rubric():
    content = pair("q", meta={"study": "a word of the import"})
    assert task_factory.subjects_of("pairwise", content) == [{"a": "ID-ONE", "b": "ID-TWO"}]
    assert (
        blinding.view("pairwise", Settings(), {"a": "ID-ONE", "b": "ID-TWO"}, [0, 1], content, done=False)["criteria"]
        == []
    )


@pytest.mark.django_db
def test_two_people_share_the_arms_of_every_pair():
    lab = make_team().researcher
    one, two = make_annotators(lab, 2)
    project = study(lab, [one, two], strategy="random")
    for _ in range(3):
        for person in (one, two):
            queue.claim(person, project, 2)
            submit_all([person])
    for person in (one, two):
        assert Counter(key for key, _ in tasks_of(person)) == {f"q{n}": 1 for n in range(6)}
    assert not set(tasks_of(one)) & set(tasks_of(two))
    assert not Task.objects.exclude(taken=1).exists()


@pytest.mark.django_db
def test_a_seat_given_back_still_keeps_its_owner_from_the_other_arm():
    lab = make_team().researcher
    (one,) = make_annotators(lab, 1)
    project = study(lab, [one], pairs=8)
    seats = [seat for _ in range(2) for seat in queue.claim(one, project, 8)]
    assert queue.release(one.user, project) == 8
    again = queue.claim(one, project, 10)
    assert {seat.task_id for seat in again} == {seat.task_id for seat in seats}


@pytest.mark.django_db(transaction=True)
def test_whatever_comes_at_once_nobody_gets_a_pair_twice_and_every_seat_is_taken():
    lab = make_team().researcher
    people = make_annotators(lab, 8)
    project = study(lab, people, pairs=12, overlap=4, strategy="random")
    for _ in range(12):
        concurrently([claiming(person, project, 10) for person in people for _ in range(3)], threads=24)
        submit_all(people)
    twice = Assignment.objects.values("user", "task__example").annotate(n=Count("id")).filter(n__gt=1)
    assert not twice.exists()
    assert set(Task.objects.values_list("taken", flat=True)) == {4}  # 8 people, 4 in each arm of every pair
