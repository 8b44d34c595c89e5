"""The owner of an address. A person who enters somebody else's address at an open link gets nothing of its owner, and cannot lock the owner
out.
"""

import re
from io import StringIO

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client

from tests.concurrency import concurrently
from tests.pages import page_html
from tests.team import ApiClient, browser
from webapp.accounts.addresses import services as addresses
from webapp.accounts.administration.services import give_right
from webapp.accounts.members.services import invite, join, open_invite
from webapp.accounts.models import ApiToken, Invite, Membership, Proof, Role, User
from webapp.accounts.sign_in.services import create_sign_in_link
from webapp.accounts.tokens.services import create_token
from webapp.accounts.workspaces.services import may_create_workspaces
from webapp.annotation.people import services as people
from webapp.core.problems import Conflict, Invalid

pytestmark = pytest.mark.django_db
BOSS = "boss@example.org"
PASSWORD, OTHER = "quartz violin meadow", "copper lantern orchid"


@pytest.fixture
def squatter(team, project) -> Client:
    """A person who followed the open link and entered the boss's address."""
    _, secret = people.invite(team.researcher, project, uses=5)
    client = Client()
    client.post(f"/join/{secret}", {"name": "Mallory", "email": BOSS, "password": PASSWORD})
    assert client.get("/api/v1/me").json()["verified"] is False
    return client


@pytest.fixture
def outgoing(settings):
    settings.MAIL_URL = "smtp://mail.example.org"
    return mail.outbox


def whose(email: str = BOSS) -> User:
    return User.objects.get(email=email)


def test_the_owner_of_an_address_takes_it_from_whoever_only_typed_it(team, squatter):
    before = whose()
    secret = invite(team.owner, BOSS, Role.RESEARCHER)
    assert squatter.get("/api/v1/me").json()["role"] == "annotator"  # the invitation does not belong to this person
    client = Client()
    assert "that account loses it" in page_html(client.get(f"/invite/{secret}"))
    client.post(f"/invite/{secret}", {"name": "The boss", "password": OTHER})
    me = client.get("/api/v1/me").json()
    assert (me["email"], me["role"], me["verified"]) == (BOSS, "researcher", True)
    assert whose().pk != before.pk
    # the former holder keeps the account under another address, and the password opens nothing of the boss
    still = squatter.get("/api/v1/me").json()
    assert still["id"] == before.pk and still["email"].endswith("@touchstone.invalid") and still["role"] == "annotator"
    assert Client().post("/sign-in", {"email": BOSS, "password": PASSWORD}).status_code == 422
    assert Client().post("/sign-in", {"email": still["email"], "password": PASSWORD}).status_code == 302


def test_a_link_into_a_project_for_one_address_does_the_same(team, project, squatter):
    _, secret = people.invite(team.researcher, project, email=BOSS)
    client = Client()
    client.post(f"/join/{secret}", {"name": "The boss", "email": "else@example.org", "password": OTHER})
    assert client.get("/api/v1/me").json()["email"] == BOSS
    assert whose().proof == Proof.INVITATION and not User.objects.filter(email="else@example.org").exists()


def test_nobody_else_comes_in_by_a_link_for_one_address(team, project):
    _, secret = people.invite(team.researcher, project, email=BOSS)
    answer = browser(team.outsider).post(f"/join/{secret}")
    assert answer.status_code == 422 and b"is for boss@example.org" in answer.content
    assert not Membership.objects.filter(workspace=team.workspace, user=team.outsider.user).exists()


def test_opening_the_invitation_as_oneself_verifies_the_address_and_keeps_the_account(team, squatter):
    """The honest case: a person joins by the link with their own address, and an owner invites them later."""
    account = whose().pk
    secret = invite(team.owner, BOSS, Role.REVIEWER)
    assert squatter.post(f"/invite/{secret}").status_code == 302
    me = squatter.get("/api/v1/me").json()
    assert (me["id"], me["verified"], me["role"]) == (account, True, "reviewer")


