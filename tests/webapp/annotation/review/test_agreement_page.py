"""The agreement of a project: the numbers of the page, the page, and the tasks behind a number."""

import tracemalloc
from datetime import timedelta
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.utils import timezone

from tests.pages import page_html
from tests.team import ApiClient, browser
from webapp.accounts.models import Membership
from webapp.annotation.agreement import coefficients, rating_columns, refresh
from webapp.annotation.agreement.coefficients import measure
from webapp.annotation.kinds.fields import Field
from webapp.annotation.kinds.grading import VERDICTS
from webapp.annotation.models import AgreementReport, Project, Resolution, TaskReview
from webapp.annotation.people import services as participants
from webapp.annotation.work import queue

from .. import seed
from ..answers import annotators, answer, grades, make_project, preference, ranking, ratings, rubric

pytestmark = pytest.mark.django_db


@pytest.fixture
def project(team) -> Project:
    """Two people and four pairs. They agree on two, are one step apart on one, and choose opposite sides on one."""
    made = make_project(team)
    one, two = annotators(team, made)
    for task, pair in zip(made.tasks.order_by("rank"), [(2, 2), (-1, -1), (1, 2), (-2, 2)], strict=True):
        answer(task, one, preference(pair[0]))
        answer(task, two, preference(pair[1]))
    return made


def field(body, key):
    return next(each for each in body["fields"] if each["key"] == key)


def test_strength_is_ordinal_and_direction_nominal(project):
    body = measure(project)
    strength, direction = field(body, "strength"), field(body, "direction")
    assert (strength["level"], direction["level"]) == ("ordinal", "nominal")
    assert strength["percent"]["value"] == 0.5 and direction["percent"]["value"] == 0.75
    assert strength["units"] == 4 and body["answers"] == 8 and body["tasks"] == 4
    assert strength["alphas"]["interval"]["value"] != strength["alphas"]["nominal"]["value"]


def test_reasons_in_common_are_shown_only_if_somebody_gave_one(team, project):
    client, path = browser(team.reviewer), f"/projects/{project.pk}/agreement"
    assert "Reasons in common" not in client.get(path).content.decode()
    task = project.tasks.order_by("rank").first()
    for seat in task.assignments.select_related("user"):
        answer(task, Membership.objects.get(user=seat.user), preference(2, "It is right."))
    assert "Reasons in common" in client.get(path).content.decode()


def test_each_domain_and_each_pair_has_its_numbers(project):
    strength = field(measure(project), "strength")
    assert {each["domain"]: each["units"] for each in strength["domains"]} == {"science": 2, "language": 2}
    [pair] = strength["pairs"]
    values = [value["value"] for value in strength["values"]]
    assert values == ["-2", "-1", "1", "2"]
    assert pair["matrix"][values.index("1")][values.index("2")] == 1
    assert sum(map(sum, pair["matrix"])) == pair["n"] == 4


def test_one_value_throughout_is_undefined_with_its_reason(team):
    made = make_project(team)
    for member in annotators(team, made):
        for task in made.tasks.all():
            answer(task, member, preference(1))
    found = field(measure(made), "direction")
    assert found["percent"]["value"] == 1
    assert "only one value" in found["alpha"]["undefined"] and found["alpha"]["value"] is None


def test_what_could_not_be_assessed_is_missing_and_counted(team):
    made = make_project(team, n=2)
    one, two = annotators(team, made)
    first, second = made.tasks.order_by("rank")
    answer(first, one, preference(None, verdict="cannot_assess"))
    answer(first, two, preference(1))
    answer(second, one, preference(None, verdict="both_bad"))
    answer(second, two, preference(-1))
    strength, direction = (field(measure(made), key) for key in ("strength", "direction"))
    assert strength["missing"] == 2 and direction["missing"] == 1
    assert "no unit has two ratings" in strength["alpha"]["undefined"]
    assert (direction["percent"]["value"], direction["percent"]["n"]) == (0, 1)


def test_gold_tasks_and_answers_sent_back_do_not_count(project):
    gold = project.tasks.first()
    gold.overlap, gold.gold = None, preference(1)
    gold.save()
    sent = project.tasks.exclude(pk=gold.pk).first().assignments.first()
    sent.state = "claimed"
    sent.save()
    body = measure(project)
    assert body["answers"] == 5 and field(body, "strength")["units"] == 2


