"""Resolutions when answers, seats or people change after they were made."""

import pytest

from tests.team import ApiClient
from webapp.annotation.agreement import matched_items, refresh
from webapp.annotation.models import Assignment, Resolution, TaskReview
from webapp.annotation.projects import services as projects
from webapp.annotation.projects.task_services import set_gold
from webapp.annotation.review import services as review
from webapp.annotation.work import queue
from webapp.core.problems import Conflict
from webapp.personal_data.erasing import erase

from ..answers import annotators, answer, make_project, preference, rubric

pytestmark = pytest.mark.django_db


@pytest.fixture
def decided(team):
    """A task on which two people agree and a reviewer has decided differently, with the people."""
    made = make_project(team, n=1)
    people, task = annotators(team, made), made.tasks.get()
    given = [answer(task, one, preference(2)).pk for one in people]
    refresh.bring_up_to_date(made)
    review.consolidate(team.reviewer, task, answers=given, content=preference(-1))
    return task, people, given


def test_undo_does_not_bring_back_unanimity_that_has_ended(decided, team):
    task, people, _ = decided
    answer(task, people[0], preference(-3))
    refresh.bring_up_to_date(task.project)
    assert review.undo(team.reviewer, task) is None
    assert not Resolution.objects.filter(task=task).exists()


def test_undo_finds_the_unanimity_that_came_meanwhile(decided, team):
    task, people, _ = decided
    now = [answer(task, one, preference(3)).pk for one in people]
    refresh.bring_up_to_date(task.project)
    found = review.undo(team.reviewer, task)
    assert (found.source, found.content["strength"], found.trace[0]["answers"]) == ("unanimous", 3, now)


def test_undo_brings_back_the_decision_of_somebody_whose_account_was_erased(decided, team):
    task, _, given = decided
    review.consolidate(team.researcher, task, answers=given, content=preference(-2))
    assert Resolution.objects.get().trace[0]["replaced"]["by"] == team.reviewer.user_id
    erase(team.reviewer.user, team.owner.user)
    assert Resolution.objects.get().trace[0]["replaced"]["by"] is None
    found = review.undo(team.researcher, task)
    found.refresh_from_db()
    assert (found.source, found.content["strength"], found.decided_by) == ("consolidated", -1, None)


def test_a_decision_stands_and_can_be_undone_after_the_account_of_its_reviewer_was_erased(decided, team):
    task, people, _ = decided
    erase(team.reviewer.user, team.owner.user)
    [seat] = Assignment.objects.filter(task=task, user=people[0].user)
    with pytest.raises(Conflict, match="reviewer has decided"):
        queue.reopen(people[0], seat)
    shown = ApiClient(team.owner).get(f"/tasks/{task.pk}/review").json()
    assert shown["resolution"]["can_undo"]
    assert review.undo(team.owner, task).source == "unanimous"


def test_tasks_that_fewer_seats_make_complete_resolve_themselves(team):
    made = make_project(team, n=1, overlap=3)
    task = made.tasks.get()
    for one in annotators(team, made):
        answer(task, one, preference(2))
    refresh.bring_up_to_date(made)
    assert not Resolution.objects.exists()
    projects.update(team.researcher, made, overlap=2)
    refresh.bring_up_to_date(made)
    assert Resolution.objects.get().source == "unanimous"


def test_a_task_that_is_no_longer_gold_is_reviewed(team, monkeypatch, django_capture_on_commit_callbacks):
    monkeypatch.setattr(refresh, "LATE", 0)
    made = make_project(team, n=2)
    gold, other = made.tasks.order_by("rank")
    people = annotators(team, made)
    gold = set_gold(team.researcher, gold, preference(2))
    for task in (gold, other):
        for one in people:
            answer(task, one, preference(2))
    refresh.bring_up_to_date(made)
    with django_capture_on_commit_callbacks(execute=True):
        set_gold(team.researcher, gold, None)
    refresh.bring_up_to_date(made)
    assert TaskReview.objects.filter(task=gold).exists()
    assert Resolution.objects.get(task=gold).source == "unanimous"


def test_matched_items_leave_out_tasks_that_became_gold(team):
    made = make_project(team, kind="rubric", n=2)
    people, listed = annotators(team, made), list(made.tasks.order_by("rank"))
    for task, texts in zip(listed, [("Names a river", "Names a river"), ("Is short", "Rhymes")], strict=True):
        for one, text in zip(people, texts, strict=True):
            answer(task, one, rubric(text))
    refresh.bring_up_to_date(made)
    assert matched_items.report(made)["share"]["n"] == 2
    set_gold(team.researcher, listed[0], rubric("Names a river"))
    refresh.bring_up_to_date(made)
    assert matched_items.report(made)["share"]["n"] == 1
