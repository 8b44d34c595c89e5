"""The API as a whole: who may use it, and the form of errors."""

import pytest
from django.test import Client

from tests.pages import page_html
from tests.team import ApiClient
from webapp.accounts.tokens.services import create_token

pytestmark = pytest.mark.django_db


def test_a_token_opens_its_workspace(api, team):
    body = api.get("/me").json()
    assert body["email"] == "rosa@example.org"
    assert body["workspace"]["slug"] == team.workspace.slug


def test_a_session_works_for_reading_and_needs_csrf_for_changing(team, as_owner):
    assert as_owner.get("/api/v1/me").json()["role"] == "owner"
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = as_owner.cookies
    response = strict.post("/api/v1/tokens", {"name": "x"}, content_type="application/json")
    assert response.status_code == 403
    assert response.json()["error"]["code"] == "forbidden"


@pytest.mark.parametrize("header", ["", "Bearer nonsense", "Bearer ts_", "Basic abc"])
def test_without_a_valid_token_nothing_opens(header):
    response = Client(headers={"authorization": header}).get("/api/v1/me")
    assert response.status_code == 401
    error = response.json()["error"]
    assert error["code"] == "not_signed_in"
    assert error["id"] == response["X-Request-Id"]


def test_a_read_token_may_not_change_anything(team):
    reader = ApiClient(team.owner, "read")
    assert reader.get("/tokens").status_code == 200
    response = reader.post("/tokens", {"name": "more"})
    assert (response.status_code, response.json()["error"]["code"]) == (403, "token_lacks_area")


def test_a_token_dies_with_the_membership(team):
    client = ApiClient(team.annotator)
    team.annotator.delete()
    assert client.get("/me").status_code == 401


@pytest.mark.parametrize(
    "body",
    ["{", "[" * 3000, '{"name": NaN}', '{"name": "a\\u0000b"}', '{"name": "\\ud800"}', "null", '{"name": {}}', "\x00"],
)
def test_bad_json_is_the_callers_error(api, body):
    response = api.client.post("/api/v1/tokens", body, content_type="application/json")
    assert response.status_code in (400, 422)
    assert response.json()["error"]["message"]


def test_a_missing_field_is_named(api):
    response = api.post("/tokens", {})
    assert response.status_code == 422
    assert response.json()["error"]["fields"] == [{"path": "name", "message": "is missing"}]


def refused(answer) -> dict[str, str]:
    assert answer.status_code == 422, answer.content
    return {each["path"]: each["message"] for each in answer.json()["error"]["fields"]}


def test_what_is_wrong_in_a_body_is_told_in_plain_words(api):
    assert refused(api.post("/runs", {"recipe": 5, "dataset": "x", "configs": {}, "retries": "many"})) == {
        "recipe": "must be a text",
        "configs": "unknown key",
        "retries": "must be a whole number",
    }
    assert refused(api.post("/runs", {"recipe": "policy"})) == {"dataset": "is missing"}
    several = "must be a whole number, or a text, or an object"
    assert refused(api.post("/runs", {"recipe": "policy", "dataset": []})) == {"dataset": several}
    assert refused(api.post("/runs", {"recipe": "policy", "dataset": {"nam": "x"}})) == {"dataset.nam": "unknown key"}
    assert refused(api.get("/costs?by=run&month=2026-13"))["month"].startswith("must have the form ")
    times = refused(api.post("/runs", {"recipe": "policy", "dataset": 1, "not_before": "tomorrow"}))
    assert times == {"not_before": "must be a time with its zone, such as 2026-12-01T22:00:00Z"}
    assert refused(api.post("/webhooks", {"url": "https://x.test", "events": "all"})) == {"events": "must be a list"}


def test_a_key_that_a_body_does_not_have_is_refused_and_not_lost(api):
    """A script that misspells a key must learn it: before, the project was made without its guidelines."""
    body = {"name": "Which is better", "kind": "pairwise", "dataset": 1, "guidlines": "Prefer the shorter."}
    assert refused(api.post("/projects", body)) == {"guidlines": "unknown key"}


def test_a_key_that_looks_like_the_name_of_a_form_is_named_too(api):
    """Pydantic puts the forms of a value into the place of an error (`dataset.DatasetIn.nam`), which nobody has sent."""
    body = {"name": "Which is better", "kind": "pairwise", "dataset": 1}
    assert refused(api.post("/projects", body | {"Guidelines": "Prefer the shorter.", "str": 1})) == {
        "Guidelines": "unknown key",
        "str": "unknown key",
    }
    assert refused(api.post("/runs", {"recipe": "policy", "dataset": {"Name": "x"}})) == {"dataset.Name": "unknown key"}


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/runs/999999", "run"),
        ("/datasets/999999", "dataset"),
        ("/models/aliases/nobody", "alias"),
        ("/recipes/polcy", "recipe"),
    ],
)
def test_what_is_not_there_is_named(api, path, what):
    answer = api.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"]["message"] == f"There is no such {what} here, or you may not see it."


