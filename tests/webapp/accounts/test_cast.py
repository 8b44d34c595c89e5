"""The people of the tests are those whom the product's own services would make."""

import pytest
from django.db import transaction

from tests.cast import made_by_services, make_cast
from webapp.accounts.models import Membership, User, Workspace
from webapp.core.models import AuditEntry

KINDS = {"user_id": User, "actor_id": User, "workspace_id": Workspace, "object_id": Workspace}
CHANCE = {"id", "password", "date_joined", "created_at"}
pytestmark = pytest.mark.django_db


def place(kind, pk):
    return sorted(kind.objects.values_list("pk", flat=True)).index(pk)


def rows(make):
    """What is in the database then, with ids as places in the order of making; and what the cast's own objects say."""
    with transaction.atomic():
        cast = make()
        kept = [
            {
                name: place(KINDS[name], value) if name in KINDS else value
                for name, value in row.items()
                if name not in CHANCE
            }
            for kind in (User, Workspace, Membership, AuditEntry)
            for row in kind.objects.order_by("pk").values()
        ]
        members = (cast.owner, cast.researcher, cast.reviewer, cast.annotator, cast.outsider)
        held = [
            (m.user.email, m.user.is_administrator, m.user.has_usable_password(), m.role, m.workspace.slug)
            for m in members
        ]
        assert all(User.objects.get(pk=m.user_id).password == m.user.password for m in members)
        transaction.set_rollback(True)
    return kept, held, cast.workspace.name


def test_made_at_once_they_are_those_that_the_services_make(django_assert_num_queries):
    assert rows(make_cast) == rows(made_by_services)
    with django_assert_num_queries(5):
        make_cast()


def test_where_there_is_a_workspace_the_services_make_them():
    from webapp.accounts.workspaces.services import create_workspace

    create_workspace("Lab", User.objects.create_user("eve@example.org"))
    cast = make_cast()
    assert cast.workspace.slug != "lab"
    assert not User.objects.get(pk=cast.owner.user_id).is_administrator
