"""Endpoints in the browser and over the API: who may do what. No key is ever shown."""

import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.team import ApiClient, browser
from webapp.inference.endpoints import checks, services, targets
from webapp.inference.models import Endpoint
from webapp.judging.judges.services import create_judge
from webapp.judging.models import Verdict

from ..conftest import KEY


def form(server, **changes):
    given = {"name": "judge", "url": server.url, "model": "tiny", "secret": KEY}
    return {**given, "concurrency": 4, "timeout_s": 60, "retries": 1, **changes}


@pytest.fixture
def recorded(team):
    return services.create_endpoint(team.researcher, "recorded", name="old judge")


def test_an_endpoint_is_saved_tested_and_shown_without_its_key(team, chat_server, as_researcher):
    answer = as_researcher.post("/models/endpoints/new?kind=chat", form(chat_server))
    endpoint = Endpoint.objects.get()
    assert answer.status_code == 302 and answer["Location"] == f"/models/endpoints/{endpoint.pk}"
    assert as_researcher.post(f"/models/endpoints/{endpoint.pk}/act", {"action": "test"}).status_code == 302
    check = endpoint.checks.get()
    waiting = as_researcher.get(f"/models/endpoints/{endpoint.pk}/checks/{check.pk}", headers={"HX-Request": "true"})
    assert b"hx-get" in waiting.content and "HX-Refresh" not in waiting
    checks.carry_out(check.pk)
    over = as_researcher.get(f"/models/endpoints/{endpoint.pk}/checks/{check.pk}", headers={"HX-Request": "true"})
    assert over["HX-Refresh"] == "true"
    for path in ("", f"/{endpoint.pk}", f"/{endpoint.pk}/edit", f"/{endpoint.pk}/checks/{check.pk}"):
        page = as_researcher.get(f"/models/endpoints{path}")
        assert page.status_code == 200 and KEY not in page.content.decode()
        assert endpoint.secret not in page.content.decode()


def test_a_refused_form_says_so_at_the_field_and_does_not_repeat_the_key(chat_server, as_researcher):
    answer = as_researcher.post("/models/endpoints/new?kind=chat", form(chat_server, url="http://10.0.0.1/v1"))
    assert answer.status_code == 422
    text = answer.content.decode()
    assert "ENDPOINT_NETWORKS" in text and 'id="id_url_error"' in text and KEY not in text


def test_saving_the_form_keeps_the_key_unless_it_is_removed(endpoint, chat_server, as_researcher):
    path = f"/models/endpoints/{endpoint.pk}/edit"
    assert as_researcher.post(path, form(chat_server, secret="", concurrency=9)).status_code == 302
    endpoint.refresh_from_db()
    assert endpoint.concurrency == 9 and targets.endpoint_target(endpoint).key == KEY
    assert as_researcher.post(path, form(chat_server, secret="", remove_secret="on")).status_code == 302
    endpoint.refresh_from_db()
    assert endpoint.secret == ""


def test_each_kind_has_its_form(as_researcher):
    for kind, field in (("chat", "id_url"), ("local", "id_registered_model"), ("recorded", "id_name")):
        assert f'id="{field}"'.encode() in as_researcher.get(f"/models/endpoints/new?kind={kind}").content
    assert as_researcher.get("/models/endpoints/new?kind=oracle").status_code == 404


def test_archived_endpoints_have_a_list_of_their_own(endpoint, as_researcher):
    as_researcher.post(f"/models/endpoints/{endpoint.pk}/act", {"action": "archive"})
    assert b"tiny" not in as_researcher.get("/models/endpoints").content
    assert b"tiny" in as_researcher.get("/models/endpoints?archived=1").content
    as_researcher.post(f"/models/endpoints/{endpoint.pk}/act", {"action": "restore"})
    assert b"tiny" in as_researcher.get("/models/endpoints").content


def test_recorded_outputs_are_uploaded_on_the_page(recorded, as_researcher):
    path = f"/models/endpoints/{recorded.pk}/recorded"
    bad = as_researcher.post(path, {"file": SimpleUploadedFile("o.jsonl", b'{"key": "a", "text": "b"}\n{')})
    assert bad.status_code == 422 and b"line 2: not JSON" in bad.content
    assert (
        as_researcher.post(path, {"file": SimpleUploadedFile("o.jsonl", b'{"key": "a", "text": "b"}')}).status_code
        == 302
    )
    assert b"1 recorded output" in as_researcher.get(f"/models/endpoints/{recorded.pk}").content


PAGES = ["", "/new", "/{id}", "/{id}/edit", "/{id}/checks/{check}", "/{id}/use"]
POSTS = ["/new", "/{id}/edit", "/{id}/act", "/{id}/recorded"]
ALLOWED = {
    "annotator": (set(), set()),
    "reviewer": ({"", "/{id}", "/{id}/checks/{check}", "/{id}/use"}, set()),
    "researcher": (set(PAGES), set(POSTS)),
    "owner": (set(PAGES), set(POSTS)),
}


