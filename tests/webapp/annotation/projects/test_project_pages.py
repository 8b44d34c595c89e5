"""The manager's pages and the annotator's start page."""

from datetime import timedelta

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.team import browser
from tests.webapp.annotation.conftest import make_version
from webapp.accounts.models import Membership, User
from webapp.annotation import queries
from webapp.annotation.models import (
    AgreementReport,
    Answer,
    Assignment,
    Comment,
    Guidelines,
    Participant,
    Project,
    Task,
)
from webapp.annotation.people import services as people
from webapp.annotation.projects import gold_services, size_estimate, task_services
from webapp.annotation.projects import services as projects
from webapp.annotation.templatetags.annotation import bars
from webapp.annotation.work import inbox, queue
from webapp.datasets.models import Example

pytestmark = pytest.mark.django_db


@pytest.fixture
def form(version) -> dict:
    """The fields that a browser sends if the form is not changed, with a name."""
    return {
        "name": "Which is better?",
        "kind": "pairwise",
        "dataset": version.pk,
        "overlap": "2",
        "strategy": "order",
        "guidelines": "Be fair.",
        "reasons": "required",
        "dimensions": "Truth\n\n Style ",
        "ranking": "order",
        "suggestions": "never",
        "stress_test": "on",
        "lease_minutes": "30",
        "gold_every": "0",
        "fast_seconds": "2.5",
        "reopen": "10",
    }


@pytest.fixture
def project(make_project) -> Project:
    row = make_project(guidelines="Be fair.")
    task_services.make(row.pk)
    row.refresh_from_db()
    return row


def answer(membership, project, strength=1) -> Assignment:
    (seat,) = queue.claim(membership, project, hold=1)
    queue.submit(membership, seat, {"verdict": "compared", "strength": strength}, None, 9)
    return seat


class TestTheForm:
    def test_opens_a_project_as_it_was_filled_in(self, as_researcher, form):
        response = as_researcher.post("/projects/new", {**form, "then": "open"})
        project = Project.objects.get()
        assert response.headers["Location"] == f"/projects/{project.pk}"
        assert (project.state, project.overlap) == ("open", 2)
        wanted = {"reasons": "required", "dimensions": ["Truth", "Style"], "fast_seconds": 2.5, "gold_feedback": False}
        assert {name: project.settings[name] for name in wanted} == wanted
        assert project.guidelines.get().text == "Be fair."

    def test_keeps_a_draft(self, as_researcher, form):
        as_researcher.post("/projects/new", {**form, "then": "draft"})
        assert Project.objects.get().state == "draft"

    def test_shows_each_error_at_its_field_and_keeps_what_was_typed(self, as_researcher, form):
        wrong = {**form, "name": "", "overlap": "many", "lease_minutes": "soon", "guidelines": "## Keep me"}
        response = as_researcher.post("/projects/new", wrong)
        assert response.status_code == 422 and not Project.objects.exists()
        text = response.content.decode()
        assert 'id="e-overlap"' in text and 'value="many"' in text and "## Keep me" in text
        response = as_researcher.post("/projects/new", {**wrong, "overlap": "2"})
        assert {"name", "settings.lease_minutes"} == set(response.context["form"].problems)
        assert 'value="soon"' in response.content.decode()

    def test_takes_scales_by_row_and_points_at_the_wrong_one(self, as_researcher, form):
        rows = {
            "scale-name": ["Help", "Tone"],
            "scale-low": ["1", "5"],
            "scale-high": ["5", "1"],
            "scale-labels": ["1 = no, 5 = yes", ""],
            "scale-help": ["", ""],
        }
        rating = {**form, "kind": "rating", **rows}
        response = as_researcher.post("/projects/new", rating)
        assert set(response.context["form"].problems) == {"settings.scales.1"}
        as_researcher.post("/projects/new", {**rating, "scale-high": ["5", "9"]})
        scales = Project.objects.get().settings["scales"]
        assert [(s["name"], s["low"], s["high"], s["labels"]) for s in scales] == [
            ("Help", 1, 5, {"1": "no", "5": "yes"}),
            ("Tone", 5, 9, {}),
        ]

    def test_fills_itself_in_from_another_project(self, as_researcher, make_project):
        like = make_project(overlap=3, settings={"reasons": "none"}, guidelines="As before.")
        values = as_researcher.get(f"/projects/new?from={like.pk}").context["form"].values
        assert (values["overlap"], values["reasons"], values["guidelines"]) == ("3", "none", "As before.")

    def test_takes_no_dataset_of_another_workspace(self, team, as_researcher, form):
        foreign = make_version(team.outsider, name="foreign")
        response = as_researcher.post("/projects/new", {**form, "dataset": foreign.pk})
        assert response.context["form"].problems == {"dataset": "choose a dataset"}

    def test_tells_how_many_tasks_it_would_make(self, as_researcher, form, version):
        shown = as_researcher.post("/projects/size", form).content.decode()
        assert ">4<" in shown and ">8<" in shown
        rating = as_researcher.post("/projects/size", {**form, "kind": "rating", "overlap": "1"}).content.decode()
        assert ">8<" in rating

    def test_previews_markdown_safely(self, as_researcher):
        text = {"guidelines": "**Be** <script>alert(1)</script>"}
        shown = as_researcher.post("/projects/preview", text).content.decode()
        assert "<strong>Be</strong>" in shown and "<script>" not in shown

    def test_without_a_dataset_leads_to_the_import(self, as_researcher):
        assert "/datasets/import" in as_researcher.get("/projects/new").content.decode()


