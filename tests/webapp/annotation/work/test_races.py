"""Rules that hold when all people come at the same time: nobody gets a task twice, a task has no more people than seats, counts equal the
rows, and nothing is lost.
"""

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from time import monotonic, sleep
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Count, F, Q
from django.utils import timezone

from tests.concurrency import concurrently, outcome, somebody_waits
from tests.team import make_team
from tests.webapp.annotation.seed import ANSWER, make_annotators, make_project
from tests.webapp.webhooks.hooks import announced_events, listen
from webapp.annotation.models import Answer, Assignment, Participant, Project, ProjectInvite, Resolution, Task
from webapp.annotation.people import services as participants
from webapp.annotation.projects import services as projects
from webapp.annotation.projects import task_services
from webapp.annotation.publishing import services as publish
from webapp.annotation.review import services as review
from webapp.annotation.tasks import order
from webapp.annotation.work import queue, submissions
from webapp.core.problems import Conflict
from webapp.datasets.versions import writer

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def behind(call: Callable):
    """Runs `call` in a thread until it waits for one of our locks. Continues then, and yields the result of the call."""
    with ThreadPoolExecutor(1) as pool:
        future: Future = pool.submit(outcome, call)
        end = monotonic() + 60
        while monotonic() < end and not future.done() and not somebody_waits():
            sleep(0.01)
        yield future


def claiming(person, project, hold=1):
    return lambda: queue.claim(person, project, hold)


def assert_counts_equal_the_rows(project):
    live = Count("assignments", filter=Q(assignments__state__in=["claimed", "submitted"]))
    standing = Count("assignments", filter=Q(assignments__state="submitted"))
    rows = Task.objects.filter(project=project, overlap__isnull=False).annotate(live=live, standing=standing)
    assert not rows.exclude(taken=F("live"), done=F("standing")).exists()
    assert not rows.filter(taken__gt=F("overlap")).exists()
    assert not rows.filter(done=F("overlap"), completed_at=None).exists()
    assert not rows.filter(done__lt=F("overlap")).exclude(completed_at=None).exists()
    for person in Participant.objects.filter(project=project):
        own = Assignment.objects.filter(project=project, user=person.user, submitted_at__isnull=False)
        assert person.submitted == own.count()
    answered = Assignment.objects.filter(project=project, submitted_at__isnull=False)
    assert answered.count() == Answer.objects.filter(project=project, current=True).count()


def test_of_200_claims_of_one_task_exactly_as_many_as_seats_succeed():
    lab = make_team().researcher
    people = make_annotators(lab, 200)
    project = make_project(lab, 1, people=people, overlap=3)
    got = concurrently(claiming(person, project) for person in people)
    assert sum(map(len, got)) == 3
    assert Task.objects.get().taken == 3
    assert_counts_equal_the_rows(project)


def test_two_tabs_get_the_same_tasks_not_twice_as_many():
    lab = make_team().annotator
    project = make_project(lab, 10, people=[lab])
    got = concurrently([claiming(lab, project, 2)] * 8)
    assert {tuple(seat.pk for seat in seats) for seats in got} == {tuple(seat.pk for seat in got[0])}
    assert Assignment.objects.count() == 2


def test_of_two_new_versions_of_the_guidelines_at_once_one_is_told_of_the_other():
    lab = make_team().researcher
    project = make_project(lab, 1)
    texts = ("Be quick.", "Be slow.")
    got = concurrently([lambda t=text: projects.new_guidelines(lab, project, t, 1) for text in texts])
    assert sorted(type(one).__name__ for one in got) == ["Conflict", "Guidelines"]
    assert project.guidelines.count() == 2


def test_of_two_changes_of_the_settings_at_once_one_is_told_of_the_other():
    lab = make_team().researcher
    project = make_project(lab, 1)
    base = projects.mark(Project.objects.get(pk=project.pk))
    reads = [Project.objects.get(pk=project.pk) for _ in range(2)]
    got = concurrently(
        [lambda r=read, n=n: projects.update(lab, r, base, settings={"reopen": n}) for n, read in enumerate(reads)]
    )
    assert sorted(type(one).__name__ for one in got) == ["Conflict", "Project"]


def test_a_double_click_submits_once():
    lab = make_team().annotator
    project = make_project(lab, 2, people=[lab])
    (seat,) = queue.claim(lab, project)
    got = concurrently([lambda: queue.submit(lab, seat, ANSWER)] * 8)
    assert {answer.pk for answer in got} == {Answer.objects.get().pk}
    assert Task.objects.get(id=seat.task_id).done == 1
    assert_counts_equal_the_rows(project)


def test_of_the_last_answers_given_at_once_one_completes_the_project():
    lab = make_team()
    people = [lab.annotator, lab.reviewer, lab.researcher, *make_annotators(lab.owner, 5)]
    project = make_project(lab.owner, len(people), overlap=1, people=people)
    seats = [(person, queue.claim(person, project)[0]) for person in people]
    listen(lab.owner)
    concurrently([lambda p=person, s=seat: queue.submit(p, s, ANSWER) for person, seat in seats])
    events = Counter(event for event, _ in announced_events())
    assert events == {"answer.submitted": len(people), "task.completed": len(people), "project.complete": 1}