@pytest.mark.parametrize("query", [{"cursor": "?"}, {"cursor": "W10="}, {"limit": 0}, {"limit": 10**30}])
def test_a_bad_page_is_the_callers_error(api, query):
    response = api.get("/tokens", **query)
    assert response.status_code == 422


def test_a_huge_id_is_not_found(api):
    assert api.delete(f"/tokens/{10**30}").status_code == 404


def test_a_nul_in_the_address_is_refused(api):
    assert api.client.get("/api/v1/tokens?cursor=%00").status_code == 400


def test_pages_follow_each_other_without_gaps(api, team):
    made = [create_token(team.researcher, f"t{n}")[0].pk for n in range(5)]
    seen, cursor = [], None
    while True:
        body = api.get("/tokens", limit=2, **({"cursor": cursor} if cursor else {})).json()
        seen += [item["id"] for item in body["items"]]
        cursor = body["next"]
        if cursor is None:
            break
    assert seen[:5] == made[::-1]
    assert len(seen) == len(set(seen)) == 6


def test_too_many_requests_say_when_to_come_back(api, monkeypatch):
    monkeypatch.setattr("webapp.accounts.authentication.credentials.REQUESTS_PER_MINUTE", 2)
    answers = [api.get("/me") for _ in range(3)]
    assert [a.status_code for a in answers] == [200, 200, 429]
    assert 1 <= int(answers[-1]["Retry-After"]) <= 60


def test_a_lost_database_is_a_pause_not_a_crash(api, monkeypatch):
    from django.db import OperationalError

    def away(*args):
        raise OperationalError("connection refused")

    monkeypatch.setattr("webapp.accounts.tokens.queries.my_tokens", away)
    response = api.get("/tokens")
    assert (response.status_code, response["Retry-After"]) == (503, "5")


def test_the_reference_lists_every_operation(client):
    page = page_html(client.get("/api/v1/docs"))
    schema = client.get("/api/v1/openapi.json").json()
    assert all(path in page for path in schema["paths"])


@pytest.mark.parametrize(
    ("method", "address", "status", "code"),
    [
        ("get", "/nowhere", 404, "not_found"),
        ("delete", "/tokens/abc", 404, "not_found"),
        ("get", "/tokens/", 404, "not_found"),
        ("post", "/me", 405, "method_not_allowed"),
        ("get", "/tokens?cursor=%00", 400, "bad_request"),
    ],
)
def test_errors_from_outside_the_api_have_its_shape(api, method, address, status, code):
    response = getattr(api.client, method)(f"/api/v1{address}")
    assert (response.status_code, response["Content-Type"]) == (status, "application/json; charset=utf-8")
    error = response.json()["error"]
    assert (error["code"], error["id"], error["fields"]) == (code, response["X-Request-Id"], [])
    assert int(response["Content-Length"]) == len(response.content)
    assert response.headers.get("Allow") == ("GET" if status == 405 else None)


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=é"])
def test_a_form_that_cannot_be_read_is_the_callers_error(api, kind):
    response = api.client.generic("POST", "/api/v1/datasets/import", b"no form", content_type=kind)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "bad_request")


def test_too_many_fields_in_a_form_are_the_callers_error(api, settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 2
    response = api.client.post("/api/v1/datasets/import", {"name": "a", "format": "auto", "mapping": ""})
    assert (response.status_code, response.json()["error"]["code"]) == (400, "bad_request")


def test_a_wrong_field_of_a_form_is_named(api):
    response = api.client.post("/api/v1/datasets/import", {"heldout_share": "2"})
    assert {field["path"] for field in response.json()["error"]["fields"]} == {"file", "name", "heldout_share"}


def test_the_reference_names_what_a_request_takes(client):
    page = page_html(client.get("/api/v1/docs"))
    assert "<code>overlap</code> in body: integer. Number of people who answer each task" in page
    assert "<code>file</code> in form: file, required" in page
    assert "<code>state</code> in body: open, paused or closed, required" in page
    assert "<code>base</code> in query: integer, required" in page
    assert "Freezes the version. A worker makes the tasks" in page