def test_the_size_of_a_large_version_is_estimated_from_a_sample(team, monkeypatch):
    monkeypatch.setattr(size_estimate, "SAMPLED", 5)
    version = make_version(team.owner, examples=20, responses=3, preferences=False)
    assert size_estimate.estimate_size(version, "pairwise", 2) == size_estimate.Size(40, 80, 20, exact=False)
    assert size_estimate.estimate_size(version, "ranking", 1) == size_estimate.Size(20, 20, 20, exact=False)


class TestProgress:
    def test_counts_tasks_and_seats_but_no_gold(self, team, project):
        task_services.set_gold(team.researcher, project.tasks.last(), {"verdict": "compared", "strength": 1})
        answer(team.reviewer, project)
        answer(team.owner, project)
        answer(team.owner, project)
        found = queries.progress(project)
        assert found == queries.Progress(tasks=3, complete=1, in_work=1, seats=6, seats_done=3, gold=1)
        assert (found.untouched, found.fraction) == (1, 0.5)

    def test_of_a_project_without_tasks_has_no_fraction(self, make_project):
        assert queries.progress(make_project(name="Empty")).fraction is None

    def test_the_pace_of_the_last_week_tells_the_end(self, team, project):
        for days in (3, 2, 1):
            seat = answer(team.reviewer, project)
            at = timezone.now() - timedelta(days=days)
            Assignment.objects.filter(pk=seat.pk).update(submitted_at=at)
        pace = queries.pace(project, queries.progress(project))
        assert pace.per_day == pytest.approx(1, rel=0.01)  # three answers in three days; five seats are left
        assert (pace.finish - timezone.now()).total_seconds() == pytest.approx(5 * 86_400, rel=0.01)

    @pytest.mark.parametrize(("hours", "known"), [(0.3, False), (23.9, False), (24.1, True)])
    def test_answers_of_less_than_a_day_are_counted_but_are_no_pace(self, hours, known, team, project, as_researcher):
        for _ in range(2):
            seat = answer(team.reviewer, project)
            Assignment.objects.filter(pk=seat.pk).update(submitted_at=timezone.now() - timedelta(hours=hours))
        pace = queries.pace(project, queries.progress(project))
        page = " ".join(as_researcher.get(f"/projects/{project.pk}").content.decode().split())
        if known:
            assert pace.per_day == pytest.approx(2, rel=0.01) and "answers per day in the last week" in page
        else:
            assert (pace.per_day, pace.finish, pace.reason) == (None, None, "known after a day of answers")
            assert "2 answers in the last week; known after a day of answers" in page

    @pytest.mark.parametrize("state", ["paused", "closed"])
    def test_no_end_is_promised_while_nobody_may_work(self, state, team, project):
        seat = answer(team.reviewer, project)
        Assignment.objects.filter(pk=seat.pk).update(submitted_at=timezone.now() - timedelta(days=2))
        Project.objects.filter(pk=project.pk).update(state=state)
        project.refresh_from_db()
        assert queries.pace(project, queries.progress(project)).finish is None

    def test_without_answers_the_reason_is_told(self, project):
        pace = queries.pace(project, queries.progress(project))
        assert (pace.per_day, pace.finish, pace.reason) == (None, None, "nobody has answered in the last week")

    def test_throughput_fills_the_hours_and_days_without_answers(self, team, project):
        now = timezone.now()
        for hours in (1, 3, 3):
            seat = answer(team.reviewer, project)
            Assignment.objects.filter(pk=seat.pk).update(submitted_at=now - timedelta(hours=hours))
        Project.objects.filter(pk=project.pk).update(created_at=now - timedelta(hours=5))
        project.refresh_from_db()
        by_hour = queries.throughput(project)
        assert [point["count"] for point in by_hour] == [0, 0, 2, 0, 1, 0]
        drawn = bars(by_hour, "answers")
        assert (
            ": 1 answer<" in drawn and ": 2 answers<" in drawn and "3 answers over 6 hours, at most 2 in one" in drawn
        )
        Project.objects.filter(pk=project.pk).update(created_at=now - timedelta(days=10))
        project.refresh_from_db()
        by_day = queries.throughput(project)
        assert (len(by_day), sum(point["count"] for point in by_day)) == (11, 3)