def criteria(**texts):
    return {"criteria": [{"id": id, "text": text, "points": 1} for id, text in texts.items()]}


def test_criteria_of_grades_are_units(team):
    made = make_project(team, "grading", n=6, rubric=criteria(c1="Is correct", c2="Is short"))
    one, two = annotators(team, made)
    for task in made.tasks.all():
        answer(task, one, grades(c1="met", c2="not_met"))
        answer(task, two, grades(c1="met", c2="cannot_assess" if task.rank == 0 else "met"))
    found = field(measure(made), "verdict")
    assert found["units"] == 11 and found["missing"] == 1
    assert [each["criterion"] for each in found["criteria"]] == ["Is correct", "Is short"]
    assert found["criteria"][0]["percent"]["value"] == 1 and found["criteria"][1]["percent"]["value"] == 0


def test_tasks_share_a_criterion_by_its_words_not_by_its_id(team):
    """Importers number the criteria of each example from 1. The first criterion of one example is not related to that of the next."""
    shared = [seed.pair(f"s{n}", rubric=criteria(**{f"c{n}": "Is true", "own": f"Says {n}"})) for n in range(5)]
    made = seed.make_project(team.researcher, shared, kind="grading")
    one, two = annotators(team, made)
    for task in made.tasks.select_related("example"):
        first = task.example.record.rubric.criteria[0].id
        for person in (one, two):
            answer(task, person, grades(**{first: "met", "own": "not_met"}))
    found = field(measure(made), "verdict")
    assert [(each["criterion"], each["units"]) for each in found["criteria"]] == [("Is true", 10)]  # two responses each


def test_every_two_of_three_people_are_compared_in_either_order(team):
    made = make_project(team, n=2, overlap=3)
    people = annotators(team, made, 3)
    for task, given_order in zip(made.tasks.order_by("rank"), (people, people[::-1]), strict=True):
        for person in given_order:
            answer(task, person, preference(people.index(person) - 1 or 2))
    found = field(measure(made), "strength")
    ids = sorted(person.user_id for person in people)
    assert [pair["raters"] for pair in found["pairs"]] == [[ids[0], ids[1]], [ids[0], ids[2]], [ids[1], ids[2]]]
    values = [value["value"] for value in found["values"]]
    assert found["pairs"][0]["matrix"][values.index("-1")][values.index("2")] == 2 == found["pairs"][0]["n"]


def test_rankings_are_compared_pair_by_pair(team):
    made = make_project(team, "ranking", n=2)
    one, two = annotators(team, made)
    for task in made.tasks.all():
        answer(task, one, ranking("r1", "r2"))
        answer(task, two, ranking("r1 r2") if task.rank else ranking("r1", "r2"))
    found = field(measure(made), "pairs")
    assert found["units"] == 2 and found["percent"]["value"] == 0.5
    assert [value["label"] for value in found["values"]] == ["first better", "equal"]


def test_scales_are_fields(team):
    made = make_project(team, "rating", n=3, scales=[{"name": "clarity", "labels": {"1": "muddled"}}, {"name": "tone"}])
    one, two = annotators(team, made)
    for task in made.tasks.all():
        answer(task, one, ratings(clarity=1 + int(task.rank), tone=None))
        answer(task, two, ratings(clarity=1 + int(task.rank), tone=3))
    clarity, tone = measure(made)["fields"]
    assert clarity["alpha"]["value"] == 1 and clarity["values"][0]["label"] == "muddled"
    assert tone["missing"] == 3 and "undefined" in tone["alpha"]


def test_rubrics_agree_by_the_items_they_have_in_common(team):
    made = make_project(team, "rubric", n=1)
    one, two = annotators(team, made)
    task = made.tasks.get()
    answer(task, one, rubric("Names three rivers of France", "Says where each river begins", ("Invents a river", -5.0)))
    answer(task, two, rubric("Names exactly three rivers of France", "Is friendly"))
    refresh.bring_up_to_date(made)
    items = AgreementReport.objects.get(project=made).body["items"]
    assert items["share"]["value"] == pytest.approx(2 / 5)  # one match of three and two items
    assert items["matchers"] == {"words": 1}
    assert TaskReview.objects.get(task=task).agreement == pytest.approx(2 / 5)
    page = browser(team.reviewer).get(f"/projects/{made.pk}/agreement")
    assert "averaged over tasks. 1 task matched by words only." in page_html(page)
    named = {**items, "matchers": {"all-MiniLM-L6-v2": 2, "a reviewer": 1}}
    shown: Any = page.context
    told = render_to_string("annotation/agreement.html", {**shown.flatten(), "items": named})
    assert "2 tasks matched by meaning (all-MiniLM-L6-v2), 1 task corrected by a reviewer." in " ".join(told.split())


