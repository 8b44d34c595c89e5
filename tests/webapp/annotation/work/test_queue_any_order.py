"""The seat queue under all actions of people in any order. Its invariants hold after each step."""

from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.team import make_team
from tests.webapp.annotation.seed import make_annotators, make_project
from tests.webapp.annotation.work.test_races import assert_counts_equal_the_rows
from webapp.annotation.models import Answer, Assignment, Task
from webapp.annotation.people import services as participants
from webapp.annotation.projects import services as projects
from webapp.annotation.review import services as review
from webapp.annotation.work import queue
from webapp.core.problems import Conflict

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
PEOPLE, TASKS = 4, 3

people = st.integers(0, PEOPLE - 1)
which = st.integers(0, TASKS - 1)  # of the seats of a person, if there are as many
strengths = st.sampled_from([-2, -1, 1, 2])


class Queue(RuleBasedStateMachine):
    """Keeps the answers and skips of all people. The database must agree with it."""

    def __init__(self) -> None:
        super().__init__()
        self.world = transaction.atomic()  # undone at the end, because every run begins with an untouched project
        self.world.__enter__()
        self.team = make_team()
        self.people = make_annotators(self.team.researcher, PEOPLE)
        self.project = make_project(self.team.researcher, TASKS, people=self.people, overlap=2)
        self.answers: dict[tuple[int, int], int] = {}  # (task, person) -> strength as the person saw it
        self.skipped: set[tuple[int, int]] = set()

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.world.__exit__(None, None, None)

    def seat(self, person: int, number: int) -> Assignment | None:
        mine = Assignment.objects.filter(project=self.project, user=self.people[person].user_id).order_by("id")
        return mine[number : number + 1].first()

    @rule(person=people, hold=st.integers(1, 2))
    def claim(self, person: int, hold: int) -> None:
        who = self.people[person]
        for seat in queue.claim(who, self.project, hold):
            at = (seat.task_id, who.user_id)
            assert at not in self.skipped, "a skipped task was served again"
            assert seat.state == Assignment.State.CLAIMED
            assert seat.user_id == who.user_id

    @rule(person=people, number=which, strength=strengths)
    def submit(self, person: int, number: int, strength: int) -> None:
        who, seat = self.people[person], self.seat(person, number)
        if seat is None:
            return
        content = {"verdict": "compared", "strength": strength}
        try:
            queue.submit(who, seat, content)
        except Conflict:  # the seat is gone, or has another answer: then either that answer stands, or this one is kept
            seat.refresh_from_db()
            assert (seat.task_id, who.user_id) in self.answers or seat.draft == content
        else:
            self.answers[seat.task_id, who.user_id] = strength
            self.skipped.discard((seat.task_id, who.user_id))

    @rule(person=people, number=which)
    def skip(self, person: int, number: int) -> None:
        who, seat = self.people[person], self.seat(person, number)
        if seat is None:
            return
        with suppress(Conflict):
            queue.skip(who, seat, "not mine")
            self.answers.pop((seat.task_id, who.user_id), None)
            self.skipped.add((seat.task_id, who.user_id))

    @rule(person=people, number=which)
    def reopen(self, person: int, number: int) -> None:
        if seat := self.seat(person, number):
            with suppress(Conflict):
                queue.reopen(self.people[person], seat)

    @rule(person=people, number=which)
    def send_back(self, person: int, number: int) -> None:
        if seat := self.seat(person, number):
            with suppress(Conflict):
                review.send_back(self.team.reviewer, seat, "Look again.")

    @rule(person=people, number=which)
    def expire(self, person: int, number: int) -> None:
        if seat := self.seat(person, number):
            past = timezone.now() - timedelta(seconds=1)
            Assignment.objects.filter(pk=seat.pk).update(lease_until=past)
            queue.expire_leases()

    @rule(person=people, number=which)
    def come_back(self, person: int, number: int) -> None:
        if seat := self.seat(person, number):
            queue.renew(self.people[person], seat)

    @rule(person=people, paused=st.booleans())
    def pause_person(self, person: int, paused: bool) -> None:
        participants.pause_participant(self.team.researcher, self.project, self.people[person].user, paused)

    @rule(state=st.sampled_from(["paused", "open"]))
    def pause_project(self, state: str) -> None:
        projects.set_state(self.team.researcher, self.project, state)

    @rule(overlap=st.integers(1, PEOPLE))
    def change_overlap(self, overlap: int) -> None:
        projects.update(self.team.researcher, self.project, overlap=overlap)
        assert not Task.objects.filter(project=self.project, overlap__lt=overlap).exists()

    @invariant()
    def no_task_has_more_people_than_seats_and_counts_are_right(self) -> None:
        assert_counts_equal_the_rows(self.project)

    @invariant()
    def nobody_sits_twice_on_a_task(self) -> None:
        seats = list(Assignment.objects.filter(project=self.project).values_list("task", "user"))
        assert len(set(seats)) == len(seats)

    @invariant()
    def no_answer_is_lost(self) -> None:
        standing = Answer.objects.filter(project=self.project, current=True).select_related("assignment")
        found = {}
        for answer in standing:
            seat = answer.assignment
            seen = answer.content["strength"] * (1 if seat.order == [0, 1] else -1)
            found[seat.task_id, seat.user_id] = seen
        assert found == self.answers


def test_whatever_people_do_in_any_order_the_queue_keeps_its_promises():
    run_state_machine_as_test(
        Queue,
        settings=settings(
            max_examples=20, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