def test_the_list_costs_the_same_however_long_it_is(team, as_researcher, make_project, version):
    def cost() -> int:
        with CaptureQueriesContext(connection) as seen:
            assert as_researcher.get("/projects").status_code == 200
        return len(seen)

    task_services.make(make_project().pk)
    few = cost()
    for number in range(6):
        task_services.make(make_project(name=f"More {number}").pk)
    assert cost() == few


def test_a_card_shows_the_agreement_once_it_is_known_and_never_an_invented_one(as_researcher, project):
    assert "α" not in as_researcher.get("/projects").content.decode()
    undefined = {"fields": [{"alpha": {"undefined": "no unit has two ratings"}}]}
    report = AgreementReport.objects.create(project=project, body=undefined)
    assert "α" not in as_researcher.get("/projects").content.decode()
    report.body = {"fields": [{"alpha": {"value": 0.614, "n": 9, "low": 0.2, "high": 0.9}}]}
    report.save()
    assert "α 0.61" in as_researcher.get("/projects").content.decode()


def test_the_table_of_tasks_costs_the_same_however_full_it_is(team, as_researcher, project):
    address = f"/projects/{project.pk}/tasks"

    def cost() -> int:
        with CaptureQueriesContext(connection) as seen:
            as_researcher.get(address)
        return len(seen)

    few = cost()
    for membership in (team.reviewer, team.owner):
        answer(membership, project)
    seat = Assignment.objects.first()
    Comment.objects.create(task=seat.task, project=project, text="Odd.", author=team.reviewer.user)
    assert cost() == few


@pytest.mark.parametrize(
    ("state", "expected"),
    [("", 4), ("open", 2), ("in_work", 1), ("complete", 0), ("gold", 1), ("skipped", 1), ("flagged", 1)],
)
def test_tasks_are_found_by_their_state(state, expected, team, as_researcher, project):
    task_services.set_gold(team.researcher, project.tasks.last(), {"verdict": "compared", "strength": 1})
    seat = answer(team.reviewer, project)
    queue.flag(team.reviewer, seat, "guidelines", "What if both are rude?")
    (other,) = queue.claim(team.reviewer, project, hold=1)
    queue.skip(team.reviewer, other, "Cut off")
    page = as_researcher.get(f"/projects/{project.pk}/tasks", {"state": state})
    assert len(page.context["rows"]) == expected
    shown = {each["name"]: each["count"] for each in page.context["filters"]}
    assert shown[state] == expected