def test_a_verified_account_gives_its_address_to_nobody(team):
    secret = invite(team.outsider, team.annotator.user.email, Role.ANNOTATOR)
    answer = Client().post(f"/invite/{secret}", {"name": "Thief", "password": OTHER})
    assert answer.headers["Location"].startswith("/sign-in")
    with pytest.raises(Conflict, match="Sign in first"):
        addresses.take(team.annotator.user.email, Proof.MAIL)


@pytest.mark.parametrize("right", ["administrator", "workspaces"])
def test_rights_go_to_verified_addresses_alone(team, squatter, right):
    boss = whose()
    with pytest.raises(Conflict, match="verified"):
        give_right(team.owner.user, boss, right, True)
    with pytest.raises(CommandError, match="verified"):
        call_command("admin", BOSS)
    boss.refresh_from_db()
    assert not may_create_workspaces(boss)


def test_an_unverified_member_stays_an_annotator(team, squatter):
    member = Membership.objects.get(user__email=BOSS)
    answer = ApiClient(team.owner).patch(f"/members/{member.pk}", {"role": "owner"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_verified")
    page = browser(team.owner).get("/settings/members").content
    assert page.count(b"address not verified") == 1


def test_a_project_is_not_opened_to_an_address_that_somebody_typed(team, project, squatter):
    answer = ApiClient(team.owner).post(f"/projects/{project.pk}/people", {"email": BOSS})
    assert answer.status_code == 422 and "not verified" in answer.json()["error"]["fields"][0]["message"]


def test_a_link_of_whoever_runs_the_server_ends_what_was_made_before(team, squatter):
    create_token(Membership.objects.get(user__email=BOSS), "backdoor")
    client = Client()
    client.post(f"/sign-in/link/{create_sign_in_link(whose())}")
    assert client.get("/api/v1/me").json()["verified"] is True
    assert squatter.get("/api/v1/me").status_code == 401
    assert Client().post("/sign-in", {"email": BOSS, "password": PASSWORD}).status_code == 422
    assert not ApiToken.objects.filter(user=whose(), revoked_at=None).exists()


def test_a_new_workspace_of_the_server_is_not_given_to_whoever_typed_the_address(squatter):
    before, out = whose().pk, StringIO()
    call_command("signin", BOSS, "--new", "Board", stdout=out)
    owner = Membership.objects.get(workspace__name="Board").user
    assert (owner.email, owner.verified) == (BOSS, True) and owner.pk != before


@pytest.mark.django_db(transaction=True)
def test_of_two_who_open_the_invitation_at_once_one_gets_the_address(team, squatter):
    row = open_invite(invite(team.owner, BOSS, Role.REVIEWER))
    got = concurrently([lambda: join(row, None, "Boss", OTHER)] * 2)
    assert sorted(type(each).__name__ for each in got) == ["Conflict", "Membership"]
    assert User.objects.filter(email=BOSS).count() == 1


def test_an_address_nobody_verified_can_be_changed_and_a_verified_one_stays(team, squatter):
    squatter.post("/settings/second-factor/confirm", {"password": PASSWORD})  # as test_confirming.py says
    assert squatter.post("/settings/profile", {"email": "anna@example.org"}).status_code == 422
    assert squatter.post("/settings/profile", {"email": "mallory@example.org"}).status_code == 302
    assert whose("mallory@example.org").verified is False
    with pytest.raises(Conflict):
        addresses.change(team.owner.user, "x@example.org")


def test_invitations_are_listed_and_revoked_by_api_and_page(team):
    script = ApiClient(team.owner)
    secrets = [script.post("/members/invite", {"email": f"{n}@example.org"}).json()["url"][-43:] for n in "ab"]
    b, a = script.get("/members/invites").json()["items"]
    assert (a["email"], a["role"]) == ("a@example.org", "annotator")
    assert script.delete(f"/members/invites/{a['id']}").status_code == 204
    assert browser(team.owner).post(f"/settings/invites/{b['id']}/revoke", {"sure": "1"}).status_code == 302
    assert [Client().get(f"/invite/{secret}").status_code for secret in secrets] == [410, 410]
    assert script.delete(f"/members/invites/{a['id']}").status_code == 404
    theirs = Invite.objects.create(
        workspace=team.outsider.workspace, email=BOSS, digest="x", expires_at=team.owner.created_at
    )
    assert script.delete(f"/members/invites/{theirs.pk}").status_code == 404


def test_annotators_are_invited_by_api(team, project):
    script = ApiClient(team.researcher)
    made = script.post(f"/projects/{project.pk}/invites", {"email": "New@example.org"})
    assert (made.status_code, made.json()["email"], made.json()["uses_left"]) == (201, "new@example.org", 1)
    client = Client()
    client.post("/join/" + made.json()["link"].rpartition("/")[2], {"name": "Nia", "password": OTHER})
    assert client.get("/api/v1/me").json()["verified"] is True
    for body in ({"email": "nobody"}, {"email": BOSS, "uses": 2}):
        answer = script.post(f"/projects/{project.pk}/invites", body)
        assert answer.status_code == 422 and answer.json()["error"]["fields"], body
    assert ApiClient(team.owner).post("/members/invite", {"email": "nobody"}).status_code == 422


def test_where_mail_is_sent_the_link_goes_to_the_address_and_to_nobody_else(team, outgoing):
    answer = ApiClient(team.owner).post("/members/invite", {"email": BOSS, "role": "reviewer"})
    assert answer.json() == {"url": None} and outgoing[0].to == [BOSS]
    secret = re.search(r"/invite/(\S+)", outgoing[0].body)[1]
    assert (
        b"was mailed to"
        in browser(team.owner).post("/settings/members", {"email": "b@example.org", "role": "owner"}).content
    )
    Client().post(f"/invite/{secret}", {"name": "Boss", "password": OTHER})
    assert whose().proof == Proof.MAIL


def test_a_mail_shows_more_than_the_word_of_an_owner(team, outgoing, settings):
    """A person invited the boss into their own workspace, and opened the link themselves."""
    settings.MAIL_URL = None
    join(open_invite(invite(team.outsider, BOSS, Role.OWNER)), None, "Otto", PASSWORD)
    settings.MAIL_URL = "smtp://mail.example.org"
    invite(team.owner, BOSS, Role.OWNER)
    secret = re.search(r"/invite/(\S+)", outgoing[0].body)[1]
    Client().post(f"/invite/{secret}", {"name": "Boss", "password": OTHER})
    assert whose().memberships.get().workspace == team.workspace


def test_an_account_verifies_its_address_by_mail(squatter, outgoing, team):
    assert squatter.post("/settings/address/check").status_code == 302
    path = re.search(r"(/verify/\S+)", outgoing[0].body)[1]
    assert Client().get(path).headers["Location"].startswith("/sign-in")
    assert browser(team.outsider).post(path).status_code == 409  # signed in as another person
    assert squatter.get(path).status_code == 200 and not whose().verified
    assert squatter.post(path).status_code == 302
    assert whose().proof == Proof.MAIL
    assert squatter.post(path).status_code == 409


def test_nothing_is_kept_of_an_invitation_that_could_not_be_mailed(team, settings):
    settings.MAIL_URL, settings.EMAIL_BACKEND = "smtp://x", "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    answer = ApiClient(team.owner).post("/members/invite", {"email": BOSS})
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "mail_failed")
    assert not Invite.objects.exists()


def test_who_types_an_address_that_has_an_account_is_told_the_way(team, project):
    _, secret = people.invite(team.researcher, project)
    with pytest.raises(Invalid) as told:
        people.sign_up(secret, email="anna@example.org", name="Not Anna", password=PASSWORD)
    assert "gives you the account" in told.value.fields["email"]
