"""Who may open which page of a project and call which endpoint. Everything that is not allowed here is refused."""

import pytest

from tests.team import ApiClient, browser
from webapp.annotation.models import Task
from webapp.annotation.people import services as people
from webapp.annotation.projects import task_services

pytestmark = pytest.mark.django_db
READS = {"owner": 200, "researcher": 200, "reviewer": 200, "annotator": 403, "outsider": 404}
WRITES = {"owner": 0, "researcher": 0, "reviewer": 403, "annotator": 403, "outsider": 404}
PAGES = (
    *("/projects/{project}", "/projects/{project}/tasks", "/projects/{project}/tasks/{task}"),
    *("/projects/{project}/people", "/projects/{project}/guidelines", "/projects/{project}/gold"),
)
FORMS = (
    "/projects/{project}/state",
    "/projects/{project}/people",
    "/projects/{project}/people/add",
    "/projects/{project}/people/{user}",
    "/projects/{project}/invites/{invite}/revoke",
    "/projects/{project}/guidelines",
    "/projects/{project}/settings",
    "/projects/{project}/tasks/{task}/gold",
    "/projects/{project}/gold",
)
API_READS = (
    "/projects/{project}",
    "/projects/{project}/progress",
    "/projects/{project}/guidelines",
    "/projects/{project}/people",
    "/projects/{project}/tasks",
    "/projects/{project}/tasks/{task}",
)
API_WRITES = (
    ("patch", "/projects/{project}", {"name": "Shades"}),
    ("post", "/projects/{project}/state", {"state": "paused"}),
    ("post", "/projects/{project}/guidelines", {"text": "Be fair."}),
    ("post", "/projects/{project}/people", {"user": 1}),
    ("patch", "/projects/{project}/people/{user}", {"paused": True}),
    ("get", "/projects/{project}/invites", None),
    ("post", "/projects/{project}/invites", {"uses": 3}),
    ("delete", "/projects/{project}/invites/{invite}", None),
    ("put", "/projects/{project}/tasks/{task}/gold", {"content": None}),
    ("post", "/projects/{project}/gold", {"source": "labels"}),
)
OF_NO_PROJECT = (
    ("get", "/projects", None, {"owner": 200, "researcher": 200, "reviewer": 200, "annotator": 403, "outsider": 200}),
    ("get", "/projects/kinds", None, READS | {"outsider": 200}),
    ("get", "/projects/mine", None, dict.fromkeys(READS, 200)),
)


@pytest.fixture
def ids(team, make_project) -> dict[str, int]:
    project = make_project()
    task_services.make(project.pk)
    people.add_participant(team.researcher, project, team.annotator.user)
    invite, _ = people.invite(team.researcher, project)
    task = Task.objects.filter(project=project).first()
    return {"project": project.pk, "task": task.pk, "user": team.annotator.user_id, "invite": invite.pk}


def everybody(team):
    return [(name, getattr(team, name)) for name in READS]


@pytest.mark.parametrize("address", PAGES)
def test_pages_open_from_reviewer_upwards(address, team, ids):
    found = {name: browser(who).get(address.format(**ids)).status_code for name, who in everybody(team)}
    assert found == READS


@pytest.mark.parametrize("address", ("/projects/new", "/projects/{project}/settings"))
def test_what_changes_a_project_opens_from_researcher_upwards(address, team, ids):
    found = {name: browser(who).get(address.format(**ids)).status_code for name, who in everybody(team)}
    assert found == {**READS, "reviewer": 403, "outsider": 200 if address == "/projects/new" else 404}


@pytest.mark.parametrize("address", FORMS)
def test_forms_are_taken_from_researcher_upwards(address, team, ids):
    for name, who in everybody(team):
        status = browser(who).post(address.format(**ids)).status_code
        assert status == WRITES[name] or (not WRITES[name] and status in (200, 302, 422)), (name, status)


@pytest.mark.parametrize("address", API_READS)
def test_the_api_answers_from_reviewer_upwards(address, team, ids):
    found = {name: ApiClient(who).get(address.format(**ids)).status_code for name, who in everybody(team)}
    assert found == READS


@pytest.mark.parametrize(("method", "address", "body"), API_WRITES)
def test_the_api_changes_from_researcher_upwards(method, address, body, team, ids):
    for name, who in everybody(team):
        client = ApiClient(who).client
        options = {} if body is None else {"data": body, "content_type": "application/json"}
        status = getattr(client, method)(f"/api/v1{address.format(**ids)}", **options).status_code
        assert status == WRITES[name] or (not WRITES[name] and status in (200, 201, 204, 404, 422)), (name, status)


@pytest.mark.parametrize(("method", "address", "body", "expected"), OF_NO_PROJECT)
def test_lists_of_the_workspace(method, address, body, expected, team, ids):
    found = {name: ApiClient(who).get(address).status_code for name, who in everybody(team)}
    assert found == expected


def test_the_outsider_finds_no_project_of_the_lab(team, ids):
    assert ApiClient(team.outsider).get("/projects").json()["items"] == []
    assert ApiClient(team.outsider).get("/projects/mine").json()["items"] == []


def test_a_task_is_found_only_under_its_own_project(team, ids, make_project):
    other = make_project(name="Other")
    address = f"/projects/{other.pk}/tasks/{ids['task']}"
    assert browser(team.owner).get(address).status_code == 404
    assert ApiClient(team.owner).get(address).status_code == 404


def test_an_invitation_is_revoked_only_under_its_own_project(team, ids, make_project):
    other = make_project(name="Other")
    assert ApiClient(team.owner).delete(f"/projects/{other.pk}/invites/{ids['invite']}").status_code == 404


def test_what_an_annotator_sees_names_no_model_label_or_colleague(team, ids, as_annotator):
    page = as_annotator.get("/").content.decode()
    assert "Colours" in page
    for secret in ("secret-model", "r0", "strength", "Rosa", "/datasets"):
        assert secret not in page


def test_annotators_find_only_their_own_projects(team, ids, make_project, as_annotator):
    make_project(name="Colours of others")
    found = as_annotator.get("/search.json?q=colours").json()["items"]
    assert [(item["label"], item["url"]) for item in found] == [("Colours", f"/projects/{ids['project']}/work")]
