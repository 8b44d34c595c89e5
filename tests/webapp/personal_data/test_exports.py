"""Everything that the installation stores about a person, in one file, for that person alone."""

import io
import re
from datetime import timedelta
from zipfile import ZipFile

import pytest
from axes.models import AccessAttempt
from django.apps import apps
from django.test import Client
from django.utils import timezone

from tests.team import ApiClient, browser
from tests.webapp.test_what_annotators_see import working
from trainer.contracts import jsonlines
from webapp.accounts.access import BY_HAND
from webapp.accounts.members.services import invite
from webapp.accounts.models import Invite, Proof, User
from webapp.accounts.tokens.services import create_token
from webapp.annotation.models import Answer, Task
from webapp.annotation.review import services as review
from webapp.api import api
from webapp.core.models import AuditEntry
from webapp.personal_data import services, writing
from webapp.personal_data.data_inventory import HOLDINGS, NO_ROWS
from webapp.personal_data.erasing import erase
from webapp.personal_data.models import DataExport

pytestmark = pytest.mark.django_db
SECRET = {"password", "digest", "token_digest", "secret", "session_key", "data"}


def ways() -> set[str]:
    """Every column, and every relation through a table, that leads from a model to a person."""
    return {
        f"{model._meta.label}.{field.name}"
        for model in apps.get_models(include_auto_created=True)
        for field in model._meta.get_fields(include_hidden=True)
        if field.is_relation and not field.auto_created and field.related_model is User
    }


def unzipped(content: bytes) -> dict[str, list[dict]]:
    with ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {
            name: jsonlines.rows(archive.read(name).decode()) for name in archive.namelist() if name.endswith(".jsonl")
        }


def exported_file(membership) -> bytes:
    row = services.ask(membership.user)
    services.carry_out(row.pk)
    return services.path_of(row).read_bytes()


def test_whatever_names_a_person_is_exported_or_left_out_with_a_reason():
    listed = {f"{each.model}.{each.way}" for each in HOLDINGS} | set(NO_ROWS)
    assert ways() - listed == set(), (
        "say in webapp.personal_data.data_inventory what an export and an erasure do with it"
    )
    assert all(each.about for each in HOLDINGS)
    for holding in filter(lambda each: each.file, HOLDINGS):
        columns = {field.name for field in holding.source._meta.concrete_fields}
        assert set(holding.hide) <= columns, holding  # a misspelt name would hide nothing
        assert not SECRET & (set(holding.only) or columns - set(holding.hide)), holding


def test_the_file_holds_what_a_person_is_and_did(team):
    project = working(team, "pairwise")
    review.comment(team.annotator, Task.objects.first(), "guidelines", "What is clear?")
    create_token(team.annotator, "nightly")
    invite(team.owner, "anna.two@example.org", "annotator")
    found = unzipped(exported_file(team.annotator))
    assert [row["email"] for row in found["profile.jsonl"]] == ["anna@example.org"]
    assert [row["workspace_name"] for row in found["memberships.jsonl"]] == ["Lab"]
    assert [row["name"] for row in found["tokens.jsonl"]] == ["nightly"]
    assert [row["text"] for row in found["comments.jsonl"]] == ["What is clear?"]
    assert len(found["answers.jsonl"]) == Answer.objects.filter(assignment__user=team.annotator.user).count() == 1
    assert found["answers.jsonl"][0]["content"] == {**found["answers.jsonl"][0]["content"], "strength": 1}
    assert {row["action"] for row in found["audit_log.jsonl"]} >= {"token.created"}
    assert [row["pseudonym"] for row in found["figures.jsonl"]] == ["annotator-1"]
    assert found["invitations.jsonl"] == [] and found["project_invitations.jsonl"] == []
    assert unzipped(exported_file(team.researcher))["made/ProjectInvite.jsonl"][0]["project_id"] == project.pk


def test_nobody_else_and_no_secret_stands_in_it(team):
    working(team, "pairwise")
    token, secret = create_token(team.annotator, "nightly")
    team.annotator.user.set_password("quartz violin meadow")
    team.annotator.user.save()
    with ZipFile(io.BytesIO(exported_file(team.annotator))) as archive:
        text = "".join(archive.read(name).decode() for name in archive.namelist())
    for word in ("Rosa", "rosa@", "RATER", "ID-ONE", "MODEL-", "CLASSIFIED", "gold_right", secret, token.digest):
        assert word not in text, word
    assert team.annotator.user.password not in text and "anna@example.org" in text


