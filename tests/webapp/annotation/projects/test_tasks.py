"""The tasks of a version, their order, and the result after an interruption."""

import pytest

from tests.team import ApiClient, browser
from tests.webapp.annotation.seed import ANSWER, make_project, pair
from webapp.annotation.models import Answer, Project, Task
from webapp.annotation.projects import gold_services, task_services
from webapp.annotation.tasks import task_factory
from webapp.annotation.work import queue
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid


def example(responses: int = 3, preferences=(), **changes) -> dict:
    sides = [{"id": f"r{n}", "text": f"text {n}"} for n in range(responses)]
    return {"key": "k", "prompt": [], "responses": sides, "preferences": list(preferences), **changes}


def preference(a, b, strength=1, **changes):
    return {"a": a, "b": b, "strength": strength, **changes}


RUBRIC = {"criteria": [{"id": "c", "text": "Is right.", "points": 1}]}
REASONS = [{"text": "shorter"}, {"text": "kinder"}]


@pytest.mark.parametrize(
    "kind, content, expected",
    [
        ("pairwise", example(3), [{"a": "r0", "b": "r1"}, {"a": "r1", "b": "r2"}]),
        ("pairwise", example(6), [{"a": "r0", "b": "r1"}, {"a": "r1", "b": "r2"}, {"a": "r2", "b": "r3"}]),
        ("pairwise", example(3, [preference("r2", "r0"), preference("r0", "r2")]), [{"a": "r2", "b": "r0"}]),
        ("pairwise", example(1), []),
        ("rubric", example(0), [{}]),
        ("grading", example(2, rubric=RUBRIC), [{"response": "r0"}, {"response": "r1"}]),
        ("grading", example(2), []),
        (
            "grading",
            example(2, rubric={"criteria": [{"id": f"c{n}"} for n in range(501)]}),
            [],
        ),  # nobody could submit it
        ("ranking", example(3), [{"responses": ["r0", "r1", "r2"]}]),
        ("ranking", example(1), []),
        ("rating", example(2), [{"response": "r0"}, {"response": "r1"}]),
        ("rationale", example(2, [preference("r0", "r1")]), [{"a": "r0", "b": "r1"}]),
        (
            "rationale",
            example(2, [preference("r0", "r1"), preference("r1", "r0", reasons=REASONS)]),
            [{"a": "r1", "b": "r0", "preference": 1}],
        ),
        ("rationale", example(2, meta={"rationale": "First is kinder."}), [{"a": "r0", "b": "r1", "preference": None}]),
    ],
)
def test_each_kind_has_its_subjects(kind, content, expected):
    assert task_factory.subjects_of(kind, content) == expected


def test_a_rationale_is_the_text_given_or_the_reasons_one_a_line():
    from webapp.annotation.kinds import example_labels

    given = example(2, [preference("r0", "r1", reasons=REASONS)])
    subject = task_factory.subjects_of("rationale", given)[0]
    assert example_labels.rationale(subject, given) == "shorter\nkinder"
    assert example_labels.rationale(subject, {**given, "meta": {"rationale": ["first text"]}}) == "first text"


def test_uncertainty_is_the_disagreement_of_raters():
    subject = {"a": "r0", "b": "r1"}

    def of(*strengths, **changes):
        return task_factory.uncertainty(subject, example(2, [preference("r0", "r1", s) for s in strengths], **changes))

    assert of() is of(2) is None  # one person cannot disagree
    assert of(2, 2) == 0 < of(2, 2, -1) < of(2, -1) < of(3, 1, -2)
    assert of(2, 2, meta={"uncertainty": 0.9}) == 0.9
    assert of(2, 2, meta={"uncertainty": 10**400}) == 1  # too large for a float
    turned = example(2, [preference("r0", "r1", 2), preference("r1", "r0", -2)])
    assert task_factory.uncertainty(subject, turned) == 0


def test_disagreement_is_the_distance_between_judge_and_people():
    subject = {"a": "r0", "b": "r1"}
    human, judge = preference("r0", "r1", 2), preference("r1", "r0", 1, rater="judge:small")
    assert task_factory.disagreement(subject, example(2, [human, judge])) == pytest.approx(3 / 6)
    assert task_factory.disagreement(subject, example(2, [human])) is None
    in_meta = example(2, [human], meta={"judge": [{"a": "r0", "b": "r1", "strength": -3}]})
    assert task_factory.disagreement(subject, in_meta) == pytest.approx(5 / 6)


def keys(project):
    return [task.example.content["key"] for task in Task.objects.filter(project=project).order_by("rank")]


@pytest.mark.django_db
def test_the_strategy_orders_the_queue_and_what_has_no_score_comes_last(team):
    scores = {"q0": None, "q1": 0.1, "q2": 0.9, "q3": None, "q4": 0.9}
    listed = [pair(key, meta={} if score is None else {"uncertainty": score}) for key, score in scores.items()]
    assert keys(make_project(team.researcher, listed, strategy="order")) == ["q0", "q1", "q2", "q3", "q4"]
    assert keys(make_project(team.researcher, listed, strategy="uncertainty")) == ["q2", "q4", "q1", "q0", "q3"]
    drawn = keys(make_project(team.researcher, 30, strategy="random"))
    assert sorted(drawn) == sorted(f"q{n}" for n in range(30)) and drawn != [f"q{n}" for n in range(30)]


