"""A token opens only the areas that it names, and every operation of the API belongs to an area."""

import re
from datetime import timedelta
from importlib import import_module

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tests.team import ApiClient, browser
from webapp.accounts import areas
from webapp.accounts.authentication.credentials import TokenAuth
from webapp.accounts.models import ApiToken
from webapp.accounts.tokens.services import create_token
from webapp.api import ROUTERS, api
from webapp.core.models import AuditEntry

pytestmark = pytest.mark.django_db
PATHS = api.get_openapi_schema()["paths"]
OPERATIONS = [(method.upper(), path) for path, methods in PATHS.items() for method in methods]
FREE = {("GET", "/api/v1/me"), ("GET", "/api/v1/version"), ("GET", "/api/v1/workspaces")}


def script(membership, rights) -> Client:
    _, secret = create_token(membership, "test", rights=rights)
    return Client(headers={"authorization": f"Bearer {secret}"})


def send_request(client: Client, method: str, path: str):
    return client.generic(method, re.sub(r"{\w+}", "1", path), content_type="application/json")


def by_tokens() -> list[tuple[str, str]]:
    """All operations except those that runs and jobs call with their own keys."""
    return [each for each in OPERATIONS if not each[1].startswith("/api/v1/ingest/")]


def test_every_operation_has_an_area():
    without = []
    for method, path in by_tokens():
        try:
            if areas.right_needed(method, path) is None:
                without.append((method, path))
        except areas.Unplaced:
            pytest.fail(f"{method} {path} has no area: say in webapp.accounts.areas which")
    assert set(without) == FREE
    assert ROUTERS and any(isinstance(auth, TokenAuth) for auth in api.auth)


def test_a_token_with_all_areas_but_one_is_refused_there_by_name(team, monkeypatch):
    """Every operation, called with a token of an owner that has all other areas."""
    monkeypatch.setattr("webapp.accounts.authentication.credentials.REQUESTS_PER_MINUTE", 10**9)
    clients = {}
    for area in areas.Area:
        rights = areas.rights_in_all_areas("write")
        del rights[area]
        clients[area] = script(team.owner, rights)
    for method, path in by_tokens():
        need = areas.right_needed(method, path)
        if need is None:
            continue
        answer = send_request(clients[need.area], method, path)
        assert answer.status_code == 403, (method, path)
        error = answer.json()
        assert (error["error"]["code"], error["needed"]) == ("token_lacks_area", str(need)), (method, path)
        assert str(need) in error["error"]["message"]


def test_reading_does_not_write_and_writing_reads(team):
    reader, writer = (script(team.owner, {"datasets": right}) for right in ("read", "write"))
    assert reader.get("/api/v1/datasets").status_code == 200 == writer.get("/api/v1/datasets").status_code
    refused = send_request(reader, "POST", "/api/v1/datasets/preview")
    assert (refused.status_code, refused.json()["needed"]) == (403, "datasets:write")
    assert send_request(writer, "POST", "/api/v1/datasets/preview").status_code == 422
    assert reader.get("/api/v1/me").status_code == 200 and reader.get("/api/v1/runs").status_code == 403


def test_making_a_judge_of_a_trained_model_asks_for_the_area_of_judges(team):
    models, judges = (script(team.owner, {area: "write"}) for area in ("models", "judging"))
    refused = send_request(models, "POST", "/api/v1/models/{id}/judge")
    assert (refused.status_code, refused.json()["needed"]) == (403, "judging:write")
    assert send_request(judges, "POST", "/api/v1/models/{id}/judge").status_code in (404, 422)


def test_an_address_that_nobody_has_placed_is_closed(team, monkeypatch):
    monkeypatch.setattr(areas, "OF", {key: area for key, area in areas.OF.items() if key != "datasets"})
    answer = ApiClient(team.owner).get("/datasets")
    assert (answer.status_code, answer.json()["error"]["message"]) == (403, "A token cannot use this address.")
    assert browser(team.owner).get("/api/v1/datasets").status_code == 200  # people at pages do not use tokens


def test_what_a_token_may_is_chosen_at_the_page_by_api_and_by_command(team, as_owner):
    form = {"name": "nightly", "scope": "areas", "lasts": "30", "datasets": "write", "models": "read"}
    assert "shown only now" in as_owner.post("/settings/tokens", form).content.decode()
    assert ApiToken.objects.get().areas == {"datasets": "write", "models": "read"}
    assert "datasets: write · models: read" in as_owner.get("/settings/tokens").content.decode()
    assert (
        "at least one area"
        in as_owner.post("/settings/tokens", {**form, "datasets": "", "models": ""}).content.decode()
    )

    def made(body):
        return as_owner.post("/api/v1/tokens", {"name": "x", **body}, content_type="application/json")

    assert made({"areas": {"judging": "read"}}).json()["areas"] == {"judging": "read"}
    assert made({"scope": "read"}).json()["areas"] == areas.rights_in_all_areas("read")
    for wrong, field in (({}, "areas"), ({"moon": "read"}, "areas.moon"), ({"models": "all"}, "areas.models")):
        answer = made({"areas": wrong})
        assert (answer.status_code, answer.json()["error"]["fields"][0]["path"]) == (422, field)
    call_command("token", "rosa@example.org", "--area", "experiments:read", "--area", "models:write")
    assert ApiToken.objects.get(user=team.researcher.user).areas == {"experiments": "read", "models": "write"}
    with pytest.raises(CommandError, match="moon"):
        call_command("token", "rosa@example.org", "--area", "moon:read")


def test_owners_see_and_revoke_every_token_of_their_workspace(team, as_owner):
    token, secret = create_token(team.researcher, "nightly", rights={"datasets": "read"})
    create_token(team.outsider, "elsewhere")
    Client(headers={"authorization": f"Bearer {secret}"}).get("/api/v1/datasets", REMOTE_ADDR="203.0.113.9")
    page = as_owner.get("/settings/tokens").content.decode()
    assert (
        all(word in page for word in ("Rosa", "nightly", "203.0.113.9", "datasets: read")) and "elsewhere" not in page
    )
    rows = as_owner.get("/api/v1/tokens/all").json()["items"]
    assert [(row["email"], row["last_used_from"]) for row in rows] == [("rosa@example.org", "203.0.113.9")]
    token.refresh_from_db()
    assert timezone.now() - token.last_used_at < timedelta(minutes=1)
    for other in (browser(team.researcher), browser(team.annotator)):
        assert other.get("/api/v1/tokens/all").status_code == 403
        assert "Tokens of others" not in other.get("/settings/tokens").content.decode()
    mine = script(team.owner, {"account": "write"})  # for the person's own tokens
    assert send_request(mine, "DELETE", f"/api/v1/tokens/{token.pk}").json()["needed"] == "administration:write"
    as_owner.post(f"/settings/tokens/{token.pk}/revoke", {"sure": "1"})
    told = AuditEntry.objects.get(action="token.revoked")
    assert (told.actor, told.detail["whose"]) == (team.owner.user, team.researcher.user_id)
    assert Client(headers={"authorization": f"Bearer {secret}"}).get("/api/v1/me").status_code == 401


def test_tokens_of_before_keep_what_they_could():
    """There were only those areas then. `tests/upgrade` runs this migration on databases of earlier releases."""
    then = import_module("webapp.accounts.migrations.0008_token_areas").AREAS
    assert set(then) <= set(areas.Area)
