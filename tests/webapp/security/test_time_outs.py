"""Sessions end as the strictest of a person's workspaces requires. Requests that a page makes by itself do not keep a session open."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.team import ApiClient, browser
from webapp.accounts.models import Membership, SignedIn, Workspace
from webapp.accounts.sessions import time_outs
from webapp.core.models import AuditEntry

pytestmark = pytest.mark.django_db
BY_ITSELF = {"x-unattended": "1"}


def inside(client, **headers) -> bool:
    return client.get("/api/v1/me", headers=headers).status_code == 200


def row(client) -> SignedIn:
    return SignedIn.objects.get(session_key=client.cookies["sessionid"].value)


def away(client, minutes: int) -> None:
    SignedIn.objects.filter(pk=row(client).pk).update(last_used_at=timezone.now() - timedelta(minutes=minutes))


def test_a_workspace_asks_for_less_and_its_people_alone_are_asked(team):
    inner, outer = browser(team.annotator), browser(team.outsider)
    time_outs.change(team.owner, 30, 240)
    for client in (inner, outer):
        away(client, 31)
    assert not inside(inner) and inside(outer)
    long = browser(team.annotator)
    SignedIn.objects.filter(pk=row(long).pk).update(created_at=timezone.now() - timedelta(hours=5))
    assert not inside(long)


def test_the_strictest_of_a_persons_workspaces_counts_whichever_is_open(team):
    both = Membership.objects.create(user=team.annotator.user, workspace=team.outsider.workspace, role="annotator")
    time_outs.change(team.owner, 60, None)
    time_outs.change(team.outsider, 20, None)
    for membership in (both, team.annotator):
        client = browser(membership)
        away(client, 21)
        assert not inside(client)
    assert time_outs.time_outs_of(team.annotator.user).idle == timedelta(minutes=20)
    assert "20 minutes without use" in browser(both).get("/settings/profile").content.decode()


def test_no_workspace_is_looser_than_the_installation(team, settings):
    settings.SESSION_IDLE_HOURS = 1
    owner = browser(team.owner)

    def put(**body):
        return owner.put("/api/v1/time-outs", body, content_type="application/json")

    refused = put(idle_minutes=61, session_minutes=14).json()["error"]["fields"]
    assert {each["path"]: each["message"] for each in refused} == {
        "idle_minutes": "must be at most 60 minutes, the limit of the whole installation",
        "session_minutes": "must be 15 minutes or more",
    }
    Workspace.objects.filter(pk=team.workspace.pk).update(
        idle_minutes=600
    )  # set before the installation became stricter
    away(owner, 61)
    assert not inside(owner)


def test_owners_set_them_at_the_page_and_by_api(team, as_owner, as_researcher):
    path = "/settings/sign-in/time-outs"
    assert as_researcher.post(path, {"idle_minutes": "30"}).status_code == 403
    assert as_owner.post(path, {"idle_minutes": "30", "session_minutes": ""}).status_code == 302
    assert 'value="30"' in as_owner.get("/settings/sign-in").content.decode()
    refused = as_owner.post(path, {"idle_minutes": "2", "session_minutes": "480"})
    assert refused.status_code == 422 and "Must be 5 minutes or more" in refused.content.decode()
    script = ApiClient(team.owner)
    assert script.get("/time-outs").json()["idle_minutes"] == 30
    changed = script.client.put(
        "/api/v1/time-outs", {"idle_minutes": None, "session_minutes": 480}, content_type="application/json"
    )
    assert changed.json() == {
        "idle_minutes": None,
        "session_minutes": 480,
        "installation_idle_minutes": 7 * 24 * 60,
        "installation_session_minutes": 30 * 24 * 60,
    }
    told = AuditEntry.objects.filter(action="workspace.time_outs").order_by("id").values_list("detail", flat=True)
    assert list(told) == [
        {"idle_minutes": 30, "session_minutes": None},
        {"idle_minutes": None, "session_minutes": 480},
    ]


def test_what_a_page_asks_by_itself_is_no_use(team):
    client = browser(team.annotator)
    assert inside(client)
    away(client, 3)
    before = row(client).last_used_at
    assert inside(client, **BY_ITSELF) and row(client).last_used_at == before
    client.cookies["unattended"] = "1"  # from a page that reloads itself
    assert inside(client) and row(client).last_used_at == before
    del client.cookies["unattended"]
    assert client.get("/settings/sessions/used").status_code == 204  # a person reads and scrolls
    assert row(client).last_used_at > before


def test_a_page_that_polls_for_ever_is_signed_out(team):
    time_outs.change(team.owner, 5, None)
    client = browser(team.annotator)
    assert inside(client)
    began = row(client).last_used_at
    for minute in range(1, 8):
        SignedIn.objects.filter(pk=row(client).pk).update(last_used_at=began - timedelta(minutes=minute))
        if not inside(client, **BY_ITSELF):
            break
    assert minute == 5 and not SignedIn.objects.filter(user=team.annotator.user).exists()


def test_a_session_that_nothing_is_known_of_is_noted_all_the_same(team):
    client = browser(team.owner)
    SignedIn.objects.all().delete()
    assert inside(client, **BY_ITSELF) and row(client)


def test_the_time_outs_cost_no_query(team):
    client = browser(team.owner)
    inside(client)

    def queries() -> int:
        with CaptureQueriesContext(connection) as seen:
            inside(client)
        return len(seen)

    before = queries()
    time_outs.change(team.owner, 30, 240)
    assert queries() == before
