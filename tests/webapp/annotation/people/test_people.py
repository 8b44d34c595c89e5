"""The figures about people, and the page that shows them."""

import html
import re
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.concurrency import concurrently
from tests.pages import page_html
from tests.team import browser
from tests.webapp.annotation.conftest import make_version
from webapp.accounts.members.services import remove_member
from webapp.accounts.models import Membership, Role, User
from webapp.annotation.agreement import person_figures, refresh
from webapp.annotation.agreement.coefficients import newest_answer
from webapp.annotation.agreement.person_figures import Share
from webapp.annotation.models import AgreementReport, Answer, Assignment, Participant, Project, Task
from webapp.annotation.people import queries
from webapp.annotation.people import services as people
from webapp.annotation.people.views import PAGE
from webapp.annotation.projects import services as projects
from webapp.annotation.projects import task_services
from webapp.annotation.work import queue
from webapp.core.models import AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def busy(team, make_project):
    """A project with its tasks made, in which Anna and Ravi take part."""

    def _busy(kind="pairwise", **options) -> Project:
        project = make_project(kind=kind, **options)
        task_services.make(project.pk)
        for membership in (team.annotator, team.reviewer):
            people.add_participant(team.researcher, project, membership.user)
        project.refresh_from_db()
        return project

    return _busy


def say(membership, project, task: Task, content: dict, seconds=10.0, days_ago=0.0, gold_right=None) -> Answer:
    """A valid answer in the subject's frame, as the queue would have stored it."""
    at = timezone.now() - timedelta(days=days_ago)
    seat = Assignment.objects.create(
        task=task,
        project=project,
        user=membership.user,
        state="submitted",
        claimed_at=at,
        lease_until=at,
        submitted_at=at,
    )
    return Answer.objects.create(
        assignment=seat, project=project, content=content, seconds=seconds, submitted_at=at, gold_right=gold_right
    )


def prefers(strength, verdict="compared") -> dict:
    return {"verdict": verdict, "strength": strength}


def person_of(project, membership) -> queries.Person:
    refresh.mark_outdated(project.pk)
    refresh.current_report(project)
    return next(person for person in queries.people(project) if person.user == membership.user)


def test_a_preference_agrees_by_its_direction_and_not_by_its_strength(team, busy):
    project = busy()
    one, two, three, four = project.tasks.order_by("id")
    for task, anna, ravi in (
        (one, prefers(3), prefers(1)),
        (two, prefers(-1), prefers(2)),
        (three, prefers(0), prefers(0)),
        (four, prefers(None, "both_bad"), prefers(None, "cannot_assess")),
    ):
        say(team.annotator, project, task, anna)
        say(team.reviewer, project, task, ravi)
    assert person_of(project, team.annotator).total.agreement == Share(2, 4)
    assert person_of(project, team.reviewer).total.agreement == Share(2, 4)


@pytest.mark.parametrize(
    ("kind", "options", "anna", "ravi", "expected"),
    [
        (
            "grading",
            {},
            {"grades": [{"criterion": "c1", "verdict": "met"}, {"criterion": "c2", "verdict": "not_met"}]},
            {"grades": [{"criterion": "c2", "verdict": "met"}, {"criterion": "c1", "verdict": "met"}]},
            Share(1, 2),
        ),
        (
            "rating",
            {"settings": {"scales": [{"name": "Help"}, {"name": "Tone"}]}},
            {"ratings": {"Help": 4, "Tone": None}},
            {"ratings": {"Tone": None, "Help": 5}},
            Share(1, 2),
        ),
        ("ranking", {}, {"tiers": [["r0", "r1"]]}, {"tiers": [["r1", "r0"]]}, Share(1, 1)),
        ("ranking", {}, {"tiers": [["r0"], ["r1"]]}, {"tiers": [["r1"], ["r0"]]}, Share(0, 1)),
        ("rubric", {}, {"rubric": {"criteria": []}}, {"rubric": {"criteria": []}}, Share(0, 0)),
    ],
)
def test_each_kind_is_compared_in_its_own_units(kind, options, anna, ravi, expected, team, busy):
    project = busy(kind, **options)
    task = project.tasks.order_by("id").first()
    say(team.annotator, project, task, anna)
    say(team.reviewer, project, task, ravi)
    assert person_of(project, team.annotator).total.agreement == expected


