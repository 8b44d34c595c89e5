"""Rubrics over the API while they are written: hints, and a trial on texts."""

import pytest
from django.test import Client

from tests.team import ApiClient
from tests.webapp.annotation.seed import make_project, pair
from webapp.annotation.models import Answer
from webapp.annotation.tasks import blinding

SHORT = {"name": "word_count", "args": {"max": 3}}
RUBRIC = {
    "criteria": [
        {"id": "c1", "text": "Has three words at most.", "points": 3, "verifier": SHORT},
        {"id": "c2", "text": "Is warm.", "points": 2},
    ]
}
LONG = {"criteria": [{**RUBRIC["criteria"][0], "id": f"c{n}"} for n in range(20)]}
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
        (
            {"responses": [{"letter": letter, "text": "a" * 100_000} for letter in "ABCDEF"], "rubric": LONG},
            "responses",
        ),
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


LISTED = [f"Response number {n}" for n in range(6)]
EXAMPLE = pair(
    responses=[{"id": f"ID-{n}", "text": text, "origin": "MODEL"} for n, text in enumerate(LISTED)], preferences=[]
)


def test_submitted_it_meets_every_response_under_a_letter_and_no_origin_then_and_when_reopened(team):
    project = make_project(team.researcher, [EXAMPLE], kind="rubric", people=[team.annotator])
    script = ApiClient(team.annotator)
    seat = script.post(f"/projects/{project.id}/claim", {"hold": 1}).json()["items"][0]
    assert seat["view"]["responses"] == []
    reply = script.post(f"/assignments/{seat['id']}/submit", {"content": {"rubric": RUBRIC}, "hold": 0})
    found = reply.json()["stress"]["responses"]
    assert {each["text"] for each in found} == set(LISTED)
    assert b"MODEL" not in reply.content and b"ID-" not in reply.content
    again = script.post(f"/assignments/{seat['id']}/reopen").json()["view"]["responses"]
    assert again == [{"letter": each["letter"], "text": each["text"]} for each in found]


def test_the_order_of_the_dataset_does_not_show(team):
    """The letters are the same for any order of the responses in the file, where the preferred one is often first."""
    turned = {**EXAMPLE, "responses": EXAMPLE["responses"][::-1]}
    seen = blinding.responses("rubric", {}, [], EXAMPLE, done=True)
    assert seen == blinding.responses("rubric", {}, [], turned, done=True)
    assert [each["text"] for each in seen] not in (LISTED, LISTED[::-1])


def test_the_rubric_before_and_after_a_revision_are_both_kept(team):
    project = make_project(team.researcher, [EXAMPLE], kind="rubric", people=[team.annotator])
    script = ApiClient(team.annotator)
    seat = script.post(f"/projects/{project.id}/claim", {"hold": 1}).json()["items"][0]["id"]
    revised = {"criteria": [{**RUBRIC["criteria"][0], "points": 4}]}
    script.post(f"/assignments/{seat}/submit", {"content": {"rubric": RUBRIC}})
    script.post(f"/assignments/{seat}/reopen")
    script.post(f"/assignments/{seat}/submit", {"content": {"rubric": revised}})
    kept = Answer.objects.filter(assignment=seat).order_by("revision")
    assert [[c["points"] for c in answer.content["rubric"]["criteria"]] for answer in kept] == [[3, 2], [4]]
    assert [answer.current for answer in kept] == [False, True]


@pytest.mark.parametrize("example", [EXAMPLE, pair(responses=[], preferences=[])])
def test_without_a_stress_test_or_without_responses_there_is_no_report(team, example):
    wanted = example["responses"] == []
    settings = {"stress_test": wanted}
    project = make_project(team.researcher, [example], kind="rubric", people=[team.annotator], settings=settings)
    script = ApiClient(team.annotator)
    seat = script.post(f"/projects/{project.id}/claim", {"hold": 1}).json()["items"][0]["id"]
    assert script.post(f"/assignments/{seat}/submit", {"content": {"rubric": RUBRIC}}).json()["stress"] is None
