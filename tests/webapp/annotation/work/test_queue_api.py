"""The annotator's API, as a page or a script uses it."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.team import ApiClient
from tests.webapp.annotation.seed import ANSWER, make_project, pair
from webapp.annotation.kinds import KINDS
from webapp.annotation.models import Answer, Assignment, Comment, Guidelines, Participant, Task

pytestmark = pytest.mark.django_db
SECRETS = ("ID-ONE", "ID-TWO", "MODEL-ONE", "MODEL-TWO", "RATER", "CLASSIFIED", "SECRET")


@pytest.fixture
def script(team):
    return ApiClient(team.annotator)


def put(script, path, body):
    return script.client.put(f"/api/v1{path}", body, content_type="application/json")


def claim(script, project, hold=1):
    return script.post(f"/projects/{project.pk}/claim", {"hold": hold}).json()


def test_a_claim_gives_tasks_and_says_how_many_are_left(team, script):
    project = make_project(team.researcher, 4, people=[team.annotator])
    got = claim(script, project, hold=2)
    assert [item["view"]["prompt"][0]["content"] for item in got["items"]] == ["Question q0?", "Question q1?"]
    assert (got["left"], got["done"], got["state"], got["reason"]) == (2, 0, "open", "")
    again = claim(script, project, hold=2)
    assert [item["id"] for item in again["items"]] == [item["id"] for item in got["items"]]


def test_each_reply_names_the_guidelines_in_force(team, script):
    project = make_project(team.researcher, 1, people=[team.annotator])
    got = claim(script, project)
    assert (got["guidelines"], got["items"][0]["guidelines"]) == (1, 1)
    Guidelines.objects.create(project=project, number=2, text="Be kind.")
    again = claim(script, project)
    assert (again["guidelines"], again["items"][0]["guidelines"]) == (2, 1)
    reply = script.post(f"/assignments/{got['items'][0]['id']}/submit", {"content": ANSWER, "hold": 1}).json()
    assert reply["queue"]["guidelines"] == 2 and reply["queue"]["items"] == []


def test_a_claim_counts_what_is_left_as_home_does(team, script):
    project = make_project(team.researcher, 60, people=[team.annotator])
    got = claim(script, project, hold=2)
    assert got["left"] == 58
    reply = script.post(f"/assignments/{got['items'][0]['id']}/submit", {"content": ANSWER, "hold": 1}).json()
    assert reply["queue"]["left"] is None  # not counted that far: it would take too long for each answer
    [home] = script.get("/projects/mine").json()["items"]
    assert claim(script, project)["left"] + 1 == home["free"] + home["held"] == 59


def test_one_request_submits_and_brings_the_next(team, script):
    project = make_project(team.researcher, 4, people=[team.annotator])
    first, second = claim(script, project, hold=2)["items"]
    reply = script.post(f"/assignments/{first['id']}/submit", {"content": ANSWER, "hold": 2}).json()
    assert reply["answer"]["revision"] == 1
    assert [item["id"] for item in reply["queue"]["items"]][0] == second["id"]
    assert len(reply["queue"]["items"]) == 2 and reply["queue"]["done"] == 1
    assert reply["feedback"] is reply["after"] is reply["stress"] is None


@pytest.mark.parametrize("kind", KINDS)
def test_annotators_never_see_labels_ids_models_or_other_answers(team, script, kind):
    reason = {"text": "clearer", "response": "ID-ONE"}
    example = pair(
        preferences=[{"a": "ID-ONE", "b": "ID-TWO", "strength": 1, "rater": "RATER", "reasons": [reason]}],
        rubric={"criteria": [{"id": "c1", "text": "Is clear.", "points": 2}]},
        tags=["SECRET"],
        source="SECRET",
        meta={"label": "SECRET", "uncertainty": 0.5, "judge": [{"a": "ID-ONE", "b": "ID-TWO", "strength": 3}]},
    )
    settings = {"scales": [{"name": "Clarity"}]}
    project = make_project(
        team.researcher, [example], kind=kind, settings=settings, people=[team.annotator, team.researcher]
    )
    # another person has answered, in words that no other person may read
    answers = {
        "pairwise": {**ANSWER, "note": "SECRET"},
        "rubric": {"rubric": {"criteria": [{"id": "n1", "text": "SECRET", "points": 1}]}},
        "grading": {"grades": [{"criterion": "c1", "verdict": "met", "note": "SECRET"}]},
        "ranking": {"tiers": [["A"], ["B"]], "note": "SECRET"},
        "rating": {"ratings": {"Clarity": 4}, "note": "SECRET"},
        "rationale": {"reasons": [{"text": "SECRET"}]},
        "best_worst": {"best": "A", "worst": "B", "note": "SECRET"},
        "trace_steps": {"steps": [{"step": 1, "verdict": "correct", "reason": "SECRET"}]},
    }
    other = ApiClient(team.researcher)
    theirs = claim(other, project)["items"][0]["id"]
    assert other.post(f"/assignments/{theirs}/submit", {"content": answers[kind]}).status_code == 200
    claimed = script.post(f"/projects/{project.pk}/claim", {"hold": 2})
    seat = claimed.json()["items"][0]
    shown = [
        claimed,
        script.get(f"/assignments/{seat['id']}"),
        put(script, f"/assignments/{seat['id']}/draft", {"content": {}, "revision": 0}),
        script.post(f"/assignments/{seat['id']}/renew"),
        script.post(f"/assignments/{seat['id']}/submit", {"content": {"note": 3}}),
        script.get(f"/projects/{project.pk}/mine"),
    ]
    for response in shown:
        text = response.content.decode()
        assert not [word for word in SECRETS if word in text], response.request["PATH_INFO"]
        assert '"order"' not in text and '"origin"' not in text
    assert script.get(f"/assignments/{theirs}").status_code == 404
    assert script.post(f"/assignments/{theirs}/submit", {"content": answers[kind]}).status_code == 404


ONE_OR_NONE = {"grading": 1, "rating": 1, "trace_steps": 1, "rubric": 0}


def test_the_view_fits_its_contract(team, script):
    from webapp.annotation.work.api import QueueOut

    example = pair(rubric={"criteria": [{"id": "c1", "text": "Is clear.", "points": 2}]})
    for kind in KINDS:
        project = make_project(team.researcher, [example], kind=kind, people=[team.annotator])
        got = claim(script, project)
        assert QueueOut.model_validate(got).items[0].view.kind == kind
        assert len(got["items"][0]["view"]["responses"]) == ONE_OR_NONE.get(kind, 2)


def test_the_responses_are_not_sent_before_the_rubric_stands(team, script):
    project = make_project(team.researcher, 2, kind="rubric", people=[team.annotator])
    claimed = script.post(f"/projects/{project.pk}/claim", {"hold": 2})
    assert b"answer to" not in claimed.content
    seat = claimed.json()["items"][0]["id"]
    rubric = {"rubric": {"criteria": [{"id": "c1", "text": "Is clear.", "points": 2}]}}
    reply = script.post(f"/assignments/{seat}/submit", {"content": rubric, "hold": 2})
    assert "answer to" in str(reply.json()["stress"]) and "answer to" not in str(reply.json()["queue"])
    assert len(script.get(f"/assignments/{seat}").json()["view"]["responses"]) == 2


def test_the_reference_is_not_sent_before_the_rubric_stands(team, script):
    examples = [pair("q1", reference="THE REFERENCE"), pair("q2", reference="THE REFERENCE")]
    project = make_project(team.researcher, examples, kind="rubric", people=[team.annotator])
    claimed = script.post(f"/projects/{project.pk}/claim", {"hold": 2})
    assert b"THE REFERENCE" not in claimed.content
    seat = claimed.json()["items"][0]["id"]
    rubric = {"rubric": {"criteria": [{"id": "c1", "text": "Is clear.", "points": 2}]}}
    reply = script.post(f"/assignments/{seat}/submit", {"content": rubric, "hold": 2})
    assert "THE REFERENCE" not in str(reply.json()["queue"])
    assert script.get(f"/assignments/{seat}").json()["view"]["reference"] == "THE REFERENCE"


def test_what_is_missing_is_said_where_it_is_missing(team, script):
    project = make_project(
        team.researcher, 1, people=[team.annotator], settings={"reasons": "required", "dimensions": ["Tone"]}
    )
    seat = claim(script, project)["items"][0]["id"]
    content = {
        "verdict": "compared",
        "strength": 9,
        "dimensions": {"Style": 1},
        "reasons": [{"text": "x", "response": "A", "start": 0, "end": 999}],
    }

    def refused():
        response = script.post(f"/assignments/{seat}/submit", {"content": content})
        assert response.status_code == 422
        return {field["path"]: field["message"] for field in response.json()["error"]["fields"]}

    assert refused() == {"content.strength": "must be at most 3"}
    content["strength"] = 3
    fields = refused()
    assert set(fields) == {"content.dimensions.Style", "content.reasons.0.end"}
    assert "beyond the end" in fields["content.reasons.0.end"]
    content |= {"dimensions": {}, "reasons": []}
    assert refused() == {"content.reasons": "are required: give at least one"}
    content["strength"] = None
    assert "choose one of the seven steps" in refused()["content.strength"]


@pytest.mark.parametrize("given", [{}, {"Tone": None, "Style": -1}])
def test_a_pair_may_lack_dimensions_and_a_rating_needs_every_scale(team, script, given):
    pairs = make_project(team.researcher, 1, people=[team.annotator], settings={"dimensions": ["Tone", "Style"]})
    seat = claim(script, pairs)["items"][0]["id"]
    assert script.post(f"/assignments/{seat}/submit", {"content": {**ANSWER, "dimensions": given}}).status_code == 200
    scales = [{"name": "Tone"}, {"name": "Style"}]
    rated = make_project(team.researcher, 1, kind="rating", people=[team.annotator], settings={"scales": scales})
    seat = claim(script, rated)["items"][0]["id"]
    refused = script.post(f"/assignments/{seat}/submit", {"content": {"ratings": {"Tone": 3}}})
    [field] = refused.json()["error"]["fields"]
    assert (field["path"], field["message"]) == ("content.ratings.Style", "needs a value, or `cannot assess`")
    taken = script.post(f"/assignments/{seat}/submit", {"content": {"ratings": {"Tone": 3, "Style": None}}})
    assert taken.status_code == 200


def test_drafts_are_numbered_and_two_tabs_do_not_overwrite_each_other(team, script):
    project = make_project(team.researcher, 1, people=[team.annotator])
    seat = claim(script, project)["items"][0]["id"]
    first = put(script, f"/assignments/{seat}/draft", {"content": {"strength": 1}, "revision": 0, "seconds": 4.5})
    assert first.json()["revision"] == 1 and first.json()["saved_at"]
    other_tab = put(script, f"/assignments/{seat}/draft", {"content": {"strength": 2}, "revision": 0})
    assert other_tab.status_code == 409
    body = other_tab.json()
    assert body["error"]["code"] == "conflict" and body["current"] == {"draft": {"strength": 1}, "revision": 1}
    repeated = put(script, f"/assignments/{seat}/draft", {"content": {"strength": 1}, "revision": 0})
    assert repeated.json()["revision"] == 1  # the reply got lost, but the draft was saved
    assert put(script, f"/assignments/{seat}/draft", {"content": {"strength": 2}, "revision": 1}).status_code == 200
    shown = script.get(f"/assignments/{seat}").json()
    assert (shown["draft"], shown["draft_revision"], shown["seconds"]) == ({"strength": 2}, 2, 4.5)
    stale = script.post(f"/assignments/{seat}/submit", {"content": ANSWER, "revision": 1})
    assert stale.status_code == 409 and stale.json()["current"]["revision"] == 2
    assert script.post(f"/assignments/{seat}/submit", {"content": ANSWER, "revision": 2}).status_code == 200


def test_a_flag_is_a_comment_on_the_task(team, script):
    project = make_project(team.researcher, 1, people=[team.annotator])
    seat = claim(script, project)["items"][0]["id"]
    made = script.post(f"/assignments/{seat}/flag", {"kind": "guidelines", "text": "What of ties?"})
    assert made.status_code == 201 and made.json()["kind"] == "guidelines"
    assert Comment.objects.get().author == team.annotator.user
    refused = script.post(f"/assignments/{seat}/flag", {"kind": "shout", "text": ""})
    assert refused.json()["error"]["fields"][0]["path"] == "kind"


def test_who_was_not_let_in_finds_no_project(team, script):
    project = make_project(team.researcher, 1)
    for person in (script, ApiClient(team.outsider)):
        assert person.post(f"/projects/{project.pk}/claim", {"hold": 1}).status_code == 404
        assert person.get(f"/projects/{project.pk}/mine").status_code == 404
    assert not Participant.objects.exists()
    assert claim(ApiClient(team.reviewer), project)["items"]  # other people join with their first claim
    assert Participant.objects.get().user == team.reviewer.user


def test_a_reading_token_cannot_work(team):
    project = make_project(team.researcher, 1, people=[team.annotator])
    reader = ApiClient(team.annotator, scope="read")
    assert reader.post(f"/projects/{project.pk}/claim", {"hold": 1}).status_code == 403


def test_one_sees_ones_last_submissions(team, script):
    project = make_project(team.researcher, 3, people=[team.annotator])
    for _ in range(3):
        seat = claim(script, project)["items"][0]["id"]
        script.post(f"/assignments/{seat}/submit", {"content": ANSWER, "hold": 0})
    found = script.get(f"/projects/{project.pk}/mine", limit=2).json()
    assert [row["excerpt"] for row in found["items"]] == ["about q2", "about q1"]
    rest = script.get(f"/projects/{project.pk}/mine", cursor=found["next"]).json()
    assert [row["excerpt"] for row in rest["items"]] == ["about q0"] and rest["next"] is None


def test_a_reopened_answer_comes_back_as_it_was_shown(team, script):
    project = make_project(team.researcher, 1, people=[team.annotator])
    seat = claim(script, project)["items"][0]["id"]
    script.post(f"/assignments/{seat}/submit", {"content": ANSWER})
    opened = script.post(f"/assignments/{seat}/reopen").json()
    assert opened["state"] == "claimed" and opened["draft"]["strength"] == -2
    changed = {"content": {**opened["draft"], "strength": 3}, "revision": opened["draft_revision"]}
    assert script.post(f"/assignments/{seat}/submit", changed).json()["answer"]["revision"] == 2
    kept = Answer.objects.order_by("revision")
    assert [(a.current, abs(a.content["strength"])) for a in kept] == [(False, 2), (True, 3)]


def test_skipping_frees_the_seat_and_does_not_ask_again(team, script):
    project = make_project(team.researcher, 2, people=[team.annotator])
    first, second = claim(script, project, hold=2)["items"]
    reply = script.post(f"/assignments/{first['id']}/skip", {"reason": "not my field", "hold": 2}).json()
    assert [item["id"] for item in reply["queue"]["items"]] == [second["id"]]
    assert Task.objects.get(assignments=first["id"]).taken == 0
    refused = script.post(f"/assignments/{second['id']}/skip", {"reason": " "})
    assert refused.status_code == 422 and refused.json()["error"]["fields"][0]["path"] == "reason"


def test_renewing_keeps_all_open_seats(team, script):
    project = make_project(team.researcher, 2, people=[team.annotator])
    seats = [item["id"] for item in claim(script, project, hold=2)["items"]]
    soon = timezone.now() + timedelta(seconds=5)
    Assignment.objects.update(lease_until=soon)
    assert script.post(f"/assignments/{seats[0]}/renew").json()["state"] == "claimed"
    assert not Assignment.objects.filter(lease_until__lte=soon).exists()


def test_the_number_of_queries_does_not_grow_with_what_is_done(team, script, django_assert_max_num_queries):
    project = make_project(team.researcher, 30, people=[team.annotator])
    seat = claim(script, project, hold=2)["items"][0]["id"]
    for _ in range(12):
        with django_assert_max_num_queries(12):
            reply = script.post(f"/assignments/{seat}/submit", {"content": ANSWER, "hold": 2})
        seat = reply.json()["queue"]["items"][0]["id"]
    assert json.loads(reply.content)["queue"]["done"] == 12
