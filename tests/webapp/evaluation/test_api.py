"""Evaluations over the API: everything that the pages can do."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.team import ApiClient
from webapp.accounts.models import Membership
from webapp.evaluation.models import Evaluation
from webapp.evaluation.recordings import services as recordings
from webapp.evaluation.work import running

from .conftest import as_file, lines

pytestmark = pytest.mark.django_db


def test_from_recorded_verdicts_to_the_numbers(api):
    file = SimpleUploadedFile("verdicts.jsonl", as_file(lines()))
    sent = api.client.post("/api/v1/evaluations/recordings", {"file": file})
    assert sent.status_code == 201 and sent.json()["judges"] == 2
    body = {"recipe": "judge_audit", "recording": sent.json()["id"], "name": "First"}
    made = api.post("/evaluations", body)
    assert made.status_code == 201 and made.json()["state"] == "queued"
    path = f"/evaluations/{made.json()['id']}"
    running.run(made.json()["id"])
    found = api.get(path).json()
    assert found["state"] == "finished" and found["headline"]["cell"]["value"] == 1.0
    assert api.get("/evaluations").json()["items"][0]["headline"] == found["headline"]
    cases = api.get(f"{path}/cases", tag=["judge:hasty", "wrong"], limit=1).json()
    assert [case["subject"]["pair"] for case in cases["items"]] == ["p0"] and cases["next"]
    rest = api.get(f"{path}/cases", tag=["judge:hasty", "wrong"], cursor=cases["next"]).json()
    assert [case["subject"]["pair"] for case in rest["items"]] == ["p1"] and rest["next"] is None
    exported = json.loads(b"".join(api.get(f"{path}/export").streaming_content))
    assert len(exported["cases"]) == 8
    assert b"<title>First</title>" in api.get(f"{path}/report").content


def test_wrong_input_is_named_at_its_field(api, recording):
    refused = api.post("/evaluations", {"recipe": "judge_audit", "config": {"nonsense": 1}})
    assert refused.status_code == 422
    assert refused.json()["error"]["fields"] == [{"path": "nonsense", "message": "unknown key"}]
    assert api.post("/evaluations", {"recipe": "none"}).json()["error"]["fields"][0]["path"] == "recipe"
    unknown = api.post("/evaluations", {"recipe": "judge_audit", "recording": recording.pk + 9})
    assert unknown.json()["error"]["fields"][0]["path"] == "recording"


def test_a_key_that_comes_back_with_another_request_is_refused(team, api, recording):
    def post(address, payload, client=api.client):
        answer = client.post(f"/api/v1{address}", payload, "application/json", headers={"Idempotency-Key": "nightly"})
        return answer.status_code, answer.json()

    body = {"recipe": "judge_audit", "recording": recording.pk, "name": "Nightly"}
    status, first = post("/evaluations", body)
    assert status == 201 and post("/evaluations", body) == (201, first)
    again = f"/evaluations/{first['id']}/rerun"
    for address, other in (("/evaluations", body | {"name": "Other"}), (again, {}), (f"{again}?resample=true", {})):
        status, refused = post(address, other)
        assert (status, refused["error"]["code"]) == (422, "key_reused")
        assert refused["error"]["fields"][0]["path"] == "Idempotency-Key"
    assert Evaluation.objects.count() == 1
    elsewhere = Membership.objects.create(user=team.researcher.user, workspace=team.outsider.workspace, role="owner")
    copy = recordings.store_recording(elsewhere, "v.jsonl", as_file(lines()))
    status, refused = post("/evaluations", body | {"recording": copy.pk}, ApiClient(elsewhere).client)
    assert (status, refused["error"]["code"]) == (409, "key_in_use")


def test_new_samples_are_drawn_once_for_a_key(api, finished):
    def post(query):
        address = f"/api/v1/evaluations/{finished.pk}/rerun{query}"
        return api.client.post(address, headers={"Idempotency-Key": "again"}).json()

    assert post("?resample=true")["id"] == post("?resample=true")["id"]
    assert post("")["error"]["code"] == "key_reused"


def test_states_move_as_asked(api, audit):
    path = f"/evaluations/{audit().pk}"
    assert api.post(f"{path}/pause").json()["state"] == "paused"
    assert api.post(f"{path}/pause").json()["state"] == "paused"
    assert api.post(f"{path}/resume").json()["state"] == "queued"
    assert api.post(f"{path}/cancel").json()["state"] == "cancelled"
    assert api.post(f"{path}/resume").status_code == 409
    assert api.post(f"{path}/rerun").json()["state"] == "queued"
    assert api.patch(path, {"name": " New  name "}).json()["name"] == "New name"
    assert api.delete(path).status_code == 204 and api.get(path).status_code == 404


def test_roles(team, finished):
    reviewer, annotator, outsider = (ApiClient(each) for each in (team.reviewer, team.annotator, team.outsider))
    path = f"/evaluations/{finished.pk}"
    reads = [
        "/evaluations",
        "/evaluations/recipes",
        "/evaluations/recordings",
        path,
        f"{path}/cases",
        f"{path}/cases/1",
    ]
    for read in reads:
        assert reviewer.get(read).status_code == 200, read
        assert annotator.get(read).status_code == 403, read
    for read in reads[3:]:
        assert outsider.get(read).status_code == 404, read
    for client, status in ((reviewer, 403), (annotator, 403), (outsider, 404)):
        for verb in ("pause", "resume", "cancel", "rerun"):
            assert client.post(f"{path}/{verb}").status_code == status, verb
        assert client.delete(path).status_code == status
    assert Evaluation.objects.count() == 1


def test_cases_become_tasks_and_evaluations_a_leaderboard(api, finished):
    body = {"tags": ["judge:hasty", "inconsistent"], "name": "Hard pairs", "overlap": 3}
    made = api.post(f"/evaluations/{finished.pk}/tasks", body)
    assert made.status_code == 201
    project = api.get(f"/projects/{made.json()['project']}").json()
    assert (project["state"], project["overlap"]) == ("open", 3)
    refused = api.post(f"/evaluations/{finished.pk}/tasks", {"tags": ["no such"], "name": "None"})
    assert refused.json()["error"]["fields"][0]["path"] == "tag"
    board = api.get(f"/leaderboards/{finished.benchmark}").json()
    assert [row["name"] for row in board["rows"]] == ["good", "hasty"]
    assert board["settings"] == {"max_pairs": None} and board["dataset"]["name"] == "pairs"
    assert api.get("/leaderboards").json()["items"] == [board]
    assert api.get("/leaderboards/none").status_code == 404
