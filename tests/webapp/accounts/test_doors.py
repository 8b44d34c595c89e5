"""Sign-in by password and link, invitations, members and roles, as people see them."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.concurrency import concurrently
from tests.team import ApiClient, browser
from webapp.accounts.members.services import change_role, invite, join, open_invite, remove_member
from webapp.accounts.models import Invite, Membership, Role, SignInLink, User
from webapp.accounts.profile.services import set_password
from webapp.accounts.sign_in.services import create_sign_in_link
from webapp.accounts.tokens.services import create_token
from webapp.core.problems import Conflict

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"


@pytest.fixture
def person(team):
    set_password(team.researcher.user, PASSWORD)
    return team.researcher.user


def test_the_api_gives_links_to_where_people_reach_the_server(team, monkeypatch):
    monkeypatch.setattr("webapp.accounts.members.api.public_url", lambda: "https://touchstone.example.org")
    answer = ApiClient(team.owner).post("/members/invite", {"email": "new@example.org"})
    assert answer.json()["url"].startswith("https://touchstone.example.org/invite/")


def signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_a_password_opens_and_leads_back(client, person):
    response = client.post("/sign-in", {"email": "ROSA@example.org", "password": PASSWORD, "next": "/settings/tokens"})
    assert response.headers["Location"] == "/settings/tokens"
    assert signed_in(client)


def test_a_wrong_password_says_nothing_about_who_exists(client, person):
    known = client.post("/sign-in", {"email": person.email, "password": "wrong"})
    unknown = client.post("/sign-in", {"email": "nobody@example.org", "password": "wrong"})
    assert known.status_code == unknown.status_code == 422
    said = [re.findall(r"role=\"alert\">([^<]+)", page.content.decode()) for page in (known, unknown)]
    assert said[0] == said[1] != []


def test_another_site_is_never_the_way_back(client, person):
    response = client.post("/sign-in", {"email": person.email, "password": PASSWORD, "next": "https://evil.example/"})
    assert response.headers["Location"] == "/"


@pytest.mark.parametrize("target", ["nonsense", "share_links", "run", "http://testserver/runs/new"])
def test_only_the_path_of_a_page_is_a_way_back(client, person, target):
    response = client.post("/sign-in", {"email": person.email, "password": PASSWORD, "next": target})
    assert response.headers["Location"] == "/"


def test_guessing_is_stopped(client, person, settings):
    for _ in range(settings.AXES_FAILURE_LIMIT):
        last = client.post("/sign-in", {"email": person.email, "password": "wrong"})
    assert last.status_code == 429
    assert client.post("/sign-in", {"email": person.email, "password": PASSWORD}).status_code == 429


def test_one_password_tried_on_everybody_is_stopped(client, monkeypatch):
    monkeypatch.setattr("webapp.accounts.sign_in.views.SIGN_INS_PER_MINUTE", 3)
    codes = [client.post("/sign-in", {"email": f"p{n}@example.org", "password": "wrong"}).status_code for n in range(4)]
    assert codes == [422, 422, 422, 429]
    assert client.get("/sign-in").status_code == 200  # opening the page does not use the link


def test_a_person_without_password_cannot_use_an_empty_one(client, team):
    client.post("/sign-in", {"email": team.annotator.user.email, "password": ""})
    assert not signed_in(client)


def test_a_link_survives_being_looked_at_and_works_once(client, team):
    path = f"/sign-in/link/{create_sign_in_link(team.owner.user)}"
    assert client.get(path).status_code == 200
    assert not signed_in(client)
    assert client.post(path).status_code == 302
    assert signed_in(client)
    second = Client()
    assert second.post(path).status_code == 410
    assert not signed_in(second)


def test_a_link_ends(client, team):
    secret = create_sign_in_link(team.owner.user)
    SignInLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert client.post(f"/sign-in/link/{secret}").status_code == 410


def test_a_link_of_someone_switched_off_opens_nothing(client, team):
    secret = create_sign_in_link(team.owner.user)
    User.objects.filter(pk=team.owner.user_id).update(is_active=False)
    assert client.post(f"/sign-in/link/{secret}").status_code == 410


def test_secrets_are_stored_as_digests_only(team):
    secret = create_sign_in_link(team.owner.user)
    assert not SignInLink.objects.filter(digest__contains=secret[:12]).exists()


def test_an_invitation_makes_the_account_it_is_addressed_to(client, team):
    secret = invite(team.owner, "New@example.org", Role.REVIEWER)
    assert client.get(f"/invite/{secret}").status_code == 200
    response = client.post(f"/invite/{secret}", {"name": "Nia", "password": PASSWORD})
    assert response.status_code == 302
    made = Membership.objects.get(user__email="new@example.org")
    assert (made.workspace, made.role) == (team.workspace, Role.REVIEWER)
    assert Client().get(f"/invite/{secret}").status_code == 410


@pytest.mark.django_db(transaction=True)
def test_of_two_submissions_of_an_invitation_at_once_one_makes_the_account(team):
    secret = invite(team.owner, "new@example.org", Role.REVIEWER)
    row = open_invite(secret)
    got = concurrently([lambda: join(row, None, "Nia", PASSWORD)] * 2)
    assert sorted(type(each).__name__ for each in got) == ["Conflict", "Membership"]
    assert User.objects.filter(email="new@example.org").count() == 1


@pytest.mark.parametrize("end", [Role.RESEARCHER, None])
def test_an_invitation_ends_with_the_role_of_the_owner_who_made_it(client, team, end):
    """Somebody who will be removed could otherwise invite themselves first, and come back as an owner."""
    other = Membership.objects.create(
        workspace=team.workspace, user=User.objects.create_user("second@example.org"), role=Role.OWNER
    )
    row = open_invite(secret := invite(other, "new@example.org", Role.OWNER))
    if end:
        change_role(team.owner, other, end)
    else:
        remove_member(team.owner, other)
    assert client.get(f"/invite/{secret}").status_code == 410
    with pytest.raises(Conflict):  # the page was open meanwhile
        join(row, None, "Nia", PASSWORD)
    assert not User.objects.filter(email="new@example.org").exists()
    assert ApiClient(team.owner).get("/members/invites").json()["items"] == []


def test_an_invitation_never_opens_an_existing_account(client, team):
    """The link is shown to the owner who invites. It must not sign the owner in as another person."""
    secret = invite(team.owner, team.outsider.user.email, Role.ANNOTATOR)
    response = client.post(f"/invite/{secret}", {"name": "x", "password": PASSWORD})
    assert response.headers["Location"].startswith("/sign-in")
    assert not signed_in(client)


def test_an_invitation_for_someone_else_is_refused(team):
    secret = invite(team.owner, "new@example.org", Role.OWNER)
    response = browser(team.outsider).post(f"/invite/{secret}")
    assert response.status_code == 409
    assert Invite.objects.get().accepted_at is None


def test_the_invited_with_an_account_joins_by_one_click(team):
    secret = invite(team.owner, team.outsider.user.email, Role.REVIEWER)
    client = browser(team.outsider)
    assert client.post(f"/invite/{secret}").status_code == 302
    assert client.get("/api/v1/me").json()["workspace"]["slug"] == team.workspace.slug


def test_a_workspace_keeps_an_owner(as_owner, team):
    as_owner.post(f"/settings/members/{team.owner.id}", {"role": "annotator"})
    as_owner.post(f"/settings/members/{team.owner.id}", {"remove": "1", "sure": "1"})
    team.owner.refresh_from_db()
    assert team.owner.role == Role.OWNER


def test_removing_a_member_takes_their_keys(as_owner, team):
    token, _ = create_token(team.researcher, "laptop")
    asked = as_owner.post(f"/settings/members/{team.researcher.id}", {"remove": "1"}).content.decode()
    assert (
        f"Remove {team.researcher.user} from Lab?" in asked and '<input type="hidden" name="remove" value="1">' in asked
    )
    token.refresh_from_db()
    assert token.revoked_at is None and Membership.objects.filter(pk=team.researcher.id).exists()
    as_owner.post(f"/settings/members/{team.researcher.id}", {"remove": "1", "sure": "1"})
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert not Membership.objects.filter(pk=team.researcher.id).exists()


def test_nobody_promotes_themselves(as_researcher, team):
    assert as_researcher.post(f"/settings/members/{team.researcher.id}", {"role": "owner"}).status_code == 403


def test_members_of_other_workspaces_cannot_be_reached(as_owner, team):
    assert as_owner.post(f"/settings/members/{team.outsider.id}", {"remove": "1"}).status_code == 404


def test_switching_is_only_to_ones_own_workspaces(as_owner, team):
    assert as_owner.post(f"/workspaces/{team.outsider.workspace_id}/switch").status_code == 404


def test_a_tokens_secret_is_shown_once(as_owner):
    page = as_owner.post("/settings/tokens", {"name": "nightly", "scope": "read", "lasts": "30"}).content.decode()
    secret = re.search(r"ts_[\w-]{40,}", page)[0]
    assert secret not in as_owner.get("/settings/tokens").content.decode()
    answer = Client(headers={"authorization": f"Bearer {secret}"}).get("/api/v1/me")
    assert answer.status_code == 200


def test_changing_the_password_signs_out_other_browsers(team):
    here, there = browser(team.owner), browser(team.owner)
    here.post("/settings/profile", {"new": PASSWORD})
    assert here.get("/settings/profile").status_code == 200
    assert there.get("/settings/profile").status_code == 302


def test_a_theme_is_kept_and_checked(as_owner, team):
    assert as_owner.post("/settings/theme", {"theme": "dark"}, headers={"hx-request": "true"}).status_code == 204
    assert as_owner.post("/settings/theme", {"theme": "neon"}).status_code == 422
    team.owner.user.refresh_from_db()
    assert team.owner.user.theme == "dark"


def test_the_audit_log_names_who_and_what(as_owner, as_researcher, team):
    create_token(team.owner, "nightly")
    page = as_owner.get("/settings/audit").content.decode()
    assert "token.created" in page
    assert as_researcher.get("/settings/audit").status_code == 403


def test_the_address_of_the_settings_leads_to_their_first_page(as_annotator):
    answer = as_annotator.get("/settings")
    assert answer.status_code == 302 and answer["Location"] == "/settings/profile"


def test_a_server_without_accounts_says_how_the_first_one_is_made(client):
    first = client.get("/sign-in").content.decode()
    assert "Nobody has an account yet" in first and "signin EMAIL --new WORKSPACE" in first
    User.objects.create_user("rosa@example.org")
    later = client.get("/sign-in").content.decode()
    assert "No password yet?" in later and "--new" not in later