@pytest.mark.django_db
def test_making_tasks_twice_or_after_a_crash_makes_each_once(team, monkeypatch):
    monkeypatch.setattr(task_services, "BATCH", 4)
    project = make_project(team.researcher, 10, strategy="random")
    before = list(Task.objects.order_by("id").values_list("id", "rank"))
    task_services.make(project.pk)
    Task.objects.filter(id__gt=before[6][0]).delete()
    Project.objects.update(tasks_made=False)
    task_services.make(project.pk)
    after = list(Task.objects.order_by("id").values_list("id", "rank"))
    assert after[:7] == before[:7] and [rank for _, rank in after] == [rank for _, rank in before]
    project.refresh_from_db()
    assert (project.tasks_total, project.tasks_made) == (10, True)


@pytest.mark.django_db
def test_a_project_whose_tasks_cannot_be_made_says_why_until_they_are(team, monkeypatch):
    project = make_project(team.researcher, 3)
    Task.objects.all().delete()
    Project.objects.update(tasks_made=False)
    with monkeypatch.context() as broken:
        broken.setattr(task_factory, "rank", lambda *_: [][0])
        with pytest.raises(IndexError):
            task_services.make(project.pk)
    page = browser(team.researcher).get(f"/projects/{project.pk}").content.decode()
    assert "The tasks could not be made." in page and "IndexError: list index out of range" in page
    assert "IndexError" in ApiClient(team.researcher).get(f"/projects/{project.pk}").json()["tasks_problem"]
    task_services.make(project.pk)
    project.refresh_from_db()
    assert project.tasks_made and project.tasks_problem == ""


def test_examples_without_a_task_are_counted_in_the_audit_log(team):
    make_project(team.researcher, [pair("q1"), pair("q2", responses=[], preferences=[])])
    assert AuditEntry.objects.get(action="project.tasks_made").detail == {"tasks": 1, "examples_without": 1}


@pytest.mark.django_db
def test_the_number_of_queries_grows_with_the_batches_only(team, django_assert_max_num_queries):
    project = make_project(team.researcher, 40)
    Task.objects.all().delete()
    Project.objects.update(tasks_made=False)
    with django_assert_max_num_queries(20):
        task_services.make(project.pk)


@pytest.mark.django_db
@pytest.mark.parametrize("at", ["2020-01-01T00:00Z", "2100-01-01T00:00Z"], ids=["long ago", "the clock went back"])
def test_lost_makings_are_queued_again(at, team, django_capture_on_commit_callbacks, monkeypatch, eager):
    project = make_project(team.researcher, 2)
    Task.objects.all().delete()
    Project.objects.update(tasks_made=False, created_at=at)
    with django_capture_on_commit_callbacks(execute=True):
        assert task_services.make_waiting() == 1
    assert Task.objects.filter(project=project).count() == 2


@pytest.mark.django_db
def test_a_known_answer_is_checked_as_if_a_person_had_given_it(team):
    make_project(team.researcher, 1)
    task = Task.objects.get()
    with pytest.raises(Invalid) as refused:
        task_services.set_gold(team.researcher, task, {"strength": 5})
    assert refused.value.fields == {"content.strength": "must be at most 3"}
    with pytest.raises(Invalid, match="complete") as refused:
        task_services.set_gold(team.researcher, task, {"strength": 1, "reasons": [{"text": "x", "response": "A"}]})
    assert "no response 'A'" in refused.value.fields["content"]
    gold = task_services.set_gold(team.researcher, task, {"strength": 1})
    assert gold.overlap is None and gold.gold["strength"] == 1


@pytest.mark.django_db
def test_gold_set_late_is_held_against_the_answers_there_are_and_can_be_taken_away(team):
    project = make_project(team.researcher, 1, people=[team.annotator, team.reviewer], overlap=1)
    (seat,) = queue.claim(team.annotator, project)
    answer = queue.submit(team.annotator, seat, ANSWER)
    opposite = {"strength": -answer.content["strength"]}
    task_services.set_gold(team.researcher, Task.objects.get(), opposite)
    assert Answer.objects.get().gold_right is False and Project.objects.get().tasks_total == 0
    back = task_services.set_gold(team.researcher, Task.objects.get(), None)
    assert (back.overlap, back.taken, back.done) == (1, 1, 1)
    assert Answer.objects.get().gold_right is None and Project.objects.get().tasks_total == 1


def test_a_label_that_is_no_answer_keeps_no_other_from_becoming_gold(team):
    """An import takes texts of any length, and an answer does not."""
    listed = [
        pair(f"q{n}", preferences=[preference("ID-ONE", "ID-TWO", reasons=[{"text": text}])])
        for n, text in enumerate(("shorter", "long " * 500))
    ]
    project = make_project(team.researcher, listed, kind="rationale")
    assert gold_services.mark(team.researcher, project, "labels", 10).made == 1
    assert project.tasks.get(overlap=None).example.key == "q0"