def test_an_earlier_revision_counts_for_nothing(team, busy):
    project = busy()
    task = project.tasks.first()
    say(team.reviewer, project, task, prefers(1))
    answer = say(team.annotator, project, task, prefers(-1), seconds=1)
    Answer.objects.filter(pk=answer.pk).update(current=False)
    Answer.objects.create(
        assignment=answer.assignment,
        project=project,
        revision=2,
        content=prefers(2),
        seconds=30,
        submitted_at=timezone.now(),
    )
    person = person_of(project, team.annotator)
    assert (person.total.done, person.total.median_seconds, person.total.agreement) == (1, 30, Share(1, 1))


def test_times_that_were_not_measured_are_left_out_and_not_taken_for_fast(team, busy):
    project = busy(settings={"fast_seconds": 5})
    for task, seconds in zip(project.tasks.order_by("id"), (0, 4, 8, 20), strict=True):
        say(team.annotator, project, task, prefers(1), seconds=seconds)
    total = person_of(project, team.annotator).total
    assert (total.done, total.median_seconds, total.fast) == (4, 8, Share(1, 3))
    assert person_of(project, team.reviewer).total.median_seconds is None


def test_skipped_and_open_work_is_counted_apart(team, busy):
    project = busy()
    first, _ = queue.claim(team.annotator, project, hold=2)
    queue.skip(team.annotator, first, "The prompt is cut off")
    person = person_of(project, team.annotator)
    assert (person.total.done, person.skipped, person.open) == (0, 1, 1)


def test_somebody_who_left_keeps_their_work(team, busy):
    project = busy()
    say(team.annotator, project, project.tasks.first(), prefers(1))
    team.annotator.delete()
    person = person_of(project, team.annotator)
    assert (person.total.done, person.role, person.takes_part) == (1, None, True)


def test_drift_has_a_point_per_day_and_of_a_long_project_per_week(team, busy):
    project = busy()
    for task, days in zip(project.tasks.order_by("id"), (9, 8, 8, 1), strict=True):
        say(team.annotator, project, task, prefers(1), seconds=10 * days, days_ago=days)
    points = person_of(project, team.annotator).points
    assert [(point.done, point.median_seconds) for point in points] == [(1, 90), (2, 80), (1, 10)]
    Project.objects.filter(pk=project.pk).update(created_at=timezone.now() - timedelta(days=90))
    project.refresh_from_db()
    weeks = person_of(project, team.annotator).points
    assert all(point.at.weekday() == 0 for point in weeks)
    assert sum(point.done for point in weeks) == 4


class TestWarnings:
    def told(self, points=(), **total) -> list[str]:
        return person_figures.warnings(person_figures.Figures(**total), points)

    def test_one_fast_answer_is_no_pattern(self):
        assert self.told(fast=Share(1, 1)) == []
        assert self.told(fast=Share(2, 5)) == ["40% of the answers came faster than a person can read."]

    def test_gold_is_spoken_of_once_there_is_enough(self):
        assert self.told(gold=Share(1, 4)) == []
        assert self.told(gold=Share(2, 6)) == ["Right on 2 of 6 gold tasks."]
        assert self.told(gold=Share(0, 0)) == []

    def test_growing_haste_and_falling_agreement_are_told(self):
        today = timezone.now().date()

        def point(days, seconds, same):
            at = today - timedelta(days=days)
            return person_figures.FiguresAt(done=30, median_seconds=seconds, agreement=Share(same, 30), at=at)

        assert self.told([point(2, 60.0, 27), point(1, 20.0, 15)], done=60) == [
            "Takes 20 s a task now, and 60 s in the beginning.",
            "Agrees with others in 50% now, in 90% in the beginning.",
        ]
        assert self.told([point(2, 60.0, 27), point(1, 50.0, 26)], done=60) == []


def test_the_lines_of_drift_leave_out_undefined_points_and_are_none_of_a_single_one():
    days = [timezone.now().date() - timedelta(days=days) for days in (3, 2, 1)]
    points = [
        person_figures.FiguresAt(median_seconds=40.0, agreement=Share(3, 4), at=days[0]),
        person_figures.FiguresAt(median_seconds=None, agreement=Share(0, 0), at=days[1]),
        person_figures.FiguresAt(median_seconds=10.0, agreement=Share(0, 2), at=days[2]),
    ]
    assert person_figures.drift(points) == {"seconds": (40.0, 10.0, [100, 25]), "agreement": (0.75, 0.0, [75, 0])}
    assert person_figures.drift(points[:2]) == {}