@pytest.mark.parametrize("role", ALLOWED)
def test_who_may_open_and_change_what(team, endpoint, role):
    check = checks.start_check(team.researcher, endpoint, "test")
    client = browser(getattr(team, role))

    def address(path):
        return "/models/endpoints" + path.format(id=endpoint.pk, check=check.pk)

    may_get, may_post = ALLOWED[role]
    assert {path for path in PAGES if client.get(address(path)).status_code == 200} == may_get
    assert {path for path in POSTS if client.post(address(path)).status_code != 403} == may_post


def test_endpoints_of_others_are_not_there(team, endpoint):
    check = checks.start_check(team.researcher, endpoint, "test")
    client, script = browser(team.outsider), ApiClient(team.outsider)
    for path in PAGES[2:]:
        assert client.get("/models/endpoints" + path.format(id=endpoint.pk, check=check.pk)).status_code == 404
    for path in ("", "/recorded", "/use", f"/checks/{check.pk}"):
        assert script.get(f"/endpoints/{endpoint.pk}{path}").status_code == 404
    assert script.get("/endpoints").json()["items"] == []


def test_the_api_does_what_the_pages_do(team, chat_server, api):
    body = {"name": "judge", "url": chat_server.url, "model": "tiny", "secret": KEY, "price_prompt": "0.15"}
    made = api.post("/endpoints", body)
    assert made.status_code == 201 and made.json()["has_secret"] and KEY not in made.content.decode()
    path = f"/endpoints/{made.json()['id']}"
    assert api.patch(path, {"concurrency": 16, "secret": ""}).json()["concurrency"] == 16
    assert api.get(path).json()["has_secret"] is False
    started = api.post(f"{path}/test").json()
    checks.carry_out(started["id"])
    over = api.get(f"{path}/checks/{started['id']}").json()
    assert (over["state"], over["code"]) == ("failed", "refused")  # the key was removed
    assert api.get(path).json()["troubles"][0]["code"] == "refused"
    assert api.patch(path, {"archived": True}).json()["archived_at"]
    assert api.get("/endpoints").json()["items"] == []
    assert [each["name"] for each in api.get("/endpoints", archived=True).json()["items"]] == ["judge"]
    assert api.post(f"{path}/test").status_code == 409


def test_the_api_names_the_field(api):
    refused = api.post("/endpoints", {"name": "j", "model": "m", "url": "http://127.0.0.1/v1"})
    assert refused.status_code == 422
    assert [each["path"] for each in refused.json()["error"]["fields"]] == ["url"]
    assert (
        api.post("/endpoints", {"name": "j", "kind": "local"}).json()["error"]["fields"][0]["path"]
        == "registered_model"
    )
    assert api.post("/endpoints", {"name": "j", "strange": 1}).status_code == 422


def test_recorded_outputs_over_the_api(api, recorded):
    path = f"/api/v1/endpoints/{recorded.pk}/recorded"
    file = io.BytesIO(b'{"key": "a", "text": "b"}')
    assert api.client.post(path, {"file": file}).json() == {"added": 1, "unchanged": 0}
    assert api.get(f"/endpoints/{recorded.pk}/recorded").json()["items"] == [{"key": "a", "text": "b"}]
    refused = api.client.post(path, {"file": io.BytesIO(b"{")}).json()["error"]
    assert refused["fields"][0]["path"] == "file.1"


def test_a_reading_token_and_lesser_roles_change_nothing(team, endpoint):
    path = f"/endpoints/{endpoint.pk}"
    for script in (ApiClient(team.researcher, "read"), ApiClient(team.reviewer)):
        assert script.get(path).status_code == 200
        for answer in (script.post("/endpoints", {"name": "x"}), script.patch(path, {}), script.post(f"{path}/test")):
            assert answer.status_code == 403
    annotator = ApiClient(team.annotator)
    assert annotator.get("/endpoints").status_code == annotator.get(path).status_code == 403


def test_the_list_costs_the_same_for_two_and_for_twenty(team, as_researcher, django_assert_max_num_queries):
    for number in range(20):
        services.create_endpoint(team.researcher, "recorded", name=f"old {number}")
    with django_assert_max_num_queries(8):
        as_researcher.get("/models/endpoints")


def test_use_adds_up_what_verdicts_took_and_leaves_unknown_what_none_says(team, endpoint, api):
    version = create_judge(team.researcher, name="strict", spec={"kind": "criterion"}, endpoint=endpoint)
    for number, tokens in enumerate((100, 200, None)):
        Verdict.objects.create(version=version, key=str(number), state="done", prompt_tokens=tokens)
    [row] = api.get(f"/endpoints/{endpoint.pk}/use").json()["items"]
    assert (row["judge"], row["version"], row["verdicts"], row["prompt_tokens"], row["cost"]) == (
        "strict",
        1,
        3,
        300,
        None,
    )
    create_judge(team.researcher, name="mild", spec={"kind": "criterion"}, endpoint=endpoint)
    first = api.get(f"/endpoints/{endpoint.pk}/use", limit=1).json()
    rest = api.get(f"/endpoints/{endpoint.pk}/use", limit=1, cursor=first["next"]).json()
    assert [each["judge"] for each in (*first["items"], *rest["items"])] == ["mild", "strict"] and not rest["next"]
    page = browser(team.reviewer).get(f"/models/endpoints/{endpoint.pk}/use").content.decode()
    assert "strict v1" in page and f"/judges/{version.judge_id}/versions/1" in page
