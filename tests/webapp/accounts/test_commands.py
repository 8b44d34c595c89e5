"""`manage.py token` and `manage.py signin`."""

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tests.concurrency import concurrently
from webapp.accounts.models import Membership, User, Workspace
from webapp.accounts.workspaces.services import create_workspace
from webapp.localstack.management.commands import demo

pytestmark = pytest.mark.django_db


def test_token_prints_only_a_token_that_works(team, capsys):
    call_command("token", "rosa@example.org")
    printed = capsys.readouterr().out
    assert printed.startswith("ts_") and printed.count("\n") == 1
    answer = Client(headers={"authorization": f"Bearer {printed.strip()}"}).get("/api/v1/me")
    assert answer.json()["email"] == "rosa@example.org"


def test_token_asks_which_workspace_where_there_are_several(team, capsys):
    create_workspace("Second", team.researcher.user)
    with pytest.raises(CommandError, match="--workspace: lab, second"):
        call_command("token", "rosa@example.org")
    call_command("token", "rosa@example.org", "--workspace", "second", "--scope", "read")
    assert capsys.readouterr().out.startswith("ts_")


def test_token_for_nobody_says_so(team):
    with pytest.raises(CommandError, match="not a member"):
        call_command("token", "nobody@example.org")


def test_signin_prints_a_link_that_works(team, capsys, client):
    call_command("signin", "ada@example.org")
    path = "/" + capsys.readouterr().out.strip().split("/", 3)[3]
    assert client.post(path).status_code == 302


def test_the_first_person_of_an_empty_installation_is_made_with_a_workspace(db, capsys, client):
    with pytest.raises(CommandError, match="--new WORKSPACE"):
        call_command("signin", "zoe@example.org")
    call_command("signin", "Zoe@example.org", "--new", "Lab")
    assert client.post("/" + capsys.readouterr().out.strip().split("/", 3)[3]).status_code == 302
    made = Membership.objects.get(user__email="zoe@example.org")
    assert (made.role, made.workspace.name) == ("owner", "Lab")


@pytest.mark.parametrize(
    ("email", "name", "why"),
    [("ada@example.org", "Lab", "already"), ("zoe", "Lab", "not an e-mail"), ("zoe@example.org", " ", "needs a name")],
)
def test_nobody_is_made_twice_or_without_address_and_workspace(team, email, name, why):
    with pytest.raises(CommandError, match=why):
        call_command("signin", email, "--new", name)
    assert not User.objects.filter(email__startswith="zoe").exists()


def test_the_demos_owner_is_made_once(db, capsys):
    call_command("demo", "--link")
    call_command("demo", "--link")
    assert Membership.objects.filter(user__email="demo@localhost", role="owner").count() == 1
    assert capsys.readouterr().out.count("/sign-in/link/") == 2


@pytest.mark.django_db(transaction=True)
def test_the_demos_owner_is_made_once_where_link_and_data_come_at_the_same_time(db):
    made = concurrently([demo.owner] * 8)
    assert {each.pk for each in made} == {Membership.objects.get().pk}
    assert [each.slug for each in Workspace.objects.all()] == ["demo"]