def test_warnings_and_drift_are_kept_with_the_report(team, busy):
    project = busy(settings={"fast_seconds": 5}, overlap=1)
    task = project.tasks.first()
    for number in range(person_figures.ENOUGH):
        task.pk = None
        task.subject = {"a": "a", "b": str(number)}
        task.save()
        say(team.annotator, project, task, prefers(1), seconds=1 + number, days_ago=number % 2)
    person = person_of(project, team.annotator)
    assert person.warnings == ["80% of the answers came faster than a person can read."]
    assert person.drift["seconds"] == (3.0, 3.0, [100, 100]) and len(person.points) == 2
    assert AgreementReport.objects.get().people[str(person.user.pk)]["warnings"] == person.warnings
    page = page_html(browser(team.researcher).get(f"/projects/{project.pk}/people"))
    assert "80% of the answers" in page and 'points="2.0,2.0 94.0,2.0"' in page


def test_the_warning_about_gold_leads_to_the_gold_tasks_that_the_person_answered(team, busy):
    project = busy(overlap=1)
    first, other = project.tasks.all()[:2]
    for number in range(person_figures.ENOUGH):
        first.pk = None
        first.subject = {"a": "a", "b": str(number)}
        first.gold, first.overlap = prefers(1), None
        first.save()
        say(team.annotator, project, first, prefers(-1), gold_right=False)
    say(team.reviewer, project, other, prefers(1))
    reader = browser(team.researcher)
    refresh.current_report(project)
    page = page_html(reader.get(f"/projects/{project.pk}/people"))
    address = re.search(r'href="([^"]+)">Show the gold tasks', page)
    assert "Right on 0 of 5 gold tasks." in page and address is not None
    answer = reader.get(html.unescape(address[1]))
    assert len(answer.context["rows"]) == person_figures.ENOUGH
    number = answer.context["rater"].number
    assert f"Answered by Annotator {number}" in page_html(answer)
    assert len(reader.get(f"/projects/{project.pk}/tasks?annotator={number}&state=open").context["rows"]) == 0
    assert reader.get(f"/projects/{project.pk}/tasks?annotator=x").context["rater"] is None


class TestPage:
    @pytest.fixture
    def crowd(self, team, busy):
        """A project with five people more than a page holds. The last one has a warning."""
        project = busy()
        users = User.objects.bulk_create(
            User(email=f"p{n}@example.org", name=f"Person {n:03}") for n in range(PAGE + 5)
        )
        Participant.objects.filter(project=project).delete()
        Participant.objects.bulk_create(Participant(project=project, user=user) for user in users)
        refresh.current_report(project)
        packed = person_figures.Figures(done=3).packed()
        kept = {"total": packed, "last_at": timezone.now().isoformat(), "points": [], "drift": {}}
        AgreementReport.objects.update(people={str(users[-1].pk): kept | {"warnings": ["Too <fast>."]}})
        return project

    def rows(self, team, project, query="") -> list[str]:
        self.content = browser(team.researcher).get(f"/projects/{project.pk}/people{query}").content.decode()
        return re.findall(r"Person \d+(?=</span>)", self.content)

    def test_a_page_holds_so_many_and_the_next_the_rest(self, team, crowd):
        first = self.rows(team, crowd)
        assert len(first) == PAGE and f'href="?from={PAGE}"' in self.content
        assert first[:2] == [f"Person {PAGE + 4:03}", "Person 000"] and "Too &lt;fast&gt;." in self.content
        rest = self.rows(team, crowd, f"?from={PAGE}")
        assert len(rest) == 5 and not set(first) & set(rest) and "More people" not in self.content
        assert self.rows(team, crowd, "?from=9000") == [] and "No person matches" in self.content

    def test_people_are_found_by_name_and_address_and_by_being_warned_of(self, team, crowd):
        assert self.rows(team, crowd, "?q=person+001") == ["Person 001"]
        assert self.rows(team, crowd, "?q=P17@") == ["Person 017"]
        assert self.rows(team, crowd, "?show=warned") == [f"Person {PAGE + 4:03}"]
        assert self.rows(team, crowd, "?show=warned&q=001") == [] and "No person matches" in self.content
        assert self.rows(team, crowd, "?q=%00") == []

    def test_a_reviewer_finds_nobody_by_name(self, team, crowd):
        page, reader = f"/projects/{crowd.pk}/people", browser(team.reviewer)
        assert "No person matches" in reader.get(f"{page}?q=Person").content.decode()
        found = page_html(reader.get(f"{page}?q=annotator+17"))
        assert "Annotator 17" in found and "Person 0" not in found and "p16@example.org" not in found

    def test_the_queries_of_the_page_do_not_grow_with_people(self, team, crowd):
        reader = browser(team.researcher)

        def cost() -> int:
            reader.get(f"/projects/{crowd.pk}/people")
            with CaptureQueriesContext(connection) as seen:
                reader.get(f"/projects/{crowd.pk}/people")
            return len(seen)

        many = cost()
        Participant.objects.filter(project=crowd, user__email__gt="p1@").delete()
        assert cost() == many


