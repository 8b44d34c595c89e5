"""The audit log says who came from which address with which key, and what was downloaded."""

import pytest
from django.test import Client

from tests.team import ApiClient, browser
from webapp.accounts.profile.services import set_password
from webapp.accounts.sign_in.services import create_sign_in_link
from webapp.core.models import AuditEntry

PASSWORD = "correct horse battery"
pytestmark = pytest.mark.django_db


def test_a_sign_in_and_its_end_are_noted_with_the_address(team):
    set_password(team.owner.user, PASSWORD)
    client = Client(REMOTE_ADDR="203.0.113.7")
    client.post("/sign-in", {"email": "ada@example.org", "password": PASSWORD})
    client.post("/sign-out")
    noted = AuditEntry.objects.filter(action__startswith="session.").order_by("id")
    assert [(entry.action, entry.address) for entry in noted] == [
        ("session.started", "203.0.113.7"),
        ("session.ended", "203.0.113.7"),
    ]
    link = create_sign_in_link(team.annotator.user)
    Client().post(f"/sign-in/link/{link}")
    assert AuditEntry.objects.filter(action="session.started", actor=team.annotator.user).exists()


def test_a_change_by_token_names_the_token(team):
    script = ApiClient(team.owner)
    script.post("/members/invite", {"email": "new@example.org"})
    [entry] = AuditEntry.objects.filter(action="member.invited")
    assert entry.token and script.client.defaults["HTTP_AUTHORIZATION"].removeprefix("Bearer ").startswith(entry.token)
    browser(team.owner).post("/settings/members", {"email": "other@example.org", "role": "annotator"})
    assert AuditEntry.objects.filter(action="member.invited").latest("id").token == ""


def test_an_export_is_noted(team, version, project):
    script = ApiClient(team.researcher)
    assert script.get(f"/datasets/{version.dataset_id}/versions/{version.number}/export").status_code == 200
    assert script.get(f"/projects/{project.pk}/answers/export").status_code == 200
    taken = AuditEntry.objects.filter(action__endswith=".exported").order_by("id")
    assert [entry.action for entry in taken] == ["version.exported", "project.exported"]
    assert b"version.exported" in browser(team.owner).get("/settings/audit").content


def test_what_people_see_is_kept_in_no_cache(team):
    assert browser(team.owner).get("/settings/members")["Cache-Control"] != ""
    assert browser(team.owner).get("/datasets")["Cache-Control"] == "no-store"
    assert ApiClient(team.owner).get("/me")["Cache-Control"] == "no-store"