def test_two_different_submissions_at_once_leave_one_answer_and_one_conflict():
    lab = make_team().annotator
    project = make_project(lab, 1, people=[lab])
    (seat,) = queue.claim(lab, project)
    got = concurrently([lambda s=s: queue.submit(lab, seat, {**ANSWER, "strength": s}) for s in (-3, 3)])
    assert sorted(type(one).__name__ for one in got) == ["Answer", "Conflict"]
    assert_counts_equal_the_rows(project)


def test_two_tabs_that_save_at_once_keep_one_draft_and_tell_the_other():
    lab = make_team().annotator
    project = make_project(lab, 1, people=[lab])
    (seat,) = queue.claim(lab, project)
    got = concurrently([lambda s=s: queue.save_draft(lab, seat, {"strength": s}, 0) for s in range(1, 4)])
    assert sum(one == 1 for one in got) == 1
    refused: list[Any] = [one.extra["current"] for one in got if isinstance(one, Conflict)]
    assert all(current["revision"] == 1 for current in refused)


def test_expiry_racing_submissions_loses_no_answer_and_no_seat():
    lab = make_team().researcher
    people = make_annotators(lab, 12)
    project = make_project(lab, 6, people=people, overlap=2)
    held = [(person, seat) for person in people for seat in queue.claim(person, project, 1)]
    Assignment.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    calls: list[Any] = [lambda p=p, s=s: queue.submit(p, s, ANSWER) for p, s in held]
    calls[3:3] = [queue.expire_leases] * 4
    calls += [queue.expire_leases] * 4
    concurrently(calls)
    assert Answer.objects.count() == len(held) == 12  # nobody else came, so every seat was free again
    assert_counts_equal_the_rows(project)


def test_many_people_working_at_once_share_out_every_seat():
    """Claims, drafts, skips, expiries, releases and submissions in a mixed order, until nothing is left."""
    lab = make_team().researcher
    people = make_annotators(lab, 16)
    project = make_project(lab, 60, people=people, overlap=3, settings={"gold_every": 7})
    for task in Task.objects.order_by("id")[:3]:
        task_services.set_gold(lab, task, {"verdict": "compared", "strength": 1})

    def work(index: int) -> Counter:
        person, done = people[index], Counter()
        for turn in range(400):
            seats = queue.claim(person, project, 1 + index % 3)
            if not seats:
                break
            seat = seats[turn % len(seats)]
            if turn % 11 == 5:
                queue.expire_leases()
            if turn % 13 == 7:
                queue.release(person.user, project)  # the next submission uses a returned seat
            if turn % 17 == 3:
                Assignment.objects.filter(id=seat.pk, state="claimed").update(lease_until=timezone.now())
            if turn % 5 == 2:
                queue.save_draft(person, seat, ANSWER, seat.draft_revision)
            try:
                queue.submit(person, seat, ANSWER)
                done["submitted"] += 1
            except Conflict:
                done["refused"] += 1
        return done

    got = concurrently([lambda i=i: work(i) for i in range(len(people))], threads=16)
    assert all(isinstance(one, Counter) for one in got)
    queue.expire_leases()
    assert_counts_equal_the_rows(project)
    seated = Task.objects.filter(project=project, overlap__isnull=False)
    assert not seated.exclude(done=3).exists()  # 57 tasks with three answers each, from three different people
    assert Answer.objects.filter(current=True, assignment__task__overlap=3).count() == 3 * 57
    gold = Answer.objects.filter(assignment__task__overlap=None)
    assert gold.exists() and not gold.filter(gold_right=None).exists()
    assert sum(one["submitted"] for one in got) == Answer.objects.count()


def test_a_task_locked_by_someone_else_is_passed_over_and_found_later():
    team = make_team()
    project = make_project(team.researcher, 3, people=[team.annotator], overlap=1)
    first, second, third = Task.objects.order_by("rank").values_list("id", flat=True)
    with transaction.atomic():
        list(Task.objects.select_for_update().filter(id=first))
        ((seat,),) = concurrently([claiming(team.annotator, project)])
    assert seat.task_id == second
    queue.submit(team.annotator, seat, ANSWER)
    served = [seat.task_id for seat in queue.claim(team.annotator, project, 3)]
    assert sorted(served) == [first, third]


def test_the_database_itself_refuses_one_person_too_many():
    lab = make_team().researcher
    make_project(lab, 1, overlap=1)
    from django.db import IntegrityError

    with pytest.raises(IntegrityError, match="no_more_than_overlap"), connection.cursor() as cursor:
        cursor.execute("UPDATE annotation_task SET taken = 2")


def settle(seat, person) -> Resolution:
    decided = {"project_id": seat.project_id, "source": "consolidated", "decided_by": person.user}
    return Resolution.objects.update_or_create(task_id=seat.task_id, defaults=decided)[0]