def test_tasks_are_found_by_words(as_researcher, project):
    page = as_researcher.get(f"/projects/{project.pk}/tasks", {"q": "fruit 3"})
    assert [task.example.key for task in page.context["rows"]] == ["pairs-3"]


def test_a_prompt_with_a_formula_is_read_in_the_list(as_researcher, project):
    row = project.tasks.first().example
    Example.objects.filter(pk=row.pk).update(excerpt=r"Is $x^2$ *even*? And $\frac{x^2")
    page = as_researcher.get(f"/projects/{project.pk}/tasks").content.decode()
    assert ">x^2</span></span> <em>even</em>? And…" in page and "frac" not in page


def test_a_task_shows_its_answers_side_by_side_with_what_its_authors_saw(team, as_researcher, project):
    seat = answer(team.reviewer, project, strength=3)
    answer(team.owner, project, strength=-1)
    text = as_researcher.get(f"/projects/{project.pk}/tasks/{seat.task_id}").content.decode()
    assert text.count("guidelines v1") == 2
    assert "is much better" in text and "is slightly better" in text
    assert "Annotator 1" in text and "Annotator 2" in text and "Ravi" not in text
    named = as_researcher.get(f"/projects/{project.pk}/tasks/{seat.task_id}?names=1").content.decode()
    assert "Ravi" in named and "Ada" in named


@pytest.mark.parametrize(
    ("kind", "options", "content", "shown"),
    [
        ("grading", {}, {"grades": [{"criterion": "c1", "verdict": "met"}]}, "Names a colour"),
        ("ranking", {}, {"tiers": [["A"], ["B"]]}, "tiers"),
        ("rating", {"settings": {"scales": [{"name": "Help"}]}}, {"ratings": {"Help": 4}}, "Help"),
        ("rubric", {}, {"rubric": {"criteria": [{"id": "c", "text": "Is kind", "points": 2}]}}, "Is kind"),
        ("rationale", {}, {"source": "A is right", "reasons": [{"text": "It is right"}]}, "It is right"),
    ],
)
def test_answers_of_every_kind_can_be_read(kind, options, content, shown, team, as_researcher, make_project):
    project = make_project(kind=kind, **options)
    task_services.make(project.pk)
    (seat,) = queue.claim(team.reviewer, project, hold=1)
    queue.submit(team.reviewer, seat, content, None, 5)
    assert shown in as_researcher.get(f"/projects/{project.pk}/tasks/{seat.task_id}").content.decode()


def test_a_reason_is_read_with_the_passage_it_is_tied_to(team, as_researcher, project):
    (seat,) = queue.claim(team.reviewer, project, hold=1)
    tied = {"text": "It says so", "response": "A", "start": 2, "end": 9}
    queue.submit(team.reviewer, seat, {"strength": 1, "reasons": [tied]}, None, 5)
    side = Answer.objects.get().content["reasons"][0]["response"]
    [text] = [each["text"] for each in seat.task.example.content["responses"] if each["id"] == side]
    page = as_researcher.get(f"/projects/{project.pk}/tasks/{seat.task_id}").content.decode()
    assert f'<q class="soft" dir="auto">{text[2:9]}</q>' in page


def test_an_answer_is_taken_as_the_known_one_and_let_go_again(team, as_researcher, project):
    seat = answer(team.reviewer, project)
    address = f"/projects/{project.pk}/tasks/{seat.task_id}/gold"
    as_researcher.post(address, {"source": str(seat.answers.get().pk)})
    assert Task.objects.get(pk=seat.task_id).gold["verdict"] == "compared"
    assert "right" in as_researcher.get(f"/projects/{project.pk}/gold").content.decode()
    as_researcher.post(address, {"source": "none", "back": "gold"})
    assert Task.objects.get(pk=seat.task_id).gold is None


