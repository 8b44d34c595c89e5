"""Who may make workspaces, who administers the installation, and who may return after being removed."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.concurrency import concurrently
from tests.team import browser
from webapp.accounts.administration.services import make_administrator
from webapp.accounts.members.services import accept_invite, enter, invite, open_invite, remove_member
from webapp.accounts.models import Role, User, Workspace
from webapp.annotation.people import services as participants
from webapp.core.problems import Conflict

pytestmark = pytest.mark.django_db


def rights() -> str:
    out = StringIO()
    call_command("admin", stdout=out)
    return out.getvalue()


@pytest.mark.parametrize("who", ["researcher", "reviewer", "annotator"])
def test_a_person_who_was_let_in_cannot_make_a_workspace(team, who):
    client = browser(getattr(team, who))
    before = Workspace.objects.count()
    assert client.post("/workspaces", {"name": "Mine"}).status_code == 403
    assert Workspace.objects.count() == before
    assert b"Create workspace" not in client.get("/workspaces").content


def test_the_first_owner_administers_the_installation_and_makes_workspaces(team):
    assert rights() == "ada@example.org\tadministrator\n"
    client = browser(team.owner)
    assert b"Create workspace" in client.get("/workspaces").content
    assert client.post("/workspaces", {"name": "Second"}).status_code == 302
    assert Workspace.objects.filter(name="Second").exists()


def test_an_administrator_gives_the_right_and_takes_it(team):
    call_command("admin", "rosa@example.org", "--workspaces")
    assert "rosa@example.org\tcreates workspaces" in rights()
    assert browser(team.researcher).post("/workspaces", {"name": "Rosa's"}).status_code == 302
    call_command("admin", "rosa@example.org", "--workspaces", "--revoke")
    assert browser(team.researcher).post("/workspaces", {"name": "Again"}).status_code == 403


def test_the_last_administrator_stays(team):
    with pytest.raises(CommandError, match="needs an administrator"):
        call_command("admin", "ada@example.org", "--revoke")
    with pytest.raises(CommandError, match="no account"):
        call_command("admin", "nobody@example.org")
    call_command("admin", "rosa@example.org")
    call_command("admin", "ada@example.org", "--revoke")
    assert rights() == "rosa@example.org\tadministrator\n"


@pytest.mark.django_db(transaction=True)
def test_of_two_administrators_who_resign_at_once_one_stays(team):
    make_administrator(team.researcher.user, True)
    people = User.objects.filter(is_administrator=True)
    got = concurrently([lambda user=user: make_administrator(user, False) for user in people])
    assert sorted(type(each).__name__ for each in got) == ["Conflict", "NoneType"]
    assert User.objects.filter(is_administrator=True).count() == 1


def test_whoever_was_removed_does_not_come_back_by_an_old_link(team, project):
    _, secret = participants.invite(team.owner, project, uses=5)
    invited = invite(team.owner, "anna@example.net", Role.REVIEWER)
    user = User.objects.create_user("anna@example.net")
    membership = accept_invite(open_invite(invited), user)
    remove_member(team.owner, membership)
    with pytest.raises(Conflict, match="removed"):
        participants.join(user, secret)
    again = invite(team.owner, "anna@example.net", Role.ANNOTATOR)
    accept_invite(open_invite(again), user)
    assert participants.join(user, secret).project == project


def test_an_open_invitation_ends_with_the_membership(team):
    secret = invite(team.owner, "new@example.net", Role.OWNER)
    user = User.objects.create_user("new@example.net")
    membership = enter(team.workspace, user, Role.ANNOTATOR)
    remove_member(team.owner, membership)
    assert open_invite(secret) is None