def test_the_page_shows_it_and_a_cell_opens_its_tasks(project, team):
    client = browser(team.reviewer)
    page = client.get(f"/projects/{project.pk}/agreement").content.decode()
    assert "Preference strength" in page and "Annotator 1" in page and "Anna" not in page
    cell = f"/projects/{project.pk}/agreement/tasks?field=strength&pair=1-2&first=-2&second=2"
    assert cell.replace("&", "&amp;") in page
    behind = client.get(cell)
    assert [row.task.rank for row in behind.context["rows"]] == [3]
    assert client.get(cell.replace("field=strength", "field=nope")).status_code == 404
    assert client.get(cell.replace("first=-2", "first=x")).status_code == 404
    api = ApiClient(team.reviewer)
    assert [row["task"] for row in api.get(cell).json()["items"]] == [row.task.pk for row in behind.context["rows"]]
    assert api.get(f"{cell}&limit=1").json()["next"] is None
    assert api.get(cell.replace("pair=1-2", "pair=1-9")).status_code == 404
    assert api.post(f"/projects/{project.pk}/agreement/match", {}).json() == {"started": False}


def test_names_are_for_researchers_who_ask(project, team):
    url = f"/projects/{project.pk}/agreement?names=1"
    assert "Anna" in browser(team.researcher).get(url).content.decode()
    assert "Anna" not in browser(team.reviewer).get(url).content.decode()


def test_without_two_answers_the_page_says_what_is_missing(team):
    made = make_project(team)
    url = f"/projects/{made.pk}/agreement"
    assert "Nobody has answered so far" in browser(team.reviewer).get(url).content.decode()
    [one] = annotators(team, made, 1)
    answer(made.tasks.first(), one, preference(1))
    assert "1 answer by 1 person" in page_html(browser(team.reviewer).get(url))


def test_the_api_tells_the_same_under_pseudonyms(project, team):
    found = ApiClient(team.reviewer).get(f"/projects/{project.pk}/agreement").json()
    assert found["state"] == "ready" and found["report"]["answers"] == 8
    assert found["report"]["fields"][0]["pairs"][0]["raters"] == ["annotator-1", "annotator-2"]


def test_many_answers_are_counted_by_a_job_and_the_last_result_stays(
    project, team, monkeypatch, eager, django_capture_on_commit_callbacks
):
    api = ApiClient(team.reviewer)
    api.get(f"/projects/{project.pk}/agreement")
    monkeypatch.setattr(refresh, "AT_ONCE", 3)
    task = project.tasks.first()
    answer(task, team.annotator, preference(-3))
    with django_capture_on_commit_callbacks(execute=True):
        waiting = api.get(f"/projects/{project.pk}/agreement").json()
    assert waiting["state"] == "computing" and waiting["started_at"] and waiting["report"]["answers"] == 8
    ready = api.get(f"/projects/{project.pk}/agreement").json()
    assert ready["state"] == "ready" and ready["computed_at"] > waiting["computed_at"]
    assert field(ready["report"], "strength")["percent"]["value"] == 0.25


def test_reading_it_again_computes_nothing(project, team, monkeypatch):
    api = ApiClient(team.reviewer)
    api.get(f"/projects/{project.pk}/agreement")
    monkeypatch.setattr(refresh, "measure", lambda project: pytest.fail("measured again"))
    assert api.get(f"/projects/{project.pk}/agreement").json()["state"] == "ready"


def test_annotators_and_outsiders_see_none_of_it(project, team):
    for path in (f"/projects/{project.pk}/agreement", f"/projects/{project.pk}/agreement/tasks"):
        assert browser(team.annotator).get(path).status_code == 403
        assert browser(team.outsider).get(path).status_code == 404
    assert ApiClient(team.annotator).get(f"/projects/{project.pk}/agreement").status_code == 403
    assert ApiClient(team.outsider).get(f"/projects/{project.pk}/agreement").status_code == 404