def test_an_answer_to_another_task_is_no_known_one(team, as_researcher, project):
    seat = answer(team.reviewer, project)
    other = project.tasks.exclude(pk=seat.task_id).first()
    as_researcher.post(f"/projects/{project.pk}/tasks/{other.pk}/gold", {"source": str(seat.answers.get().pk)})
    other.refresh_from_db()
    assert other.gold is None


def test_guidelines_keep_their_history_with_what_changed(team, as_researcher, project):
    as_researcher.post(f"/projects/{project.pk}/guidelines", {"guidelines": "Be fair.\nBe quick."})
    assert Guidelines.objects.count() == 2
    newest, first = as_researcher.get(f"/projects/{project.pk}/guidelines").context["history"]
    assert [(line.kind, line.text) for line in newest.lines] == [("same", "Be fair."), ("added", "Be quick.")]
    assert first.lines == []


def test_guidelines_that_somebody_changed_meanwhile_are_not_replaced_silently(team, as_researcher, as_owner, project):
    address = f"/projects/{project.pk}/guidelines"
    assert 'name="base" value="1"' in as_researcher.get(f"{address}?edit").content.decode()
    as_owner.post(address, {"guidelines": "Be fair.\nBe quick.", "base": "1"})
    late = {"guidelines": "Be fair.\nBe slow.", "base": "1"}
    refused = as_researcher.post(address, late)
    page = refused.content.decode()
    assert refused.status_code == 409 and "Ada saved version 2 in the meantime." in page
    assert "Be slow." in page and "Be quick." in page and 'name="base" value="2"' in page
    assert project.guidelines.count() == 2
    long = as_researcher.post(address, late | {"guidelines": "x" * 100_001}).content.decode()
    assert 'name="base" value="1"' in long, "the person has not seen the other version"
    as_researcher.post(address, late | {"base": "2"})  # the person has seen the other version
    assert queries.guidelines(project)[0].text == "Be fair.\nBe slow."


def test_a_number_that_was_cleared_is_asked_for_and_not_kept_silently(as_researcher, make_project, form):
    project = make_project(settings={"gold_every": 7})
    address = f"/projects/{project.pk}/settings"
    response = as_researcher.post(address, {**form, "gold_every": " ", "overlap": "many"})
    assert set(response.context["form"].problems) == {"overlap", "settings.gold_every"}
    assert as_researcher.post(address, {**form, "gold_every": "0"}).status_code == 302
    project.refresh_from_db()
    assert project.settings["gold_every"] == 0


def test_settings_that_somebody_changed_meanwhile_are_not_replaced_silently(team, as_researcher, project, form):
    address = f"/projects/{project.pk}/settings"
    base = as_researcher.get(address).context["form"].values["base"]
    projects.update(team.owner, project, settings={"reopen": 3})
    late = {**form, "name": "Late", "base": base}
    refused = as_researcher.post(address, late)
    assert refused.status_code == 409
    assert "Somebody else has changed these settings in the meantime." in refused.content.decode()
    project.refresh_from_db()
    assert (project.name, project.settings["reopen"]) == ("Colours", 3)
    again = refused.context["form"].values["base"]  # the person knows of the other change now
    assert as_researcher.post(address, late | {"base": again}).status_code == 302
    project.refresh_from_db()
    assert (project.name, project.settings["reopen"]) == ("Late", 10)


def test_labels_of_a_scale_may_hold_commas(as_researcher, make_project, form):
    labels = {"-1": "no, not at all", "1": "yes, 1st class"}
    project = make_project("rating", settings={"scales": [{"name": "Help", "low": -1, "high": 1, "labels": labels}]})
    address = f"/projects/{project.pk}/settings"
    shown = as_researcher.get(address).context["form"].values["scales"][0]
    rows = {f"scale-{part}": [shown[part]] for part in ("name", "low", "high", "labels", "help")}
    assert as_researcher.post(address, {**form, "kind": "rating", **rows, "name": "Renamed"}).status_code == 302
    project.refresh_from_db()
    assert (project.name, project.settings["scales"][0]["labels"]) == ("Renamed", labels)