def test_an_address_that_nobody_verified_leads_to_nothing(team):
    """A person who signs up with somebody else's address can neither read nor delete what was sent to it, nor see who tried to sign in."""
    invite(team.owner, "zoe@example.org", "annotator")
    Client().post("/sign-in", {"email": "zoe@example.org", "password": "wrong"})
    thief = User.objects.create_user("zoe@example.org")
    by_address = [each for each in HOLDINGS if each.by == "email"]
    assert {each.file for each in by_address} == {"invitations", "failed_sign_ins", "project_invitations"}
    assert [row for each in by_address for row in each.values(thief)] == []
    erase(thief, thief)
    assert Invite.objects.filter(email="zoe@example.org").exists()
    assert AccessAttempt.objects.filter(username="zoe@example.org").exists()
    zoe = User.objects.create_user("zoe@example.org", proof=Proof.MAIL)
    assert {each.file for each in by_address if each.rows(zoe).exists()} == {"invitations", "failed_sign_ins"}


def test_the_index_names_every_file(team):
    with ZipFile(io.BytesIO(exported_file(team.annotator))) as archive:
        index = archive.read("index.html").decode()
        assert set(re.findall(r"[\w/]+\.jsonl", index)) >= {name for name in archive.namelist() if name != "index.html"}
    assert "datasets.Dataset" in index


