"""The people of the tests are the same as those that the product's services make."""

from datetime import timedelta

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils import timezone

from tests.team import browser, made_by_services, make_team, signed_in_by_django
from webapp.accounts.models import Membership, SignedIn, User, Workspace
from webapp.core.models import AuditEntry

KINDS = {"user_id": User, "actor_id": User, "workspace_id": Workspace, "object_id": Workspace}
CHANCE = {"id", "password", "date_joined", "created_at"}
pytestmark = pytest.mark.django_db


def place(kind, pk):
    return sorted(kind.objects.values_list("pk", flat=True)).index(pk)


def rows(make):
    """The content of the database, with ids as places in the order of creation, and the content of the team's own objects."""
    with transaction.atomic():
        team = make()
        kept = [
            {
                name: place(KINDS[name], value) if name in KINDS else value
                for name, value in row.items()
                if name not in CHANCE
            }
            for kind in (User, Workspace, Membership, AuditEntry)
            for row in kind.objects.order_by("pk").values()
        ]
        members = (team.owner, team.researcher, team.reviewer, team.annotator, team.outsider)
        held = [
            (m.user.email, m.user.is_administrator, m.user.has_usable_password(), m.role, m.workspace.slug)
            for m in members
        ]
        assert all(User.objects.get(pk=m.user_id).password == m.user.password for m in members)
        transaction.set_rollback(True)
    return kept, held, team.workspace.name


def test_made_at_once_they_are_those_that_the_services_make(django_assert_num_queries):
    assert rows(make_team) == rows(made_by_services)
    with django_assert_num_queries(5):
        make_team()


def test_where_there_is_a_workspace_the_services_make_them():
    from webapp.accounts.workspaces.services import create_workspace

    create_workspace("Lab", User.objects.create_user("eve@example.org"))
    team = make_team()
    assert team.workspace.slug != "lab"
    assert not User.objects.get(pk=team.owner.user_id).is_administrator


CHANGES = {"session_key", "session_data", "expire_date", "last_login", "created_at", "last_used_at"}


def signed_in(sign_in, membership):
    """The content of the database and of the session, and the cookies that the client sends."""
    with transaction.atomic():
        before = timezone.now()
        client = sign_in(membership)
        kept = {
            model._meta.label: [
                {
                    name: value if name not in CHANGES else value is not None
                    for name, value in row.items()
                    if name != "id"
                }
                for row in model.objects.order_by("pk").values()  # type: ignore[attr-defined]
            ]
            for model in apps.get_models()
        }
        (session,), (known,) = Session.objects.all(), SignedIn.objects.all()
        cookie = client.cookies[settings.SESSION_COOKIE_NAME]
        assert cookie.value == client.session.session_key == session.session_key == known.session_key
        now, lasts = timezone.now(), timedelta(seconds=settings.SESSION_COOKIE_AGE)
        assert before + lasts <= session.expire_date <= now + lasts
        found = User.objects.get(pk=membership.user_id).last_login
        assert before <= known.created_at <= now and before <= known.last_used_at <= now and before <= found <= now
        assert membership.user.last_login == found
        asked = client.get("/api/v1/me")
        told = (asked.status_code, asked.content, dict(client.session), dict(cookie), membership.user.backend)
        transaction.set_rollback(True)
    return kept, told


def test_a_browser_is_signed_in_as_django_signs_in(team, django_assert_num_queries):
    by_django = signed_in(signed_in_by_django, team.researcher)
    assert signed_in(browser, team.researcher) == by_django
    assert by_django[1][0] == 200 and by_django[0]["sessions.Session"] and by_django[0]["accounts.SignedIn"]
    with django_assert_num_queries(3):
        browser(team.researcher)