def test_settings_are_saved_with_keys_and_refused_at_their_field(as_researcher, project, form):
    address = f"/projects/{project.pk}/settings"
    keys = {"key-action": ["skip", "flag"], "key": ["x", ""]}
    as_researcher.post(address, {**form, **keys, "name": "Shades"})
    project.refresh_from_db()
    assert (project.name, project.settings["keys"], project.settings["reasons"]) == (
        "Shades",
        {"skip": "x"},
        "required",
    )
    response = as_researcher.post(address, {**form, "key-action": ["skip", "flag"], "key": ["x", "x"]})
    assert response.status_code == 422
    assert "settings.keys.skip" in response.context["form"].problems


class TestJoining:
    def link(self, team, project, **options) -> str:
        return f"/join/{people.invite(team.researcher, project, **options)[1]}"

    def test_a_newcomer_makes_an_account_and_finds_the_project(self, team, project):
        client, link = Client(), self.link(team, project)
        assert project.name in client.get(link).content.decode()
        person = {"name": "Nora", "email": "nora@example.com", "password": "twelve letters"}
        assert client.post(link, person).headers["Location"] == "/"
        assert project.name in client.get("/").content.decode()
        assert Membership.objects.get(user__email="nora@example.com").role == "annotator"
        assert client.get(f"/projects/{project.pk}").status_code == 403

    def test_looking_at_the_link_uses_nothing_up(self, team, project):
        link = self.link(team, project)
        for _ in range(3):
            assert Client().get(link).status_code == 200

    def test_a_weak_password_and_a_known_address_are_told_at_their_fields(self, team, project):
        link, nora = self.link(team, project), {"name": "Nora", "email": "nora@example.com"}
        weak = Client().post(link, {**nora, "password": "short"})
        assert weak.status_code == 422 and "password" in weak.context["form"].errors
        known = Client().post(link, {**nora, "email": "anna@example.org", "password": "twelve letters"})
        assert known.status_code == 422 and "email" in known.context["form"].errors
        assert not User.objects.filter(email="nora@example.com").exists()

    def test_somebody_signed_in_joins_by_one_press(self, team, project, as_annotator):
        link = self.link(team, project)
        assert "Join as Anna" in as_annotator.get(link).content.decode()
        assert as_annotator.post(link).headers["Location"] == "/"
        assert Participant.objects.get().user == team.annotator.user

    def test_people_of_other_workspaces_come_in_and_stay_who_they_are(self, team, project, as_outsider):
        as_outsider.post(self.link(team, project))
        roles = dict(Membership.objects.filter(user=team.outsider.user).values_list("workspace__name", "role"))
        assert roles == {"Elsewhere": "owner", "Lab": "annotator"}

    def test_a_spent_link_says_so_but_lets_those_through_who_came_by_it(self, team, project, as_annotator):
        link = self.link(team, project)
        as_annotator.post(link)
        assert Client().get(link).status_code == 410
        assert as_annotator.get(link).headers["Location"] == "/"


