"""Tasks of people who cannot work in a project any more."""

import pytest

from tests.webapp.annotation.seed import ANSWER, make_annotators, make_project
from webapp.accounts.members.services import remove_member
from webapp.accounts.models import User
from webapp.annotation.models import Assignment, Project
from webapp.annotation.people import services as people
from webapp.annotation.projects import services as projects
from webapp.annotation.review import services as review
from webapp.annotation.work import queue
from webapp.core.problems import Conflict

pytestmark = pytest.mark.django_db
STATE = Assignment.State


@pytest.fixture
def work(team):
    """(project, person, an answer of theirs, a task that they hold)"""
    [person] = make_annotators(team.owner, 1)
    project = make_project(team.researcher, 2, people=[person])
    first, second = queue.claim(person, project, hold=2)
    queue.submit(person, first, ANSWER)
    return project, person, Assignment.objects.get(pk=first.pk), Assignment.objects.get(pk=second.pk)


def states(*seats):
    for seat in seats:
        seat.refresh_from_db()
    return [seat.state for seat in seats]


def test_tasks_of_a_removed_member_are_free_at_once_and_their_answers_stand(work, team):
    project, person, answered, held = work
    review.send_back(team.reviewer, answered, "Look again.")
    assert queue.expire_leases() == 0
    remove_member(team.owner, person)
    assert queue.expire_leases() == 2
    assert states(answered, held) == [STATE.SUBMITTED, STATE.RETURNED]
    assert sorted(project.tasks.values_list("taken", "done")) == [(0, 0), (1, 1)]


def test_tasks_of_a_closed_account_are_free_at_once(work):
    _, person, _, held = work
    User.objects.filter(pk=person.user_id).update(is_active=False)
    assert queue.expire_leases() == 1
    assert states(held) == [STATE.RETURNED]


def cannot_be_sent_back(team, seat):
    with pytest.raises(Conflict) as refused:
        review.send_back(team.reviewer, seat, "Look again.")
    assert refused.value.code == "nobody_to_answer"
    assert states(seat) == [STATE.SUBMITTED]


def test_an_answer_is_not_sent_back_to_a_person_who_has_left(work, team):
    _, person, answered, _ = work
    remove_member(team.owner, person)
    cannot_be_sent_back(team, answered)


def test_an_answer_is_not_sent_back_to_a_paused_person(work, team):
    project, person, answered, _ = work
    people.pause_participant(team.researcher, project, person.user, True)
    cannot_be_sent_back(team, answered)


def test_an_answer_is_sent_back_in_a_paused_project_and_not_in_a_closed_one(work, team):
    project, _, answered, _ = work
    projects.set_state(team.researcher, project, Project.State.CLOSED)
    cannot_be_sent_back(team, answered)
    projects.set_state(team.researcher, project, Project.State.OPEN)
    projects.set_state(team.researcher, project, Project.State.PAUSED)
    assert review.send_back(team.reviewer, answered, "Look again.").state == STATE.CLAIMED