class TestWhatNoNewIdShows:
    """Answers that are submitted or opened again, and changes that are made during a measurement."""

    @pytest.fixture
    def worked(self, team):
        """Two people agree on each of three tasks; Anna has opened her first answer again."""
        project = seed.make_project(team.researcher, 3, people=[team.annotator, team.reviewer])
        for person in (team.annotator, team.reviewer):
            for seat in queue.claim(person, project, 3):
                queue.submit(person, seat, seed.ANSWER | {"strength": 0})
        refresh.bring_up_to_date(project)
        assert Resolution.objects.count() == 3
        self.seat = project.assignments.filter(user=team.annotator.user).order_by("id").first()
        self.opened = queue.reopen(team.annotator, self.seat)
        return project

    def counted(self, project) -> tuple[int, int, int]:
        body = refresh.current_report(project).body
        return body["answers"], TaskReview.objects.filter(agreement=1).count(), Resolution.objects.count()

    def measured_meanwhile(self, project, monkeypatch):
        """Measures while another person continues to work."""
        monkeypatch.setattr(refresh, "LATE", 10_000)
        refresh.mark_outdated(project.pk)
        assert self.counted(project) == (5, 2, 2)
        monkeypatch.setattr(refresh, "LATE", 0)  # as if there were many new answers

    def test_an_answer_measured_while_it_was_open_counts_again_when_it_stands(
        self, team, worked, monkeypatch, django_capture_on_commit_callbacks
    ):
        self.measured_meanwhile(worked, monkeypatch)
        with django_capture_on_commit_callbacks(execute=True):
            queue.submit(team.annotator, self.seat, self.opened.draft, self.opened.draft_revision)
        assert self.counted(worked) == (6, 3, 3)

    @pytest.mark.parametrize("how", ["lease", "pause"])
    def test_and_when_it_goes_back_by_itself(self, team, worked, monkeypatch, django_capture_on_commit_callbacks, how):
        self.measured_meanwhile(worked, monkeypatch)
        with django_capture_on_commit_callbacks(execute=True):
            if how == "pause":
                participants.pause_participant(team.researcher, worked, team.annotator.user, True)
            else:
                self.seat.__class__.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
                queue.expire_leases()
        assert self.counted(worked) == (6, 3, 3)

    def test_a_withdrawn_answer_counts_no_longer(self, team, worked, monkeypatch, django_capture_on_commit_callbacks):
        monkeypatch.setattr(refresh, "LATE", 0)
        with django_capture_on_commit_callbacks(execute=True):
            queue.skip(team.annotator, self.seat, "I know the author")
        assert self.counted(worked) == (5, 2, 2)

    def test_what_changes_while_everything_is_measured_is_measured_next(self, worked, monkeypatch):
        measure = coefficients.measure

        def slow(project):
            body = measure(project)
            refresh.mark_outdated(project.pk)  # for example, a known answer was set
            return body

        monkeypatch.setattr(refresh, "measure", slow)
        assert not coefficients.fresh(refresh.bring_up_to_date(worked), worked)
        monkeypatch.setattr(refresh, "measure", measure)
        assert coefficients.fresh(refresh.current_report(worked), worked)


def test_a_value_takes_no_more_memory_than_its_numbers(monkeypatch):
    """A worker with a few hundred megabytes of memory must be able to count a million grades."""
    count = 40_000

    def rows(project, field):
        for n in range(count):
            task, user = divmod(n // 5, 2)
            yield (
                1_000_000 + task,
                1_000 + (task + user) % 90,
                f"c{n % 5}",
                "met" if n % 7 else "not_met",
                f"d{task % 9}",
            )

    monkeypatch.setattr(rating_columns, "rows", rows)
    verdict = Field("verdict", "Verdict", "nominal", "", shown=VERDICTS)
    coefficients._field(Project(), verdict)  # memory that is kept for good, such as imported modules
    tracemalloc.start()
    try:
        found = coefficients._field(Project(), verdict)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found["ratings"], found["units"]) == (count, count // 2)
    assert peak < 200 * count