class TestTheStartPage:
    def test_shows_what_waits_and_what_was_sent(self, team, project, as_annotator):
        people.add_participant(team.researcher, project, team.annotator.user)
        assert "Begin" in as_annotator.get("/").content.decode()
        seat = answer(team.annotator, project)
        page = as_annotator.get("/")
        (waiting,) = page.context["waiting"]
        assert (waiting.done, waiting.free, waiting.held, waiting.waits) == (1, 3, 0, True)
        assert "Continue" in page.content.decode() and seat.task.example.excerpt in page.content.decode()

    def test_counts_one_task_and_several_in_words(self, team, project, as_annotator):
        people.add_participant(team.researcher, project, team.annotator.user)
        page = " ".join(as_annotator.get("/").content.decode().split())
        assert "4 tasks wait " in page and ">Pairwise preference<" in page
        for _ in range(3):
            answer(team.annotator, project)
        assert "1 task waits " in " ".join(as_annotator.get("/").content.decode().split())

    @pytest.mark.parametrize(("state", "words"), [("paused", "Paused"), ("closed", "Closed")])
    def test_a_project_at_rest_says_so(self, state, words, team, project, as_annotator):
        people.add_participant(team.researcher, project, team.annotator.user)
        projects.set_state(team.researcher, project, state)
        page = as_annotator.get("/")
        assert words in page.content.decode() and f"/projects/{project.pk}/work" not in page.content.decode()

    def test_a_draft_is_not_shown(self, team, make_project, as_annotator):
        draft = make_project(name="Not yet", open=False)
        people.add_participant(team.researcher, draft, team.annotator.user)
        assert "Not yet" not in as_annotator.get("/").content.decode()

    def test_work_that_was_sent_back_is_pointed_at(self, team, project, as_annotator):
        people.add_participant(team.researcher, project, team.annotator.user)
        (seat,) = queue.claim(team.annotator, project, hold=1)
        Assignment.objects.filter(pk=seat.pk).update(sent_back="Look at B again.")
        assert "1 was sent back to you" in as_annotator.get("/").content.decode()

    def test_an_answer_that_was_sent_back_is_done_and_does_not_wait_too(self, team, project, as_annotator):
        people.add_participant(team.researcher, project, team.annotator.user)
        seat = answer(team.annotator, project)
        queue.claim(team.annotator, project, hold=1)
        queue.send_back(Assignment.objects.get(pk=seat.pk), "Look at B again.")
        page = as_annotator.get("/")
        (home,) = page.context["waiting"]
        assert (home.done, home.waiting, home.held, home.sent_back) == (1, 3, 2, 1)
        assert "3 tasks wait " in " ".join(page.content.decode().split())
        turn = queue.serve(team.annotator, project.pk, 2)
        assert [item.pk == seat.pk for item in turn.items] == [True, False]
        assert (turn.done, turn.left) == (1, 2), "with the task that is begun, three are left, as on Home"
        for _ in range(4):
            answer(team.annotator, project)
        assert "Nothing left for you" in as_annotator.get("/").content.decode()
        queue.send_back(Assignment.objects.get(pk=seat.pk), "And again.")
        page = " ".join(as_annotator.get("/").content.decode().split())
        assert "Continue" in page and "1 answer to check again" in page and "tasks wait" not in page

    def test_a_researcher_whose_last_answer_was_sent_back_is_told_of_it(self, team, project, as_researcher):
        people.add_participant(team.researcher, project, team.researcher.user)
        for _ in range(4):
            seat = answer(team.researcher, project)
        queue.send_back(Assignment.objects.get(pk=seat.pk), "Look at B again.")
        assert as_researcher.get("/").context["steps"][0].text.startswith("1 answer of yours to check again. ")

    def test_costs_the_same_however_many_projects_there_are(self, team, make_project, as_annotator):
        def cost() -> int:
            with CaptureQueriesContext(connection) as seen:
                as_annotator.get("/")
            return len(seen)

        def one_more(name):
            row = make_project(name=name)
            task_services.make(row.pk)
            people.add_participant(team.researcher, row, team.annotator.user)

        one_more("First")
        few = cost()
        for number in range(4):
            one_more(f"More {number}")
        assert cost() == few

    def test_leads_a_researcher_who_takes_part_to_the_task_first(self, team, project, as_researcher):
        people.add_participant(team.researcher, project, team.researcher.user)
        first = as_researcher.get("/").context["steps"][0]
        assert (first.title, first.href) == ("Annotate: Colours", f"/projects/{project.pk}/work")

    def test_counts_tasks_as_the_projects_page_does_and_gold_ones_apart(self, team, make_project, as_researcher):
        project = make_project(settings={"gold_every": 2})
        task_services.make(project.pk)
        gold_services.mark(team.researcher, project, "labels", 1)
        people.add_participant(team.researcher, project, team.researcher.user)
        page = as_researcher.get(f"/projects/{project.pk}").context["progress"]
        assert (page.tasks, page.gold) == (3, 1)
        assert as_researcher.get("/").context["steps"][0].text.startswith("3 tasks and 1 gold task wait for you.")
        first = queue.claim(team.researcher, project, hold=2)
        assert any(seat.task.overlap is None for seat in first)
        assert as_researcher.get("/").context["steps"][0].text.startswith("3 tasks and 1 gold task wait for you.")
        (waiting,) = inbox.projects_with_work(team.researcher)
        assert (waiting.free, waiting.held, waiting.gold) == (2, 2, 1)

    def test_a_seat_that_one_gave_back_waits_again(self, team, project):
        people.add_participant(team.researcher, project, team.annotator.user)
        queue.claim(team.annotator, project, hold=1)
        before = inbox.projects_with_work(team.annotator)[0]
        queue.release(team.annotator.user, project)
        after = inbox.projects_with_work(team.annotator)[0]
        assert (after.free, after.held) == (before.free + 1, 0) and before.held == 1

    def test_proposes_a_project_where_there_is_data_and_none(self, as_researcher, version):
        assert "Ask people about a dataset" in [step.title for step in as_researcher.get("/").context["steps"]]


