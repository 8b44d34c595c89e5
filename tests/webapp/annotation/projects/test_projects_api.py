"""Projects over the API: scripts can do the same as the pages."""

import pytest

from tests.team import ApiClient
from webapp.annotation.kinds import KINDS
from webapp.annotation.models import Participant, Project
from webapp.annotation.projects import task_services
from webapp.annotation.work import queue

pytestmark = pytest.mark.django_db


def body(version, **changes) -> dict:
    return {"name": "Colours", "kind": "pairwise", "dataset": {"id": version.dataset_id}, **changes}


def create_project(api, version, **changes) -> dict:
    response = api.post("/projects", body(version, **changes))
    assert response.status_code == 201, response.content
    task_services.make(response.json()["id"])
    return response.json()


def fields(response) -> set[str]:
    assert response.status_code == 422, response.content
    return {each["path"] for each in response.json()["error"]["fields"]}


def test_a_project_is_set_up_opened_and_read_back(api, version):
    project = create_project(
        api, version, overlap=3, settings={"reasons": "required"}, guidelines="Be fair.", open=True
    )
    assert project["state"] == "open"
    found = api.get(f"/projects/{project['id']}").json()
    assert (found["settings"]["reasons"], found["tasks_made"], found["people"]) == ("required", True, 0)
    assert found["version"]["number"] == 1 and found["version"]["digest"] == version.digest
    assert (found["progress"]["tasks"], found["progress"]["seats"], found["progress"]["fraction"]) == (4, 12, 0.0)
    assert [each["name"] for each in api.get("/projects", state="open").json()["items"]] == ["Colours"]
    assert api.get("/projects", state="closed").json()["items"] == []


def test_a_dataset_is_chosen_by_name_and_its_newest_version_taken(api, version):
    assert create_project(api, version, dataset={"name": "pairs"})["version"]["number"] == 1
    assert fields(api.post("/projects", body(version, dataset={"name": "nope"}))) == {"dataset"}
    assert fields(api.post("/projects", body(version, dataset={"id": version.dataset_id, "version": 9}))) == {"dataset"}


def test_wrong_settings_are_named_by_their_path(api, version):
    wrong = {"lease_minutes": 0, "scales": [{"name": ""}]}
    found = fields(api.post("/projects", body(version, settings=wrong)))
    assert found == {"settings.lease_minutes", "settings.scales.0.name"}
    assert fields(api.post("/projects", body(version, overlap=51))) == {"overlap"}
    assert not Project.objects.exists()


def test_the_size_is_told_before_anything_is_made(api, version):
    found = api.post("/projects/size", {"kind": "rating", "dataset": {"id": version.dataset_id}, "overlap": 2}).json()
    assert found == {"tasks": 8, "answers": 16, "examples": 4, "exact": True}
    assert not Project.objects.exists()


def test_kinds_come_with_the_schema_of_their_answers(api):
    found = api.get("/projects/kinds").json()
    assert [kind["name"] for kind in found["items"]] == list(KINDS) and "lease_minutes" in found["settings"][
        "properties"
    ]
    assert "strength" in next(kind for kind in found["items"] if kind["name"] == "pairwise")["answer"]["properties"]


def test_states_and_changes(api, version):
    project = create_project(api, version)
    address = f"/projects/{project['id']}"
    assert api.post(f"{address}/state", {"state": "paused"}).status_code == 409
    assert api.post(f"{address}/state", {"state": "open"}).json()["state"] == "open"
    changed = api.patch(address, {"overlap": 1, "settings": {"gold_every": 4}}).json()
    assert (changed["overlap"], changed["progress"]["seats"], changed["settings"]["gold_every"]) == (1, 4, 4)
    assert fields(api.patch(address, {"settings": {"gold_every": -1}})) == {"settings.gold_every"}


def test_people_come_in_are_seen_and_paused(api, team, version):
    project = create_project(api, version, open=True)
    address = f"/projects/{project['id']}/people"
    added = api.post(address, {"email": "Anna@example.org"})
    assert (added.status_code, added.json()["name"]) == (201, "Anna")
    assert fields(api.post(address, {"email": "otto@example.net"})) == {"email"}
    (seat,) = queue.claim(team.annotator, Project.objects.get(), hold=1)
    paused = api.patch(f"{address}/{team.annotator.user_id}", {"paused": True}).json()
    assert (paused["paused"], paused["open"]) == (True, 0)
    assert api.get(address).json()["items"][0]["total"]["agreement"] == {"part": 0, "whole": 0, "value": None}


def test_a_link_is_shown_once_and_followed_once(api, team, version):
    project = create_project(api, version, open=True)
    address = f"/projects/{project['id']}/invites"
    link = api.post(address, {"uses": 1, "days": 2}).json()["link"]
    assert "link" not in api.get(address).json()["items"][0]
    secret = link.rsplit("/", 1)[1]
    joined = ApiClient(team.annotator).post("/projects/join", {"secret": secret}).json()
    assert joined == {"project": project["id"], "name": "Colours", "workspace": "Lab"}
    assert ApiClient(team.reviewer).post("/projects/join", {"secret": secret}).status_code == 409
    assert Participant.objects.count() == 1
    (mine,) = ApiClient(team.annotator).get("/projects/mine").json()["items"]
    assert (mine["project"], mine["free"], mine["done"]) == (project["id"], 4, 0)


def test_tasks_and_their_answers_are_read_and_made_gold(api, team, version):
    project = create_project(api, version, open=True)
    (seat,) = queue.claim(team.reviewer, Project.objects.get(), hold=1)
    queue.submit(team.reviewer, seat, {"verdict": "compared", "strength": 1}, None, 9)
    address = f"/projects/{project['id']}/tasks"
    listed = api.get(address, state="in_work").json()["items"]
    assert [(task["id"], task["state"], task["done"]) for task in listed] == [(seat.task_id, "in_work", 1)]
    detail = api.get(f"{address}/{seat.task_id}").json()
    assert detail["seats"][0]["answers"][0]["content"]["verdict"] == "compared"
    known = {"content": {"verdict": "compared", "strength": 2}}
    gold = api.client.put(f"/api/v1{address}/{seat.task_id}/gold", known, content_type="application/json")
    assert gold.json()["state"] == "gold"
    assert gold.json()["seats"][0]["answers"][0]["gold_right"] in (True, False)
    assert api.post(f"/projects/{project['id']}/gold", {"source": "labels", "most": 2}).json() == {
        "made": 2,
        "looked": 3,
    }
    assert fields(api.get(address, state="lost")) == {"state"}


def test_guidelines_and_progress(api, team, version):
    project = create_project(api, version, open=True, guidelines="Be fair.")
    address = f"/projects/{project['id']}"
    assert api.post(f"{address}/guidelines", {"text": "Be quick."}).json()["number"] == 2
    late = api.post(f"{address}/guidelines", {"text": "Be slow.", "base": 1})
    assert (late.status_code, late.json()["error"]["code"], late.json()["number"]) == (409, "overtaken", 2)
    assert [each["number"] for each in api.get(f"{address}/guidelines").json()["items"]] == [2, 1]
    found = api.get(f"{address}/progress").json()
    assert (found["per_day"], found["finish"], found["open_now"]) == (None, None, 0)
    (told,) = found["warnings"]
    assert told == (
        "Nobody works here yet: 1 annotator of the workspace does not take part. Add them, or invite others with a link."
    )
