"""Rubrics over the API while they are written: hints, and a try on texts."""

import pytest
from django.test import Client

from webapp.annotation.models import Assignment, Project, Task
from webapp.annotation.services import stress
from webapp.datasets.models import Dataset, DatasetVersion, Example

SHORT = {"name": "word_count", "args": {"max": 3}}
RUBRIC = {
    "criteria": [
        {"id": "c1", "text": "Has three words at most.", "points": 3, "verifier": SHORT},
        {"id": "c2", "text": "Is warm.", "points": 2},
    ]
}
RESPONSES = [{"letter": "A", "text": "tea, please"}, {"letter": "B", "text": "a cup of tea would be lovely"}]


def test_an_annotator_gets_hints_on_a_rubric_that_is_not_finished(as_annotator):
    body = {"criteria": [{"text": "Names the year and gives a source.", "points": 5}, {"text": "", "points": None}]}
    answer = as_annotator.post("/api/v1/rubrics/check", body, content_type="application/json")
    assert answer.status_code == 200
    assert [(hint["code"], hint["criterion"]) for hint in answer.json()["hints"]] == [
        ("too_few", None),
        ("compound", 0),
    ]


def test_a_rubric_is_tried_on_texts_and_what_is_missing_stays_missing(api):
    answer = api.post("/rubrics/stress", {"rubric": RUBRIC, "responses": RESPONSES}).json()
    assert [(each["letter"], each["score"], each["missing"], each["partial"]) for each in answer["responses"]] == [
        ("A", 1.0, 1, True),
        ("B", 0.0, 1, True),
    ]
    assert [criterion["power"] for criterion in answer["criteria"]] == ["discriminates", "unknown"]
    assert answer["criteria"][1]["verdicts"]["A"] == {"met": None, "note": "no verifier; needs a judge"}
    assert answer["unverified"] == 1


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"responses": RESPONSES[:1] * 2}, "responses"),
        ({"rubric": {"criteria": [{**RUBRIC["criteria"][0], "verifier": {"name": "word_count"}}]}}, "args"),
        ({"rubric": {"criteria": [{**RUBRIC["criteria"][1], "points": -2}]}}, "rubric"),
        ({"responses": []}, "responses"),
    ],
)
def test_what_cannot_be_tried_says_where(api, change, path):
    answer = api.post("/rubrics/stress", {"rubric": RUBRIC, "responses": RESPONSES, **change})
    assert answer.status_code == 422
    assert answer.json()["error"]["fields"][0]["path"] == path


def test_strangers_get_nothing(db):
    for path in ("check", "stress"):
        answer = Client().post(f"/api/v1/rubrics/{path}", {}, content_type="application/json")
        assert answer.status_code == 401


@pytest.fixture
def assignment(cast, django_user_model):
    """A seat in rubric authoring on an example with four responses, the first of them the preferred one."""
    import json

    from django.utils import timezone

    texts = [{"id": f"r{n}", "text": f"Response number {n}", "origin": "model-x"} for n in range(4)]
    content = {"key": "k", "prompt": [{"role": "user", "content": "Tea?"}], "responses": texts}
    dataset = Dataset.objects.create(workspace=cast.workspace, name="Tea")
    version = DatasetVersion.objects.create(dataset=dataset, number=1, digest="d")
    example = Example.objects.create(
        dataset=dataset, key="k", digest="d", canonical=json.dumps(content), excerpt="Tea?"
    )
    project = Project.objects.create(workspace=cast.workspace, name="P", kind="rubric", version=version)
    task = Task.objects.create(project=project, example=example, rank=0, overlap=1)
    now = timezone.now()
    seat = {"task": task, "project": project, "user": cast.annotator.user, "claimed_at": now, "lease_until": now}
    return Assignment.objects.create(**seat)


def test_after_submission_the_rubric_meets_every_response_under_a_letter_and_no_origin(assignment):
    found = stress.after_submit(assignment, {"rubric": RUBRIC})
    assert [each["letter"] for each in found["responses"]] == ["A", "B", "C", "D"]
    assert {each["text"] for each in found["responses"]} == {f"Response number {n}" for n in range(4)}
    assert "model-x" not in str(found) and "r0" not in str(found)


def test_the_letters_stay_with_their_texts_and_differ_between_people(assignment):
    shown = stress.responses_shown(assignment)
    assert stress.responses_shown(assignment) == shown
    arrangements = set()
    for pk in range(1, 30):
        assignment.pk = pk
        arrangements.add(tuple(each.text for each in stress.responses_shown(assignment)))
    assert len(arrangements) > 5


def test_a_project_may_do_without_the_stress_test(assignment):
    assignment.project.settings = {"stress_test": False}
    assert stress.after_submit(assignment, {"rubric": RUBRIC}) is None
    assignment.project.settings, assignment.project.kind = {}, "pairwise"
    assert stress.after_submit(assignment, {"rubric": RUBRIC}) is None