def test_a_person_takes_their_own_at_the_page(
    team, as_annotator, as_researcher, eager, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        assert as_annotator.post("/settings/data").status_code == 302
    row = DataExport.objects.get()
    assert f"/settings/data/{row.pk}" in as_annotator.get("/settings/data").content.decode()
    answer = as_annotator.get(f"/settings/data/{row.pk}")
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert unzipped(b"".join(answer.streaming_content))["profile.jsonl"][0]["name"] == "Anna"
    assert as_researcher.get(f"/settings/data/{row.pk}").status_code == 404
    said = AuditEntry.objects.filter(actor=team.annotator.user).values_list("action", flat=True)
    assert {"personal_data.asked", "personal_data.fetched"} <= set(said)


def test_the_api_is_open_to_who_is_signed_in_and_to_no_token(team, eager, django_capture_on_commit_callbacks):
    """A token is a key to one workspace. The file has data of all of them."""
    mine, other, script = browser(team.annotator), browser(team.owner), ApiClient(team.annotator)
    with django_capture_on_commit_callbacks(execute=True):
        refused = [script.post("/me/data")]
        assert not DataExport.objects.exists()
        asked = mine.post("/api/v1/me/data")
    path = f"/me/data/{asked.json()['id']}"
    assert asked.status_code == 202 and mine.get(f"/api/v1{path}").json()["state"] == "ready"
    assert b"".join(mine.get(f"/api/v1{path}/download").streaming_content)[:2] == b"PK"  # type: ignore[attr-defined]
    assert [other.get(f"/api/v1{each}").status_code for each in (path, f"{path}/download")] == [404, 404]
    assert [each["id"] for each in mine.get("/api/v1/me/data").json()["items"]] == [asked.json()["id"]]
    refused += [script.get(each) for each in ("/me/data", path, f"{path}/download")]
    assert [(each.status_code, each.json()["error"]["code"]) for each in refused] == [(403, "data_by_token")] * 4


def test_the_document_names_what_no_token_opens():
    paths = api.get_openapi_schema()["paths"]
    told = {(path, method): each.get("x-token-needs") for path in paths for method, each in paths[path].items()}
    closed = {place for place, needs in told.items() if needs == BY_HAND["x-token-needs"]}
    assert closed == {place for place in told if place[0].startswith("/api/v1/me/data")} | {("/api/v1/tokens", "post")}
    assert told["/api/v1/tokens", "get"] == "account:read"


def test_one_file_at_a_time_is_written(team):
    services.ask(team.annotator.user)
    assert browser(team.annotator).post("/api/v1/me/data").status_code == 409
    services.ask(team.owner.user)  # the file of another person does not matter


def test_another_file_takes_the_place_of_the_one_before(team, django_capture_on_commit_callbacks):
    """So nobody can fill the disk with requests. A file that an administrator passed on and a file that the person asked for are separate."""
    theirs, _ = services.ask_for(team.owner.user, team.annotator.user)
    services.carry_out(theirs.pk)
    first = services.ask(team.annotator.user)
    services.carry_out(first.pk)
    with django_capture_on_commit_callbacks(execute=True):
        second = services.ask(team.annotator.user)
    assert not services.path_of(first).exists() and services.path_of(theirs).exists()
    assert set(DataExport.objects.values_list("pk", flat=True)) == {theirs.pk, second.pk}
    services.carry_out(second.pk)
    with django_capture_on_commit_callbacks(execute=True):
        third, _ = services.ask_for(team.owner.user, team.annotator.user)
    assert set(DataExport.objects.values_list("pk", flat=True)) == {second.pk, third.pk}
    assert "which replaces it" in browser(team.annotator).get("/settings/data").content.decode()


def test_an_administrator_passes_a_link_on_that_ends(team, as_owner, as_researcher):
    path = f"/installation/people/{team.annotator.user_id}/data"
    assert as_researcher.post(path).status_code == 403 and not DataExport.objects.exists()
    secret = re.search(r"/personal-data/([\w-]+)", as_owner.post(path).content.decode())[1]
    link, stranger = f"/personal-data/{secret}", Client()
    assert "being written" in stranger.get(link).content.decode()
    services.carry_out(DataExport.objects.get().pk)
    assert not getattr(stranger.get(link), "streaming", False)  # opening the link's page does not download the file
    assert "profile.jsonl" in unzipped(b"".join(stranger.post(link).streaming_content))  # type: ignore[attr-defined]
    assert secret not in as_owner.get(path).content.decode()
    assert not browser(team.annotator).get("/settings/data").context["exports"].exists()
    assert AuditEntry.objects.filter(
        actor=team.owner.user, action="personal_data.asked", detail={"link": True}
    ).exists()
    assert AuditEntry.objects.get(action="personal_data.fetched").actor is None
    DataExport.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert stranger.post(link).status_code == 410 == stranger.get("/personal-data/guess").status_code


def test_what_has_ended_leaves_no_file_behind(team):
    row = services.ask(team.annotator.user)
    services.carry_out(row.pk)
    services.look()
    assert services.path_of(row).exists()
    DataExport.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    services.look()
    assert not services.path_of(row).exists() and not DataExport.objects.exists()
    stray = services.path_of(row).with_name("left-behind.zip")
    stray.write_bytes(b"x")
    services.look()
    assert not stray.exists()


def test_one_that_is_lost_again_and_again_is_told(team):
    row = services.ask(team.annotator.user)
    DataExport.objects.update(tries=services.TRIES)
    services.carry_out(row.pk)
    row.refresh_from_db()
    assert (row.state, row.problem) == ("failed", services.FAILED)
    assert browser(team.annotator).get(f"/api/v1/me/data/{row.pk}/download").status_code == 410
    services.ask(team.annotator.user)  # it has ended, so another one may be requested


def test_a_worker_that_has_lost_the_job_leaves_its_successors_file(team, monkeypatch):
    row = services.ask(team.annotator.user)
    write = writing.write

    def late(user, path) -> int:
        """The next job has made the file before this one writes its own."""
        services.path_of(row).parent.mkdir(parents=True, exist_ok=True)
        services.path_of(row).write_bytes(b"of the successor")
        DataExport.objects.filter(pk=row.pk).update(state=DataExport.State.READY)
        return write(user, path)

    monkeypatch.setattr(services, "write", late)
    services.carry_out(row.pk)
    assert services.path_of(row).read_bytes() == b"of the successor"
    assert list(services.path_of(row).parent.iterdir()) == [services.path_of(row)]


def test_one_that_breaks_leaves_no_file(team, monkeypatch):
    def broken(user, path) -> int:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr(services, "write", broken)
    row = services.ask(team.annotator.user)
    services.carry_out(row.pk)
    row.refresh_from_db()
    assert row.state == DataExport.State.FAILED and row.problem
    assert list(services.path_of(row).parent.iterdir()) == []
