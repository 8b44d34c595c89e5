"""Gold tasks made from labels that are known already."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from webapp.annotation import kinds
from webapp.annotation.models import Task
from webapp.annotation.projects import gold_services, task_services
from webapp.annotation.tasks import gold_candidates
from webapp.annotation.work import queue
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid

SUBJECT = {"a": "x", "b": "y"}


def labels(*preferences) -> dict:
    """(a, b, strength, rater) for each preference."""
    rows = [{"a": a, "b": b, "strength": strength, "rater": rater} for a, b, strength, rater in preferences]
    return {"preferences": rows}


@pytest.mark.parametrize(
    ("content", "least", "expected"),
    [
        (labels(("x", "y", 2, "1")), 1, 2),
        (labels(("x", "y", 1, "1"), ("x", "y", 2, "2"), ("x", "y", 3, "3")), 3, 2),
        (labels(("x", "y", 1, "1"), ("y", "x", -2, "2")), 2, 2),  # the other way round; halves are rounded up
        (labels(("x", "y", -1, "1"), ("x", "y", -2, "2")), 1, -2),
        (labels(("x", "y", 0, "1"), ("x", "y", 0, "2")), 1, 0),
    ],
)
def test_labels_that_agree_give_their_median(content, least, expected):
    assert gold_candidates.from_labels("pairwise", SUBJECT, content, least) == {
        "verdict": "compared",
        "strength": expected,
    }


@pytest.mark.parametrize(
    ("content", "least"),
    [
        (labels(("x", "y", 1, "1"), ("x", "y", -1, "2")), 1),
        (labels(("x", "y", 1, "1"), ("x", "y", 0, "2")), 1),
        (labels(("x", "y", 1, "1")), 2),
        (labels(("x", "z", 1, "1")), 1),  # a label of another pair
        # a suggestion of a model is not a known answer
        (labels(("x", "y", 1, "judge"), ("x", "y", 1, "judge:big")), 1),
        ({}, 1),
    ],
)
def test_labels_that_do_not_agree_give_nothing(content, least):
    assert gold_candidates.from_labels("pairwise", SUBJECT, content, least) is None


def test_both_bad_is_known_too():
    rows = [{"a": "x", "b": "y", "strength": None, "verdict": "both_bad", "rater": "1"}]
    found = gold_candidates.from_labels("pairwise", SUBJECT, {"preferences": rows})
    assert found == {"verdict": "both_bad", "strength": None}


def test_answers_alike_give_the_first_without_what_is_ones_own():
    settings = kinds.Settings()
    one = {"verdict": "compared", "strength": 3, "reasons": [{"text": "Right"}], "note": "sure", "dimensions": {}}
    two = {**one, "strength": 1, "reasons": []}
    assert gold_candidates.from_answers("pairwise", settings, [one, two]) == {"verdict": "compared", "strength": 3}
    assert gold_candidates.from_answers("pairwise", settings, [one, {**two, "strength": -1}]) is None
    assert gold_candidates.from_answers("pairwise", settings, [one], least=2) is None
    assert gold_candidates.from_answers("rubric", settings, [one, two]) is None  # matched by meaning: see below


@pytest.mark.django_db
class TestMarking:
    @pytest.fixture
    def project(self, make_project):
        project = make_project(overlap=2)
        task_services.make(project.pk)
        project.refresh_from_db()
        return project

    def test_labels_make_so_many_gold_tasks_and_no_more(self, team, project):
        assert gold_services.mark(team.researcher, project, "labels", 3) == gold_services.MarkedGold(3, 4)
        found = Task.objects.filter(project=project, overlap=None)
        assert [task.gold["strength"] for task in found] == [2, 2, 2]
        project.refresh_from_db()
        assert project.tasks_total == 1

    def test_many_cost_as_few_queries_as_one(self, team, project, make_project):
        other = make_project(name="Others")
        task_services.make(other.pk)
        with CaptureQueriesContext(connection) as one:
            gold_services.mark(team.researcher, project, "labels", 1)
        with CaptureQueriesContext(connection) as four:
            gold_services.mark(team.researcher, other, "labels", 4)
        assert len(four) == len(one)
        assert AuditEntry.objects.filter(action="task.gold_set", detail__project=other.pk).count() == 4

    def test_tasks_that_somebody_has_begun_are_left_alone(self, team, project):
        queue.claim(team.reviewer, project, hold=1)
        assert gold_services.mark(team.researcher, project, "labels", 100).made == 3

    def test_answers_alike_become_known(self, team, project):
        for membership in (team.reviewer, team.owner):
            for seat in queue.claim(membership, project, hold=2):
                swapped = seat.order == [1, 0]
                content = {"verdict": "compared", "strength": -1 if swapped else 1}
                queue.submit(membership, seat, content, None, 5)
        done = gold_services.mark(team.researcher, project, "answers", 10, least=2)
        assert done == gold_services.MarkedGold(2, 2)
        assert set(Task.objects.filter(overlap=None).values_list("gold__strength", flat=True)) == {1}

    def test_what_cannot_be_checked_is_refused(self, team, make_project):
        grading = make_project(kind="grading", name="Grades")
        with pytest.raises(Invalid) as caught:
            gold_services.mark(team.researcher, grading, "labels", 0, 99)
        assert set(caught.value.fields) == {"source", "most", "least"}
