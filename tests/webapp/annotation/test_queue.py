"""Claiming, drafting and submitting, one person at a time; races are in test_races."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.webapp.annotation.seed import ANSWER, make_project
from tests.webapp.webhooks.told import listen, told
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


def test_webhooks_hear_of_each_answer_and_once_of_a_complete_task(cast):
    project = make_project(cast.researcher, 1, overlap=2, people=[cast.annotator, cast.reviewer])
    listen(cast.owner)
    for number, person in enumerate((cast.annotator, cast.reviewer), 1):
        (seat,) = queue.claim(person, project)
        answer = queue.submit(person, seat, ANSWER)
        queue.submit(person, seat, ANSWER)  # the same again is the same answer
        where = {"task": seat.task_id, "project": project.pk}
        facts = {"answer": answer.pk, "revision": 1, **where, "annotator": person.user_id}
        assert told()[number - 1] == ("answer.submitted", facts)
    assert told()[2:] == [("task.completed", where)]
    queue.reopen(cast.annotator, seat := cast_seat(cast.annotator))
    queue.submit(cast.annotator, seat, {**ANSWER, "strength": 1})
    assert [event for event, _ in told()[3:]] == ["answer.submitted", "task.completed"]
    assert told()[3][1]["revision"] == 2


def cast_seat(membership):
    return Assignment.objects.get(user=membership.user)


def test_where_no_webhook_listens_an_answer_costs_no_query_more(cast):
    project = make_project(cast.researcher, 2, people=[cast.annotator])

    def cost():
        (seat,) = queue.claim(cast.annotator, project)
        with CaptureQueriesContext(connection) as seen:
            queue.submit(cast.annotator, seat, ANSWER)
        return [query["sql"] for query in seen if "webhooks_webhook" in query["sql"]]

    (only,) = cost()
    assert "INSERT INTO annotation_answer" in only
    assert told() == []