def test_the_overview_waits_for_the_tasks_and_then_loads_itself_again(as_researcher, project):
    def asked(known: str = "") -> HttpResponse:
        return as_researcher.get(address + known, headers={"HX-Request": "true"})

    address, words = f"/projects/{project.pk}", "The tasks are being made"
    Task.objects.all().delete()
    Project.objects.update(tasks_made=False)
    for page in (address, f"{address}/tasks"):
        html = as_researcher.get(page).content.decode()
        assert words in html and f'hx-get="{address}"' in html
    assert (asked().status_code, asked().headers.get("HX-Refresh")) == (204, None)
    Project.objects.update(tasks_problem="IndexError: list index out of range")
    assert asked().headers.get("HX-Refresh") == "true"
    assert asked("?failed").headers.get("HX-Refresh") is None
    assert f'hx-get="{address}?failed"' in as_researcher.get(address).content.decode()
    Project.objects.update(tasks_problem="", tasks_made=True)
    assert (asked().status_code, asked().headers.get("HX-Refresh")) == (204, "true")
    assert words not in as_researcher.get(address).content.decode()


def test_the_overview_warns_of_what_keeps_tasks_from_being_complete(team, as_researcher, project):
    def titles() -> list[str]:
        return [each.title for each in as_researcher.get(f"/projects/{project.pk}").context["warnings"]]

    assert titles() == ["Nobody works here yet"]
    people.add_participant(team.researcher, project, team.annotator.user)
    assert titles() == ["Too few people"]
    people.add_participant(team.researcher, project, team.reviewer.user)
    projects.update(team.researcher, project, settings={"gold_every": 5})
    assert titles() == ["No gold tasks"]
    projects.update(team.researcher, project, settings={"gold_every": 0, "suggestions": "before"})
    task_services.make(project.pk)
    assert titles() == ["No model's view"]
    Task.objects.filter(project=project).update(suggestion={"content": {}, "by": "j", "version": 1, "at": "2026-01-01"})
    assert titles() == []


def test_projects_are_found_in_the_palette(as_researcher, project):
    found = as_researcher.get("/search.json?q=colo").json()["items"]
    assert {
        "kind": "project",
        "label": "Colours",
        "note": "Pairwise preference",
        "url": f"/projects/{project.pk}",
    } in found


def test_a_person_who_may_not_is_told_by_the_browser_too(team, project):
    assert browser(team.reviewer).post(f"/projects/{project.pk}/people", {"uses": 1, "days": 1}).status_code == 403
