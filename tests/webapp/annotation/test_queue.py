"""Claiming, drafting and submitting, one person at a time; races are in test_races."""

import pytest

from tests.webapp.annotation.seed import ANSWER, make_project
from webapp.annotation.models import Answer, Assignment
from webapp.annotation.services import queue

pytestmark = pytest.mark.django_db


def test_an_annotator_gets_the_tasks_in_the_order_of_the_dataset(cast):
    project = make_project(cast.researcher, 3, people=[cast.annotator])
    got = []
    for _ in range(3):
        (seat,) = queue.claim(cast.annotator, project)
        got.append(seat.task.example.content["key"])
        queue.submit(cast.annotator, seat, ANSWER)
    assert got == ["q0", "q1", "q2"]
    assert queue.serve(cast.annotator, project.pk).reason == "none_left"


def test_a_submission_is_stored_in_the_frame_of_the_subject(cast):
    project = make_project(cast.researcher, 20, people=[cast.annotator])
    for _ in range(20):
        (seat,) = queue.claim(cast.annotator, project)
        answer = queue.submit(cast.annotator, seat, ANSWER)
        assert answer.content["strength"] == (-2 if seat.order == [0, 1] else 2)
    assert set(map(tuple, Assignment.objects.values_list("order", flat=True))) == {(0, 1), (1, 0)}
    assert Answer.objects.filter(project=project, current=True).count() == 20