def test_pausing_returns_open_work_and_stops_new_work(team, busy):
    project = busy()
    (held,) = queue.claim(team.annotator, project, hold=1)
    people.pause_participant(team.researcher, project, team.annotator.user, True)
    held.refresh_from_db()
    assert held.state == "returned"
    assert queue.claim(team.annotator, project, hold=1) == []
    people.pause_participant(team.researcher, project, team.annotator.user, False)
    assert len(queue.claim(team.annotator, project, hold=1)) == 1


def test_the_queries_do_not_grow_with_people_and_answers(team, busy):
    project = busy()

    def cost() -> int:
        refresh.bring_up_to_date(project)
        with CaptureQueriesContext(connection) as seen:
            queries.people(project)
        return len(seen)

    say(team.annotator, project, project.tasks.first(), prefers(1))
    few = cost()
    for number in range(6):
        user = User.objects.create_user(f"more{number}@example.org")
        membership = Membership.objects.create(user=user, workspace=team.workspace, role=Role.ANNOTATOR)
        people.add_participant(team.researcher, project, user)
        for task in project.tasks.all():
            say(membership, project, task, prefers(number % 3 - 1))
    assert cost() == few


def test_another_projects_answers_stay_out(team, busy):
    project = busy()
    other = projects.create(
        team.researcher, name="Other", kind="pairwise", dataset=make_version(team.owner, name="other")
    )
    task_services.make(other.pk)
    say(team.annotator, other, other.tasks.first(), prefers(1))
    assert person_of(project, team.annotator).total.done == 0


def test_medians_of_days_and_of_everything_and_the_last_answer(team, busy):
    project = busy()
    times = [(3, 12.3), (3, 20.7), (1, 5.0), (0, 0)]
    for task, (days_ago, seconds) in zip(project.tasks.order_by("id"), times, strict=True):
        last = say(team.annotator, project, task, prefers(1), seconds=seconds, days_ago=days_ago)
    person = person_of(project, team.annotator)
    assert [(point.done, point.median_seconds) for point in person.points] == [(2, 16.5), (1, 5.0), (1, None)]
    assert (person.total.done, person.total.median_seconds, person.last_at) == (4, 12.3, last.submitted_at)


def test_a_page_reads_what_was_measured_and_a_job_counts_newer_answers(team, busy, monkeypatch):
    project = busy()
    one, two = project.tasks.order_by("id")[:2]
    say(team.annotator, project, one, prefers(1))
    assert person_of(project, team.annotator).total.done == 1
    queued = []
    monkeypatch.setattr(refresh, "AT_ONCE", 0)
    monkeypatch.setattr(refresh, "enqueue", lambda *call: queued.append(call))
    say(team.annotator, project, two, prefers(1))
    page = page_html(browser(team.researcher).get(f"/projects/{project.pk}/people"))
    assert "Computing with newer answers" in page and queued == [("workers.review.measure", project.pk)]
    [told] = [row for row in people_over_api(team, project) if row["user"] == team.annotator.user.pk]
    assert told["total"]["done"] == 1
    refresh.bring_up_to_date(project)
    assert "Computing" not in page_html(browser(team.researcher).get(f"/projects/{project.pk}/people"))
    assert [row["total"]["done"] for row in people_over_api(team, project)] == [2, 0]


def people_over_api(team, project) -> list[dict]:
    return browser(team.researcher).get(f"/api/v1/projects/{project.pk}/people").json()["items"]


def test_what_is_fast_and_which_task_is_gold_may_change_after_the_answers(team, busy):
    project = busy(settings={"fast_seconds": 5})
    task = project.tasks.first()
    content = prefers(1) | {"dimensions": {}, "reasons": []}
    say(team.annotator, project, task, content, seconds=8)
    assert person_of(project, team.annotator).total.fast == Share(0, 1)
    projects.update(team.researcher, project, settings={"fast_seconds": 10})
    task_services.set_gold(team.researcher, task, content)
    refresh.current_report(project)
    [person] = [row for row in queries.people(project) if row.user == team.annotator.user]
    assert (person.total.fast, person.total.gold) == (Share(1, 1), Share(1, 1))


def test_the_newest_answer_is_a_projects_own(team, busy):
    project = busy()
    assert newest_answer(project) == 0
    mine = say(team.annotator, project, project.tasks.first(), prefers(1))
    other = projects.create(
        team.researcher, name="Other", kind="pairwise", dataset=make_version(team.owner, name="other")
    )
    task_services.make(other.pk)
    assert newest_answer(other) == 0
    theirs = say(team.annotator, other, other.tasks.first(), prefers(1))
    assert (newest_answer(project), newest_answer(other)) == (mine.pk, theirs.pk)


