"""Claiming, drafting and submitting by one person at a time. Races are in test_races."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.webapp.annotation.seed import ANSWER, make_project, pair
from tests.webapp.webhooks.hooks import announced_events, listen
from webapp.annotation import kinds
from webapp.annotation.models import Answer, Assignment, Guidelines, Participant, Project, Resolution, Task
from webapp.annotation.projects import task_services
from webapp.annotation.work import queue
from webapp.annotation.work.api import assignment_out
from webapp.annotation.work.submissions import Sent
from webapp.core.problems import Conflict

pytestmark = pytest.mark.django_db


def test_an_annotator_gets_the_tasks_in_the_order_of_the_dataset(team):
    project = make_project(team.researcher, 3, people=[team.annotator])
    got = []
    for _ in range(3):
        (seat,) = queue.claim(team.annotator, project)
        got.append(seat.task.example.content["key"])
        queue.submit(team.annotator, seat, ANSWER)
    assert got == ["q0", "q1", "q2"]
    assert queue.serve(team.annotator, project.pk).reason == "none_left"


def test_a_submission_is_stored_in_the_frame_of_the_subject(team):
    project = make_project(team.researcher, 20, people=[team.annotator])
    for _ in range(20):
        (seat,) = queue.claim(team.annotator, project)
        answer = queue.submit(team.annotator, seat, ANSWER)
        assert answer.content["strength"] == (-2 if seat.order == [0, 1] else 2)
    assert set(map(tuple, Assignment.objects.values_list("order", flat=True))) == {(0, 1), (1, 0)}
    assert Answer.objects.filter(project=project, current=True).count() == 20


def work(person, project, content=ANSWER):
    (seat,) = queue.claim(person, project)
    return seat, queue.submit(person, seat, content)


def let_the_lease_run_out(seat):
    Assignment.objects.filter(id=seat.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    return queue.expire_leases()


def test_on_a_clock_that_went_back_a_lease_begins_anew_instead_of_lasting_longer(team):
    project = make_project(team.researcher, 2, people=[team.annotator, team.reviewer])
    (ahead,), (usual,) = queue.claim(team.annotator, project), queue.claim(team.reviewer, project)
    now, half = timezone.now(), timedelta(minutes=kinds.Settings().lease_minutes)
    written = now + timedelta(hours=2)
    Assignment.objects.filter(id=ahead.pk).update(claimed_at=written, lease_until=written + half)
    before = Assignment.objects.get(id=usual.pk).lease_until
    assert queue.expire_leases() == 0
    assert now + half <= Assignment.objects.get(id=ahead.pk).lease_until <= timezone.now() + half
    assert Assignment.objects.get(id=usual.pk).lease_until == before
    _, answer = work(team.annotator, project)
    sent_back = queue.send_back(answer.assignment, "Look again.").lease_until
    queue.expire_leases()
    assert Assignment.objects.get(id=ahead.pk).lease_until == sent_back


def test_a_lease_stays_as_it_was_given_where_the_project_gives_shorter_ones_now(team):
    project = make_project(team.researcher, 1, people=[team.annotator])
    (seat,) = queue.claim(team.annotator, project)
    until = timezone.now() + timedelta(hours=4)
    Assignment.objects.filter(id=seat.pk).update(lease_until=until)
    queue.expire_leases()
    assert Assignment.objects.get(id=seat.pk).lease_until == until


def test_a_seat_whose_lease_ran_out_goes_to_the_next_person(team):
    project = make_project(team.researcher, 1, people=[team.annotator, team.reviewer], overlap=1)
    (seat,) = queue.claim(team.annotator, project)
    assert queue.claim(team.reviewer, project) == []
    assert let_the_lease_run_out(seat) == 1
    assert queue.claim(team.reviewer, project)[0].task_id == seat.task_id


def test_a_late_submission_counts_if_the_seat_is_still_free(team):
    project = make_project(team.researcher, 1, people=[team.annotator], overlap=1)
    (seat,) = queue.claim(team.annotator, project)
    let_the_lease_run_out(seat)
    assert queue.submit(team.annotator, seat, ANSWER).current
    task = Task.objects.get()
    assert (task.taken, task.done, task.completed_at is not None) == (1, 1, True)


def test_a_submission_that_comes_too_late_is_kept_as_a_draft(team):
    project = make_project(team.researcher, 1, people=[team.annotator, team.reviewer], overlap=1)
    (seat,) = queue.claim(team.annotator, project)
    let_the_lease_run_out(seat)
    work(team.reviewer, project)
    with pytest.raises(Conflict, match="kept as a draft") as refused:
        queue.submit(team.annotator, seat, ANSWER)
    assert refused.value.code == "seat_taken"
    kept = Assignment.objects.get(id=seat.pk)
    assert kept.draft == ANSWER and kept.state == "returned"
    assert Answer.objects.count() == 1 and Task.objects.get().taken == 1


def test_a_returned_seat_comes_back_to_the_same_person_with_its_draft(team):
    project = make_project(team.researcher, 1, people=[team.annotator])
    (seat,) = queue.claim(team.annotator, project)
    queue.save_draft(team.annotator, seat, {"strength": 2}, 0)
    let_the_lease_run_out(seat)
    (again,) = queue.claim(team.annotator, project)
    assert (again.pk, again.order, again.draft) == (seat.pk, seat.order, {"strength": 2})


def test_saving_a_draft_renews_the_lease_and_takes_a_returned_seat_again(team):
    project = make_project(team.researcher, 1, people=[team.annotator], overlap=1)
    (seat,) = queue.claim(team.annotator, project)
    let_the_lease_run_out(seat)
    assert queue.save_draft(team.annotator, seat, {"strength": 2}, 0, seconds=9) == 1
    row = Assignment.objects.get()
    assert row.state == "claimed" and row.lease_until > timezone.now() + timedelta(minutes=29)
    assert Task.objects.get().taken == 1


def test_the_same_submission_repeated_is_the_same_answer(team):
    project = make_project(team.researcher, 1, people=[team.annotator])
    seat, answer = work(team.annotator, project)
    assert queue.submit(team.annotator, seat, {**ANSWER, "dimensions": {}}).pk == answer.pk
    with pytest.raises(Conflict, match="Reopen it"):
        queue.submit(team.annotator, seat, {**ANSWER, "strength": 0})
    assert Answer.objects.count() == 1


def test_only_the_last_submissions_can_be_reopened(team):
    project = make_project(team.researcher, 3, people=[team.annotator], settings={"reopen": 2})
    seats = [work(team.annotator, project)[0] for _ in range(3)]
    with pytest.raises(Conflict, match="last 2"):
        queue.reopen(team.annotator, seats[0])
    opened = queue.reopen(team.annotator, seats[1])
    assert queue.reopen(team.annotator, seats[1]).pk == opened.pk  # a double click
    assert queue.claim(team.annotator, project)[0].pk == seats[1].pk
    assert Task.objects.get(id=seats[1].task_id).done == 0


def test_a_reopened_answer_left_alone_stands_as_it_was(team):
    project = make_project(team.researcher, 1, people=[team.annotator])
    seat, answer = work(team.annotator, project)
    queue.reopen(team.annotator, seat)
    let_the_lease_run_out(seat)
    assert Assignment.objects.get().state == "submitted" and Task.objects.get().done == 1
    assert Answer.objects.get(current=True).pk == answer.pk


def test_submitting_a_reopened_answer_unchanged_makes_no_new_revision(team):
    project = make_project(team.researcher, 1, people=[team.annotator])
    seat, answer = work(team.annotator, project)
    opened = queue.reopen(team.annotator, seat)
    assert queue.submit(team.annotator, seat, opened.draft, opened.draft_revision).pk == answer.pk
    assert Assignment.objects.get().state == "submitted" and Task.objects.get().done == 1


def test_a_settled_task_cannot_be_reopened(team):
    project = make_project(team.researcher, 1, people=[team.annotator])
    seat, _ = work(team.annotator, project)
    Resolution.objects.create(task=seat.task, project=project, source="consolidated", decided_by=team.reviewer.user)
    with pytest.raises(Conflict, match="has decided this task"):
        queue.reopen(team.annotator, seat)


def test_skipping_a_reopened_answer_withdraws_it(team):
    project = make_project(team.researcher, 1, people=[team.annotator])
    seat, _ = work(team.annotator, project)
    queue.reopen(team.annotator, seat)
    queue.skip(team.annotator, seat, "I know the author")
    assert not Answer.objects.filter(current=True).exists() and Answer.objects.count() == 1
    assert (Task.objects.get().taken, Participant.objects.get().submitted) == (0, 0)
    assert queue.claim(team.annotator, project) == []


def test_an_answer_sent_back_waits_for_its_author_before_anything_else(team):
    project = make_project(team.researcher, 3, people=[team.annotator])
    seat, _ = work(team.annotator, project)
    work(team.annotator, project)
    queue.send_back(Assignment.objects.get(id=seat.pk), "Look at the second one again.")
    (first,) = queue.claim(team.annotator, project)
    assert (first.pk, first.sent_back) == (seat.pk, "Look at the second one again.")
    assert first.draft["strength"] == ANSWER["strength"]
    queue.submit(team.annotator, first, {**ANSWER, "strength": 1}, first.draft_revision)
    assert Assignment.objects.get(id=seat.pk).sent_back == ""


def test_a_paused_person_gets_nothing_and_their_work_goes_back(team):
    project = make_project(team.researcher, 2, people=[team.annotator])
    (seat,) = queue.claim(team.annotator, project)
    Participant.objects.update(paused=True)
    assert queue.release(team.annotator.user, project) == 1
    assert queue.serve(team.annotator, project.pk).reason == "you_are_paused"
    with pytest.raises(Conflict, match="kept as a draft"):
        queue.submit(team.annotator, seat, ANSWER)
    assert Assignment.objects.get().draft == ANSWER and Task.objects.get(id=seat.task_id).taken == 0


def test_a_paused_project_serves_nothing_and_takes_what_was_begun(team):
    project = make_project(team.researcher, 2, people=[team.annotator])
    (seat,) = queue.claim(team.annotator, project)
    Project.objects.update(state="paused")
    assert queue.serve(team.annotator, project.pk).reason == "paused"
    assert queue.submit(team.annotator, seat, ANSWER).current
    Project.objects.update(state="closed")
    assert queue.serve(team.annotator, project.pk).reason == "closed"


def test_each_block_of_tasks_holds_one_gold_task_without_seats(team):
    project = make_project(team.researcher, 24, people=[team.annotator], settings={"gold_every": 4}, overlap=1)
    for task in Task.objects.order_by("rank")[:6]:
        task_services.set_gold(team.researcher, task, {"verdict": "compared", "strength": 3})
    served = [work(team.annotator, project) for _ in range(20)]
    gold = [answer.gold_right is not None for _, answer in served]
    assert [sum(gold[start : start + 4]) for start in range(0, 20, 4)] == [1] * 5
    assert [a.gold_right for s, a in served if a.gold_right is not None] == [
        a.content["strength"] > 0 for _, a in served if a.gold_right is not None
    ]
    assert not Task.objects.filter(overlap=None).exclude(taken=0, done=0).exists()
    assert Project.objects.get().tasks_total == 18


def test_gold_tells_what_was_expected_only_where_the_project_says_so(team):
    for feedback in (False, True):
        settings = {"gold_every": 1, "gold_feedback": feedback}
        project = make_project(team.researcher, 2, people=[team.annotator], settings=settings)
        task_services.set_gold(team.researcher, Task.objects.filter(project=project).first(), {"strength": 3})
        (seat,) = queue.claim(team.annotator, project)
        shown = 3 if seat.order == [0, 1] else -3
        sent = Sent({"strength": shown})
        submission, _ = queue.submit_and_serve(team.annotator, seat.pk, sent, 0)
        assert submission.answer.gold_right is True
        if feedback:
            assert submission.feedback["right"] and submission.feedback["expected"]["strength"] == shown
        else:
            assert submission.feedback is None


@pytest.mark.parametrize("setting, recorded", [("never", "never"), ("before", "before"), ("after", "after")])
def test_when_a_suggestion_was_shown_is_recorded(team, setting, recorded):
    judged = pair(meta={"judge": [{"a": "ID-ONE", "b": "ID-TWO", "strength": 2}]})
    project = make_project(
        team.researcher, [judged, pair("q2")], people=[team.annotator], settings={"suggestions": setting}
    )
    (seat,) = queue.claim(team.annotator, project)
    seen = assignment_out(seat, kinds.Settings(suggestions=setting))["view"]["suggestion"]
    assert (seen is not None) == (setting == "before")
    submission, _ = queue.submit_and_serve(team.annotator, seat.pk, Sent(ANSWER), 0)
    assert submission.answer.suggestion == recorded
    assert (submission.after is not None) == (setting == "after")
    if setting == "after":
        assert submission.after["suggestion"]["strength"] == (2 if seat.order == [0, 1] else -2)
        opened = queue.reopen(team.annotator, seat)
        again = queue.submit(team.annotator, seat, {**ANSWER, "strength": 0}, opened.draft_revision)
        assert again.suggestion == "before"  # the person has seen it by now
    _, plain = work(team.annotator, project)
    assert plain.suggestion == "never"  # that example has no view of a model


RATED, GRADED = {"ratings": {"Help": 4}}, {"grades": [{"criterion": "c1", "verdict": "met"}]}


@pytest.mark.parametrize("kind, shown", [("grading", GRADED), ("rating", RATED)])
def test_a_view_that_answers_another_kind_of_task_is_passed_over(team, kind, shown):
    views = [{"subject": {"response": "ID-ONE"}, "content": content} for content in ({"tiers": 7}, RATED, GRADED)]
    example = pair(meta={"suggestions": views}, rubric={"criteria": [{"id": "c1", "text": "Is true.", "points": 1}]})
    settings = {"suggestions": "before"}
    project = make_project(team.researcher, [example], kind=kind, people=[team.annotator], settings=settings)
    seats = queue.claim(team.annotator, project, hold=2)
    seen = {str(seat.task.subject): assignment_out(seat, kinds.Settings(**settings))["view"] for seat in seats}
    assert seen["{'response': 'ID-ONE'}"]["suggestion"] == shown
    assert seen["{'response': 'ID-TWO'}"]["suggestion"] is None


@pytest.mark.parametrize("views", [7, "met", {"subject": {}}, [7], [{"subject": {"a": "ID-ONE", "b": "ID-TWO"}}]])
def test_views_that_are_none_stop_nobody(team, views):
    example = pair(meta={"suggestions": views})
    project = make_project(team.researcher, [example], people=[team.annotator], settings={"suggestions": "before"})
    _, answer = work(team.annotator, project)
    assert answer.suggestion == "never"


def test_the_guidelines_that_were_seen_are_stored(team):
    project = make_project(team.researcher, 2, people=[team.annotator])
    (seat,) = queue.claim(team.annotator, project)
    Guidelines.objects.create(project=project, number=2, text="Be fairer.")
    assert queue.submit(team.annotator, seat, ANSWER).guidelines.number == 1
    (seat,) = queue.claim(team.annotator, project)
    submission, _ = queue.submit_and_serve(team.annotator, seat.pk, Sent(ANSWER, guidelines=1), 0)
    assert submission.answer.guidelines.number == 1  # the time that the page says the task was on the screen


def test_webhooks_hear_of_each_answer_and_once_of_a_complete_task(team):
    project = make_project(team.researcher, 1, overlap=2, people=[team.annotator, team.reviewer])
    listen(team.owner)
    for number, person in enumerate((team.annotator, team.reviewer), 1):
        (seat,) = queue.claim(person, project)
        answer = queue.submit(person, seat, ANSWER)
        queue.submit(person, seat, ANSWER)  # the same request again gets the same answer
        where = {"task": seat.task_id, "project": project.pk}
        facts = {"answer": answer.pk, "revision": 1, **where, "annotator": person.user_id}
        assert announced_events()[number - 1] == ("answer.submitted", facts)
    assert announced_events()[2] == ("task.completed", where)
    whole = {"project": project.pk, "name": project.name, "dataset": project.version.dataset_id, "tasks": 1}
    assert announced_events()[3:] == [("project.complete", whole)]
    queue.reopen(team.annotator, seat := team_seat(team.annotator))
    queue.submit(team.annotator, seat, {**ANSWER, "strength": 1})
    assert [event for event, _ in announced_events()[4:]] == ["answer.submitted", "task.completed", "project.complete"]
    assert announced_events()[4][1]["revision"] == 2


def team_seat(membership):
    return Assignment.objects.get(user=membership.user)


def test_where_no_webhook_listens_an_answer_costs_no_query_more(team):
    project = make_project(team.researcher, 2, people=[team.annotator])

    def cost():
        (seat,) = queue.claim(team.annotator, project)
        with CaptureQueriesContext(connection) as seen:
            queue.submit(team.annotator, seat, ANSWER)
        return [query["sql"] for query in seen if "webhooks_webhook" in query["sql"]]

    (only,) = cost()
    assert "INSERT INTO annotation_answer" in only
    assert announced_events() == []