def test_a_task_that_is_settled_while_an_answer_to_it_is_reopened_stays_as_it_was():
    team = make_team()
    make_project(team.researcher, 1, people=[team.annotator])
    (seat,) = queue.claim(team.annotator, Task.objects.get().project)
    queue.submit(team.annotator, seat, ANSWER)
    with ExitStack() as stack:
        with transaction.atomic():
            review._locked(seat.task)
            reopened = stack.enter_context(behind(lambda: queue.reopen(team.annotator, seat)))
            settle(seat, team.reviewer)
        assert getattr(reopened.result(), "code", "") == "settled"
    assert Assignment.objects.get().state == "submitted"
    assert_counts_equal_the_rows(seat.project)


def test_sending_back_and_settling_at_once_do_not_wait_for_each_other():
    team = make_team()
    project = make_project(team.researcher, 1, people=[team.annotator])
    (seat,) = queue.claim(team.annotator, project)
    queue.submit(team.annotator, seat, ANSWER)
    settle(seat, team.reviewer)
    with ExitStack() as stack:
        with transaction.atomic():
            review._locked(seat.task)
            sent_back = stack.enter_context(behind(lambda: review.send_back(team.reviewer, seat, "Look again")))
            settle(seat, team.reviewer)  # the row that sending back is about to delete
        assert sent_back.result().sent_back == "Look again"
    assert not Resolution.objects.exists() and Assignment.objects.get().state == "claimed"


@pytest.mark.parametrize("what", ["seats", "ranks"])
def test_changes_of_many_tasks_lock_them_by_id_as_everybody_does(what):
    lab = make_team().researcher
    project = make_project(lab, 3, overlap=2)
    first, second, _ = Task.objects.order_by("id").values_list("id", flat=True)
    Task.objects.filter(id=first).update(rank=F("rank") + 0.5)  # it is now behind the others, and is found last

    def change():
        if what == "seats":
            projects.update(lab, project, overlap=3)
        else:
            order.move(project, [Task(id=task.pk, rank=task.rank + 1) for task in Task.objects.order_by("-id")])

    with ExitStack() as stack:
        with transaction.atomic():
            list(Task.objects.select_for_update().filter(id=first))
            changed = stack.enter_context(behind(change))
            assert list(Task.objects.select_for_update(nowait=True).filter(id=second))
        changed.result()


def test_two_projects_that_publish_at_once_make_two_versions_of_what_was_annotated():
    team = make_team()
    one = make_project(team.researcher, 1, people=[team.annotator])
    two = make_project(team.researcher, 1, people=[team.annotator], version=one.version)
    for project in (one, two):
        (seat,) = queue.claim(team.annotator, project)
        queue.submit(team.annotator, seat, ANSWER)
    choice = publish.Choice(what="answers", replace=False)
    dataset = one.version.dataset
    with ExitStack() as stack:
        with writer.lock_dataset_name(dataset.workspace_id, dataset.name):
            first = stack.enter_context(behind(lambda: publish.publish(team.researcher, one, choice)))
            second = publish.publish(team.researcher, two, choice).version
        last = first.result().version
    assert (second.number, last.number) == (2, 3)
    told = json.loads(last.members.get().example.canonical)["meta"]["annotation"]
    assert set(told) == {str(one.pk)}


def test_who_follows_a_link_in_many_windows_at_once_uses_it_up_once():
    team = make_team()
    project = make_project(team.researcher, 1)
    _, secret = participants.invite(team.researcher, project, uses=8)
    _, last = participants.invite(team.researcher, project, uses=1)
    for key, left in ((secret, 7), (last, 0)):
        Participant.objects.all().delete()
        got = concurrently([lambda key=key: participants.join(team.annotator.user, key)] * 8)
        assert {row.pk for row in got} == {Participant.objects.get().pk}
        assert ProjectInvite.objects.order_by("id")[left == 0].uses_left == left


@pytest.mark.parametrize("before", [None, ANSWER], ids=["given", "taken away"])
def test_a_known_answer_that_changes_during_a_submission_is_held_against_it(monkeypatch, before):
    team = make_team()
    project = make_project(team.researcher, 1, people=[team.annotator])
    task = Task.objects.select_related("project__workspace", "example").get()
    known = {"verdict": "compared", "strength": 1}
    (seat,) = queue.claim(team.annotator, project)
    if before:
        task_services.set_gold(team.researcher, task, known)
    look = submissions._right

    def looked_up(*given):
        found = look(*given)
        monkeypatch.setattr(submissions, "_right", look)
        concurrently([lambda: task_services.set_gold(team.researcher, task, None if before else known)])
        return found

    monkeypatch.setattr(submissions, "_right", looked_up)
    answer = queue.submit(team.annotator, seat, ANSWER)
    stored = Answer.objects.get()
    assert (stored.gold_right is None, answer.gold_right) == (bool(before), stored.gold_right)