def test_several_members_are_added_at_once_or_none(team, make_project):
    project = make_project()
    page, client = f"/projects/{project.pk}/people", browser(team.researcher)
    before = set(Participant.objects.filter(project=project).values_list("user", flat=True))
    chosen = [each for each in (team.owner, team.researcher, team.reviewer) if each.user_id not in before]
    users = [each.user_id for each in chosen]
    assert len(users) > 1 and all(f'name="user" value="{each}"' in client.get(page).content.decode() for each in users)
    client.post(f"{page}/add", {"user": [*users, team.outsider.user_id]})
    assert set(Participant.objects.filter(project=project).values_list("user", flat=True)) == before
    said = client.post(f"{page}/add", {"user": users}, follow=True).content.decode()
    assert set(Participant.objects.filter(project=project).values_list("user", flat=True)) == before | set(users)
    assert ", ".join(str(each.user) for each in chosen) + " take part." in said
    assert "Choose the members to add." in client.post(f"{page}/add", {}, follow=True).content.decode()


def test_many_members_are_added_with_as_many_queries_as_a_few(team, make_project):
    project = make_project()
    page, client = f"/projects/{project.pk}/people", browser(team.researcher)
    users = User.objects.bulk_create([User(email=f"a{number:03}@many.example") for number in range(36)])
    space = team.owner.workspace
    Membership.objects.bulk_create([Membership(workspace=space, user=each, role=Role.ANNOTATOR) for each in users])
    counts = []
    for some in (users[:6], users[6:]):
        with CaptureQueriesContext(connection) as seen:
            client.post(f"{page}/add", {"user": [each.pk for each in some]})
        counts.append(len(seen))
    assert counts[0] == counts[1]
    assert "30 people take part." in client.get(page).content.decode()
    told = AuditEntry.objects.filter(action="project.participant_added", object_id=project.pk)
    assert {entry.detail["user"] for entry in told} >= {each.pk for each in users}
    before = told.count()
    client.post(f"{page}/add", {"user": [each.pk for each in users]})
    assert told.count() == before, "who takes part is not added again"


@pytest.mark.django_db(transaction=True)
def test_nobody_is_added_twice_by_two_at_once(team, make_project):
    project = make_project()
    Participant.objects.filter(project=project).delete()
    add = partial(people.add_participants, team.researcher, project, [team.annotator.user, team.reviewer.user])
    concurrently([add] * 4)
    assert Participant.objects.filter(project=project).count() == 2
    assert AuditEntry.objects.filter(action="project.participant_added", object_id=project.pk).count() == 2


def test_people_whose_accounts_are_closed_are_not_offered(team, make_project):
    project = make_project()
    Participant.objects.filter(project=project).delete()
    before = queries.annotators_to_add(project)
    User.objects.filter(pk=team.annotator.user_id).update(is_active=False)
    assert queries.annotators_to_add(project) == before - 1
    assert team.annotator not in queries.candidates(project)


def test_a_choice_with_a_person_who_was_removed_meanwhile_names_them_and_stays_ticked(team, make_project):
    project = make_project()
    page, client = f"/projects/{project.pk}/people", browser(team.researcher)
    gone = str(team.reviewer.user)
    remove_member(team.owner, team.reviewer)
    users = [team.annotator.user_id, team.reviewer.user_id, team.outsider.user_id]
    Participant.objects.filter(project=project).delete()
    said = client.post(f"{page}/add", {"user": users}, follow=True).content.decode()
    assert f"Nobody was added: {gone}, 1 other person are not in this workspace." in said
    assert str(team.outsider.user) not in said  # nobody learns who has which number elsewhere
    ticked = f'name="user" value="{team.annotator.user_id}" checked'
    assert ticked in said and said.count(" checked") == 1 and not Participant.objects.filter(project=project).exists()
    assert ticked not in client.get(page).content.decode()


def test_the_annotators_to_add_are_counted_beyond_those_that_a_form_lists(team, make_project):
    project = make_project()
    before = queries.annotators_to_add(project)
    users = User.objects.bulk_create([User(email=f"a{number:03}@many.example") for number in range(501)])
    space = team.owner.workspace
    Membership.objects.bulk_create([Membership(workspace=space, user=each, role=Role.ANNOTATOR) for each in users])
    assert queries.annotators_to_add(project) == before + 501
