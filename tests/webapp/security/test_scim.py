"""A company's directory uses SCIM: what it may make, see and close, and which accounts it does not touch."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.team import ApiClient, browser
from tests.timeouts import SECONDS
from webapp.accounts.addresses import services as addresses
from webapp.accounts.administration import closing
from webapp.accounts.administration.services import make_administrator
from webapp.accounts.members.services import enter, remove_member, sign_up_invited
from webapp.accounts.models import Membership, Proof, Role, User
from webapp.accounts.profile.services import set_password
from webapp.accounts.sign_in.services import create_sign_in_link
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict
from webapp.identity import directories, groups
from webapp.identity.models import Directory, DirectoryGroup, DirectoryKey, DirectoryPerson

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough passphrase"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"


class Company:
    """The directory's client: JSON in, JSON out, below /scim/v2."""

    def __init__(self, directory: Directory, secret: str) -> None:
        self.directory, self.secret = directory, secret
        self.client = Client(headers={"authorization": f"Bearer {secret}"})

    def ask(self, method: str, path: str, body=None, **headers):
        kind = {"content_type": "application/scim+json"}
        return getattr(self.client, method)(
            f"/scim/v2{path}", *(() if body is None else (body,)), headers=headers, **kind
        )

    def find(self, path: str, **query):
        return self.client.get(f"/scim/v2{path}", query)

    def hire(self, email: str, **more) -> dict:
        body = {"schemas": [USER], "userName": email, "emails": [{"value": email, "primary": True}], **more}
        answer = self.ask("post", "/Users", body)
        assert answer.status_code == 201, answer.content
        return answer.json()

    def group(self, name: str, *people: dict) -> dict:
        members = [{"value": each["id"]} for each in people]
        answer = self.ask("post", "/Groups", {"schemas": [GROUP], "displayName": name, "members": members})
        assert answer.status_code == 201, answer.content
        return answer.json()

    def patch(self, path: str, *operations: dict, **headers):
        return self.ask("patch", path, {"schemas": [PATCH], "Operations": list(operations)}, **headers)


@pytest.fixture
def administrator(team) -> User:
    User.objects.filter(pk=team.owner.user_id).update(is_administrator=True)
    team.owner.user.refresh_from_db()
    return team.owner.user


@pytest.fixture
def company(administrator) -> Company:
    return Company(*directories.create(administrator, "Entra", True, []))


@pytest.fixture
def limited(administrator, team) -> Company:
    """A directory of the lab's workspace only."""
    return Company(*directories.create(administrator, "Guests", False, [team.workspace]))


def role_of(email: str, workspace) -> str | None:
    found = Membership.objects.filter(user__email=email, workspace=workspace).first()
    return found.role if found else None


def _conforms(client: httpx2.Client) -> tuple[Any, list[Any]]:
    """Imports only here, because it takes a second, in each process that collects tests."""
    from scim2_client.engines.httpx2 import SyncSCIMClient
    from scim2_tester import Status, check_server

    return Status, check_server(SyncSCIMClient(client))


@pytest.mark.django_db(transaction=True)
def test_the_service_conforms_to_the_protocol(company, live_server):
    """The requests that the published test suite of the protocol sends to a server over HTTP, with people and groups."""
    headers = {"Authorization": f"Bearer {company.secret}"}
    with (
        httpx2.Client(base_url=f"{live_server.url}/scim/v2", headers=headers, timeout=SECONDS) as client,
        # its classes look for their source in each frame below: a hundred, in a test
        ThreadPoolExecutor(1) as thread,
    ):
        status, results = thread.submit(_conforms, client).result()
    wrong = [f"{each.title}: {each.reason}" for each in results if each.status not in (status.SUCCESS, status.SKIPPED)]
    assert not wrong, "\n".join(wrong)
    skipped = {each.title for each in results if each.status == status.SKIPPED}
    assert skipped <= {"search_with_attributes"}
    assert {"object_creation", "object_replacement", "object_deletion", "check_add_attribute", "check_remove_attribute",
            "check_replace_attribute", "query_all_schemas", "object_query_without_id"} <= {each.title for each in results}  # fmt: skip


def test_a_person_is_made_found_changed_and_let_go_as_entra_does_it(company):
    missing = company.find("/Users", filter='userName eq "nia@example.org"').json()
    assert (missing["totalResults"], missing["Resources"]) == (0, [])
    nia = company.ask(
        "post",
        "/Users",
        {
            "schemas": [USER, "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
            "externalId": "0a21",
            "userName": "Nia@example.org",
            "active": True,
            "displayName": "Nia N",
            "emails": [{"primary": True, "type": "work", "value": "Nia@example.org"}],
            "meta": {"resourceType": "User"},
            "name": {"formatted": "Nia N", "familyName": "N", "givenName": "Nia"},
            "roles": [],
            "title": "Rater",
        },
    ).json()
    user = User.objects.get(email="nia@example.org")
    assert (user.name, user.proof, user.has_usable_password(), user.is_active) == ("Nia N", Proof.COMPANY, False, True)
    for asked in ('userName eq "NIA@example.org"', 'externalId eq "0a21"', f'id eq "{nia["id"]}"',
                  'emails eq "nia@example.org"', 'emails.value eq "Nia@example.org" and active eq true'):  # fmt: skip
        assert [each["id"] for each in company.find("/Users", filter=asked).json()["Resources"]] == [nia["id"]], asked
    changed = company.patch(
        f"/Users/{nia['id']}",
        {"op": "Add", "path": 'emails[type eq "home"].value', "value": "nia@home.example"},
        {"op": "Replace", "value": {"displayName": "Nia M", "name.familyName": "M"}},
        {"op": "Replace", "path": "active", "value": "False"},
    ).json()
    assert (changed["displayName"], changed["name"]["familyName"], changed["active"]) == ("Nia M", "M", False)
    assert {each["value"] for each in changed["emails"]} == {"Nia@example.org", "nia@home.example"}
    user.refresh_from_db()
    assert (user.name, user.is_active, user.email) == ("Nia M", False, "nia@example.org")
    assert company.patch(f"/Users/{nia['id']}", {"op": "Replace", "path": "active", "value": "True"}).json()["active"]
    assert company.ask("delete", f"/Users/{nia['id']}").status_code == 204
    assert company.ask("get", f"/Users/{nia['id']}").status_code == 404
    assert User.objects.get(pk=user.pk).is_active is False


def test_okta_sends_a_person_whole(company):
    nia = company.hire("nia@example.org", displayName="Nia")
    body = {"schemas": [USER], "userName": "nia@example.org", "displayName": "Nia B", "active": False,
            "emails": [{"value": "nia.b@example.org", "primary": True}], "groups": [], "id": nia["id"]}  # fmt: skip
    assert company.ask("put", f"/Users/{nia['id']}", body).json()["active"] is False
    user = User.objects.get(email="nia.b@example.org")
    assert (user.name, user.is_active) == ("Nia B", False)


def test_what_a_directory_does_not_mention_brings_nobody_back(company):
    nia = company.hire("nia@example.org", active=False)
    body = {"schemas": [USER], "userName": "nia@example.org", "displayName": "Nia"}
    assert company.ask("put", f"/Users/{nia['id']}", body).json()["active"] is False
    assert company.patch(f"/Users/{nia['id']}", {"op": "remove", "path": "active"}).status_code == 400
    assert User.objects.get(email="nia@example.org").is_active is False


def test_an_address_is_taken_from_the_user_name_where_it_is_one(company):
    answer = company.ask("post", "/Users", {"schemas": [USER], "userName": "nia@example.org"})
    assert answer.status_code == 201 and User.objects.filter(email="nia@example.org").exists()
    answer = company.ask("post", "/Users", {"schemas": [USER], "userName": "nia"})
    assert (answer.status_code, answer.json()["scimType"]) == (400, "invalidValue")


def test_groups_give_roles_at_once_and_take_them(company, team):
    groups.map_group(team.owner, "raters", Role.ANNOTATOR)
    groups.map_group(team.owner, "science", Role.RESEARCHER)
    nia, mo = company.hire("nia@example.org"), company.hire("mo@example.org")
    raters = company.group("raters", nia)
    assert role_of("nia@example.org", team.workspace) == Role.ANNOTATOR
    science = company.group("science")
    company.patch(
        f"/Groups/{science['id']}",
        {"op": "Add", "path": "members", "value": [{"value": nia["id"]}, {"value": mo["id"]}]},
    )
    assert role_of("nia@example.org", team.workspace) == role_of("mo@example.org", team.workspace) == Role.RESEARCHER
    token = ApiClient(Membership.objects.get(user__email="mo@example.org"))
    # one in the form of the protocol, one in the form that Entra used to send
    company.patch(f"/Groups/{science['id']}", {"op": "remove", "path": f'members[value eq "{nia["id"]}"]'})
    company.patch(
        f"/Groups/{science['id']}", {"op": "Remove", "path": "members", "value": [{"$ref": None, "value": mo["id"]}]}
    )
    assert role_of("nia@example.org", team.workspace) == Role.ANNOTATOR
    assert role_of("mo@example.org", team.workspace) is None and token.get("/me").status_code == 401
    renamed = {"schemas": [GROUP], "displayName": "science", "members": [{"value": nia["id"]}]}
    assert company.ask("put", f"/Groups/{raters['id']}", renamed).status_code == 409
    company.ask("delete", f"/Groups/{science['id']}")
    assert company.ask("put", f"/Groups/{raters['id']}", renamed).status_code == 200
    assert role_of("nia@example.org", team.workspace) == Role.RESEARCHER
    company.ask("delete", f"/Groups/{raters['id']}")
    assert role_of("nia@example.org", team.workspace) is None
    entry = AuditEntry.objects.filter(workspace=team.workspace, action="member.left").last()
    assert entry.token == company.secret[:10] and entry.detail["by"] == "directory"


def test_what_an_owner_says_of_a_group_counts_at_once(company, team, eager, django_capture_on_commit_callbacks):
    company.group("raters", company.hire("nia@example.org"))
    with django_capture_on_commit_callbacks(execute=True):
        row = groups.map_group(team.owner, "raters", Role.REVIEWER)
    assert role_of("nia@example.org", team.workspace) == Role.REVIEWER
    with django_capture_on_commit_callbacks(execute=True):
        groups.unmap(team.owner, row)
    assert role_of("nia@example.org", team.workspace) is None


def test_an_owners_hand_stands_over_the_directory(company, team):
    groups.map_group(team.owner, "raters", Role.OWNER)
    anna = company.hire(team.annotator.user.email)
    raters = company.group("raters", anna)
    assert role_of(team.annotator.user.email, team.workspace) == Role.ANNOTATOR
    remove_member(team.owner, team.annotator)
    company.patch(f"/Groups/{raters['id']}", {"op": "remove", "path": "members"})
    company.patch(f"/Groups/{raters['id']}", {"op": "add", "path": "members", "value": [{"value": anna["id"]}]})
    assert role_of(team.annotator.user.email, team.workspace) is None


@pytest.mark.parametrize("how", ["active", "delete"])
def test_who_was_let_go_has_no_way_in(company, team, how):
    user = team.annotator.user
    set_password(user, PASSWORD)
    open_session, token, link = browser(team.annotator), ApiClient(team.annotator), create_sign_in_link(user)
    anna = company.hire(user.email)
    assert open_session.get("/workspaces").status_code == 200 and token.get("/me").status_code == 200
    if how == "active":
        assert company.patch(f"/Users/{anna['id']}", {"op": "replace", "value": {"active": False}}).status_code == 200
    else:
        assert company.ask("delete", f"/Users/{anna['id']}").status_code == 204
    assert open_session.get("/workspaces").status_code == 302 and token.get("/me").status_code == 401
    assert Client().post(f"/sign-in/link/{link}").status_code == 410
    late = Client()
    late.post("/sign-in", {"email": user.email, "password": PASSWORD})
    late.force_login(
        user, backend="django.contrib.auth.backends.ModelBackend"
    )  # a session that was opened nevertheless
    assert late.get("/workspaces").status_code == 302
    # the role that an owner gave stays, but does not open anything
    assert Membership.objects.filter(pk=team.annotator.pk).exists()
    said = AuditEntry.objects.filter(workspace=team.workspace, action="account.closed").get()
    assert (said.detail["by"], said.token) == ("Entra", company.secret[:10])
    fresh = create_sign_in_link(user)
    assert Client().post(f"/sign-in/link/{fresh}").status_code == 410
    with pytest.raises(Conflict):
        sign_up_invited(user.email, Proof.INVITATION, "Anna", PASSWORD)


def test_a_deleted_person_comes_back_to_their_account_by_the_same_directory_alone(company, administrator):
    nia = company.hire("nia@example.org")
    user = User.objects.get(email="nia@example.org")
    company.ask("delete", f"/Users/{nia['id']}")
    other = Company(*directories.create(administrator, "Okta", True, []))
    body = {"schemas": [USER], "userName": "nia@example.org"}
    assert other.ask("post", "/Users", body).status_code == 409
    again = company.hire("nia@example.org")
    user.refresh_from_db()
    assert user.is_active and again["id"] != nia["id"]
    assert company.ask("get", f"/Users/{nia['id']}").status_code == 404
    assert User.objects.filter(email="nia@example.org").count() == 1


def with_ways_in(email: str) -> User:
    user = User.objects.get(email=email)
    set_password(user, PASSWORD)
    Authenticator.objects.create(user=user, type="totp", data={})
    SocialAccount.objects.create(user=user, provider="company", uid=email)
    return user


def has_ways_in(user: User) -> bool:
    held = Authenticator.objects.filter(user=user), SocialAccount.objects.filter(user=user)
    user.refresh_from_db()
    return user.has_usable_password() or any(each.exists() for each in held)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"externalId": "1"}, {"externalId": "2"}),
        ({}, {"userName": "nina"}),
        ({"externalId": "1"}, {"userName": "nina"}),
    ],
)
def test_who_gets_the_address_of_somebody_who_left_gets_an_account_of_their_own(company, team, before, after):
    nia = company.hire("nia@example.org", **before)
    former = with_ways_in("nia@example.org")
    enter(team.workspace, former, Role.OWNER)
    company.ask("delete", f"/Users/{nia['id']}")
    nina = company.hire("nia@example.org", **after)
    user = User.objects.get(email="nia@example.org")
    assert user != former and user.is_active and not has_ways_in(user) and nina["id"] != nia["id"]
    assert role_of("nia@example.org", team.workspace) is None
    assert not has_ways_in(former)  # otherwise a provider that names people by their address would open it
    assert not former.is_active and former.email.endswith(addresses.NOWHERE) and former.proof == Proof.NONE
    assert Membership.objects.get(user=former).role == Role.OWNER
    assert AuditEntry.objects.filter(action="address.lost", detail__email="nia@example.org").exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [({"externalId": "1"}, {"externalId": "1", "userName": "nia.b"}), ({}, {}), ({}, {"externalId": "1"})],
)
def test_who_comes_back_finds_their_account_without_its_former_ways_in(company, team, before, after):
    nia = company.hire("nia@example.org", **before)
    user = with_ways_in("nia@example.org")
    enter(team.workspace, user, Role.REVIEWER)
    company.ask("delete", f"/Users/{nia['id']}")
    link = create_sign_in_link(user)
    company.hire("nia@example.org", **after)
    assert User.objects.get(email="nia@example.org") == user and not has_ways_in(user) and user.is_active
    assert role_of("nia@example.org", team.workspace) == Role.REVIEWER
    assert Client().post(f"/sign-in/link/{link}").status_code == 410


def test_directories_see_and_change_their_own_people_and_groups_alone(company, administrator):
    nia = company.hire("nia@example.org")
    raters = company.group("raters", nia)
    other = Company(*directories.create(administrator, "Okta", True, []))
    for path in (f"/Users/{nia['id']}", f"/Groups/{raters['id']}"):
        for method in ("get", "delete"):
            assert other.ask(method, path).status_code == 404
        assert other.patch(path, {"op": "replace", "path": "externalId", "value": "x"}).status_code == 404
    assert other.find("/Users").json()["totalResults"] == other.find("/Groups").json()["totalResults"] == 0
    stolen = {"schemas": [GROUP], "displayName": "mine", "members": [{"value": nia["id"]}]}
    assert other.ask("post", "/Groups", stolen).status_code == 400
    assert other.ask("post", "/Users", {"schemas": [USER], "userName": "nia@example.org"}).status_code == 409


def test_an_address_that_nothing_has_proven_is_no_account_to_take(company, team):
    """Another person typed this address. They keep their work, without an address, and the company's person gets a new account."""
    typed = User.objects.create_user("nia@example.org", PASSWORD, name="Typed")
    membership = enter(team.workspace, typed, Role.ANNOTATOR)
    company.hire("nia@example.org")
    user = User.objects.get(email="nia@example.org")
    typed.refresh_from_db()
    assert user != typed and typed.is_active and typed.email.endswith(addresses.NOWHERE)
    assert Membership.objects.get(pk=membership.pk).user == typed
    assert not Membership.objects.filter(user=user).exists()


def test_an_account_known_by_an_owners_word_is_handed_over_without_its_ways_in(company, team):
    User.objects.filter(pk=team.annotator.user_id).update(proof=Proof.INVITATION)
    team.annotator.user.refresh_from_db()
    set_password(team.annotator.user, PASSWORD)
    SocialAccount.objects.create(user=team.annotator.user, provider="company", uid="of whoever was there first")
    token, session = ApiClient(team.annotator), browser(team.annotator)
    company.hire(team.annotator.user.email)
    assert token.get("/me").status_code == 401 and session.get("/workspaces").status_code == 302
    user = User.objects.get(pk=team.annotator.user_id)
    assert user.proof == Proof.COMPANY and not has_ways_in(user)


def test_an_account_whose_address_is_proven_goes_on_as_it_is(company, team):
    session = browser(team.annotator)
    company.hire(team.annotator.user.email)
    assert session.get("/workspaces").status_code == 200
    assert DirectoryPerson.objects.get().user == team.annotator.user


def test_nobodys_address_is_taken_by_a_change(company, team):
    nia = company.hire("nia@example.org")
    emails = {"op": "replace", "path": "emails", "value": [{"value": team.reviewer.user.email, "primary": True}]}
    assert company.patch(f"/Users/{nia['id']}", emails).status_code == 409
    assert company.ask("get", f"/Users/{nia['id']}").json()["emails"][0]["value"] == "nia@example.org"
    assert User.objects.get(email=team.reviewer.user.email) == team.reviewer.user


def test_a_directory_of_one_workspace_leaves_the_others_alone(limited, team):
    groups.map_group(team.owner, "raters", Role.ANNOTATOR)
    groups.map_group(team.outsider, "raters", Role.OWNER)
    limited.group("raters", limited.hire("nia@example.org"))
    assert role_of("nia@example.org", team.workspace) == Role.ANNOTATOR
    assert role_of("nia@example.org", team.outsider.workspace) is None
    for somebody in (team.outsider, team.owner):  # one of another workspace, and an administrator of the installation
        body = {"schemas": [USER], "userName": somebody.user.email}
        assert limited.ask("post", "/Users", body).status_code == 409
    assert limited.hire(team.annotator.user.email)["active"]


@pytest.mark.parametrize("how", ["workspace", "administrator"])
def test_a_directory_of_one_workspace_leaves_alone_who_has_since_come_to_belong_elsewhere(limited, team, how):
    groups.map_group(team.owner, "raters", Role.ANNOTATOR)
    nia, gone = limited.hire("nia@example.org"), limited.hire("gone@example.org", externalId="1")
    raters = limited.group("raters", nia)
    limited.ask("delete", f"/Users/{gone['id']}")
    people = [User.objects.get(email=f"{each}@example.org") for each in ("nia", "gone")]
    for user in people:
        if how == "workspace":
            enter(team.outsider.workspace, user, Role.OWNER)
        else:
            User.objects.filter(pk=user.pk).update(is_administrator=True)
    before = list(User.objects.order_by("pk").values())
    path = f"/Users/{nia['id']}"
    renamed = [{"value": "nia.b@example.org", "primary": True}]
    for value in ({"active": False}, {"emails": renamed}, {"displayName": "Nobody"}):
        assert limited.patch(path, {"op": "replace", "value": value}).status_code == 409
    body = {"schemas": [USER], "userName": "nia@example.org", "displayName": "Nobody"}
    assert limited.ask("put", path, body).status_code == 409
    assert limited.ask("delete", path).status_code == 409
    for number in ("1", "2"):  # the person whom the directory deleted, and the person who has the address now
        body = {"schemas": [USER], "userName": "gone@example.org", "externalId": number}
        assert limited.ask("post", "/Users", body).status_code == 409
    assert list(User.objects.order_by("pk").values()) == before
    limited.ask("delete", f"/Groups/{raters['id']}")  # in its own workspace its requests are followed
    assert role_of("nia@example.org", team.workspace) is None


def test_a_directory_of_one_workspace_takes_no_address_from_elsewhere(limited, team):
    User.objects.filter(pk=team.outsider.user_id).update(proof=Proof.INVITATION)
    nia = limited.hire("nia@example.org")
    for holder, status in ((team.outsider.user, 409), (team.annotator.user, 200)):
        User.objects.filter(pk=holder.pk).update(proof=Proof.INVITATION)
        emails = {"op": "replace", "path": "emails", "value": [{"value": holder.email, "primary": True}]}
        assert limited.patch(f"/Users/{nia['id']}", emails).status_code == status
        assert User.objects.filter(pk=holder.pk, email=holder.email).exists() == (status == 409)


def test_the_last_administrator_stays(company, administrator):
    ada = company.hire(administrator.email)
    answer = company.patch(f"/Users/{ada['id']}", {"op": "replace", "path": "active", "value": False})
    assert answer.status_code == 409 and "administrator" in answer.json()["detail"]
    assert company.ask("delete", f"/Users/{ada['id']}").status_code == 409
    administrator.refresh_from_db()
    assert administrator.is_active and administrator.is_administrator


def test_rights_in_the_installation_do_not_come_back(team, administrator):
    make_administrator(team.researcher.user, True)
    closing.close(administrator, by="Entra")
    closing.reopen(administrator, by="Entra")
    administrator.refresh_from_db()
    assert administrator.is_active and not administrator.is_administrator


def test_a_sign_in_without_groups_does_not_undo_what_the_directory_says(limited, team):
    groups.map_group(team.owner, "raters", Role.ANNOTATOR)
    groups.map_group(team.outsider, "guests", Role.ANNOTATOR)
    limited.group("raters", limited.hire("nia@example.org"))
    nia = User.objects.get(email="nia@example.org")
    groups.follow_sign_in(nia, ["guests"])
    assert role_of("nia@example.org", team.workspace) == Role.ANNOTATOR
    # the directory does not decide in this workspace
    assert role_of("nia@example.org", team.outsider.workspace) == Role.ANNOTATOR
    groups.follow_sign_in(nia, [])
    assert role_of("nia@example.org", team.workspace) == Role.ANNOTATOR
    assert role_of("nia@example.org", team.outsider.workspace) is None


def test_what_a_sign_in_gave_stays_until_the_directory_keeps_a_group_that_means_something_there(company, team):
    groups.map_group(team.owner, "raters", Role.ANNOTATOR)
    groups.map_group(team.outsider, "guests", Role.ANNOTATOR)
    user = User.objects.create_user("nia@example.org", name="Nia", proof=Proof.COMPANY)
    groups.follow_sign_in(user, ["raters", "guests"])
    token = ApiClient(Membership.objects.get(user=user, workspace=team.workspace))
    nia = company.hire("nia@example.org")
    company.group("of no role", nia)
    groups.follow_sign_in(user, ["raters", "guests"])
    assert role_of(user.email, team.workspace) == Role.ANNOTATOR and token.get("/me").status_code == 200
    raters = company.group("raters")
    company.patch(f"/Users/{nia['id']}", {"op": "replace", "value": {"displayName": "Nia"}})
    assert role_of(user.email, team.workspace) is None and token.get("/me").status_code == 401
    assert role_of(user.email, team.outsider.workspace) == Role.ANNOTATOR
    groups.follow_sign_in(user, ["raters", "guests"])
    assert role_of(user.email, team.workspace) is None
    company.patch(f"/Groups/{raters['id']}", {"op": "add", "path": "members", "value": [{"value": nia["id"]}]})
    assert role_of(user.email, team.workspace) == Role.ANNOTATOR
    company.patch(f"/Users/{nia['id']}", {"op": "replace", "value": {"active": False}})
    assert not Membership.objects.filter(user=user).exists()


def test_a_key_is_shown_once_stored_as_a_hash_and_revoked(team, administrator):
    page = browser(team.owner)
    made = page.post("/installation/directories", {"name": "Entra", "everywhere": "on"})
    secret = made.content.decode().split("tsd_")[1].split("<")[0]
    secret = "tsd_" + secret.split('"')[0].strip()
    key = DirectoryKey.objects.get()
    assert secret not in page.get("/installation/directories").content.decode() and secret not in str(vars(key))
    company = Company(Directory.objects.get(), secret)
    assert company.find("/Users").status_code == 200
    key.refresh_from_db()
    assert key.last_used_at is not None
    another = page.post(f"/installation/directories/{company.directory.pk}/keys")
    assert b"shown only now" in another.content and company.find("/Users").status_code == 200
    revoke = f"/installation/directories/keys/{key.pk}/revoke"
    assert b"Keep it" in page.post(revoke).content and company.find("/Users").status_code == 200
    page.post(revoke, {"sure": "1"})
    assert company.find("/Users").status_code == 401
    said = AuditEntry.objects.filter(workspace=team.workspace).values_list("action", flat=True)
    assert {"directory.created", "directory.key_created", "directory.key_revoked"} <= set(said)


def test_a_directory_has_a_name_of_its_own_and_a_workspace(team, company):
    page = browser(team.owner)
    for body in ({"name": "Entra", "everywhere": "on"}, {"name": "Other"}, {"name": "", "everywhere": "on"}):
        assert page.post("/installation/directories", body).status_code == 422
    assert Directory.objects.count() == 1
    assert (
        page.post("/installation/directories", {"name": "Other", "workspaces": [team.workspace.pk]}).status_code == 200
    )
    assert list(Directory.objects.get(name="Other").reach()) == [team.workspace]


def test_only_administrators_see_directories(team, company):
    page, key = browser(team.outsider), DirectoryKey.objects.get()
    assert page.get("/installation/directories").status_code == 403
    for path in ("", f"/{company.directory.pk}/keys", f"/keys/{key.pk}/revoke"):
        body = {"name": "x", "everywhere": "on", "sure": "1"}
        assert page.post(f"/installation/directories{path}", body).status_code == 403
    key.refresh_from_db()
    assert key.revoked_at is None and DirectoryKey.objects.count() == 1


@pytest.mark.parametrize("said", ["", "Bearer", "Bearer tsd_wrong", "Basic dHM6dHM="])
def test_without_a_key_there_is_nothing(company, team, said):
    stranger = browser(team.owner) if not said else Client(headers={"authorization": said})
    for path in ("/Users", "/Groups", "/Schemas", "/ServiceProviderConfig", "/", "/Me"):
        assert stranger.get(f"/scim/v2{path}").status_code == 401
    assert stranger.post("/scim/v2/Users", {"userName": "x@example.org"}, "application/json").status_code == 401


def test_an_api_token_is_no_key_of_a_directory(team):
    assert ApiClient(team.owner).client.get("/scim/v2/Users").status_code == 401


def test_strangers_and_directories_have_limits(company, monkeypatch):
    from webapp.identity.scim import endpoint

    monkeypatch.setattr(endpoint, "STRANGERS_PER_MINUTE", 2)
    monkeypatch.setattr(endpoint, "REQUESTS_PER_MINUTE", 3)
    guesses = [Client(headers={"authorization": "Bearer tsd_x"}).get("/scim/v2/Users") for _ in range(3)]
    assert [each.status_code for each in guesses] == [401, 401, 429] and int(guesses[-1]["Retry-After"]) > 0
    assert [company.find("/Users").status_code for _ in range(4)] == [200, 200, 200, 429]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b"[" * 100_000, 400),
        (b'{"schemas":["' + USER.encode() + b'"],"userName":"\\ud800@example.org"}', 400),
        (b'{"schemas":["' + USER.encode() + b'"],"userName":"' + b"a" * 300 + b'@example.org"}', 400),
        (b'{"schemas":["' + USER.encode() + b'"],"userName":"a@example.org","displayName":"\\u0000"}', 201),
        (b'{"schemas":["' + USER.encode() + b'"],"userName":"a@example.org","active":"perhaps"}', 400),
        (b'{"schemas":["' + USER.encode() + b'"],"userName":"a@example.org","displayName":"' + b"n" * 30_000 + b'"}', 400),
        (b" " * 1_000_001, 413),
    ],
)  # fmt: skip
def test_bodies_that_cannot_be_kept_are_refused_in_the_protocols_shape(company, body, status):
    answer = company.client.post("/scim/v2/Users", body, "application/scim+json")
    assert answer.status_code == status, answer.content
    if status != 201:
        assert answer.json()["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
        assert answer["Content-Type"] == "application/scim+json" and not DirectoryPerson.objects.exists()


@pytest.mark.parametrize(
    "asked", ["userName", 'userName co "a"', 'title eq "x"', "userName eq 1", "(" * 500, 'active eq "yes"']
)
def test_filters_that_are_not_carried_out_are_refused(company, asked):
    answer = company.find("/Users", filter=asked)
    assert (answer.status_code, answer.json()["scimType"]) == (400, "invalidFilter")


def test_lists_have_pages_and_cost_the_same_however_many_there_are(company):
    people = [company.hire(f"p{each}@example.org") for each in range(5)]
    company.group("raters", *people[:2])
    page = company.find("/Users", startIndex=2, count=2).json()
    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (5, 2, 2)
    assert [each["id"] for each in page["Resources"]] == [people[1]["id"], people[2]["id"]]
    assert company.find("/Users", count=0).json()["Resources"] == []
    assert company.find("/Users", startIndex="x").status_code == 400

    def queries(path: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            assert company.find(path).status_code == 200
        return len(found)

    before = queries("/Users"), queries("/Groups")
    company.group("others", *[company.hire(f"q{each}@example.org") for each in range(5)])
    assert (queries("/Users"), queries("/Groups")) == before
    bare = company.find("/Groups", filter='displayName eq "Raters"', excludedAttributes="members").json()["Resources"]
    assert len(bare) == 1 and "members" not in bare[0]
    of = company.find("/Groups", filter=f'members eq "{people[0]["id"]}"').json()["Resources"]
    assert [each["displayName"] for each in of] == ["raters"] and len(of[0]["members"]) == 2
    shown = company.ask("get", f"/Users/{people[0]['id']}").json()
    assert [each["display"] for each in shown["groups"]] == ["raters"]


def test_versions_keep_writers_from_overwriting_each_other(company):
    nia = company.hire("nia@example.org")
    path, seen = f"/Users/{nia['id']}", nia["meta"]["version"]
    unchanged = company.ask("get", path, **{"if-none-match": seen})
    assert unchanged.status_code == 304
    renamed = {"op": "replace", "path": "displayName", "value": "Nia"}
    assert company.patch(path, renamed, **{"if-match": seen}).status_code == 200
    assert company.patch(path, renamed | {"value": "Late"}, **{"if-match": seen}).status_code == 412
    assert company.ask("delete", path, **{"if-match": seen}).status_code == 412
    now = company.ask("get", path)
    assert now["ETag"] == now.json()["meta"]["version"] and now.json()["displayName"] == "Nia"


def test_members_are_people_of_the_directory(company):
    for value in ("x", str(uuid4())):
        body = {"schemas": [GROUP], "displayName": "raters", "members": [{"value": value}]}
        assert company.ask("post", "/Groups", body).status_code == 400
    assert not DirectoryGroup.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_who_make_the_same_person_at_once_one_is_told(company):
    start = Barrier(2)

    def hire(number: int) -> int:
        try:
            start.wait()
            body = {"schemas": [USER], "userName": "nia@example.org", "externalId": str(number)}
            return company.ask("post", "/Users", body).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        assert sorted(threads.map(hire, range(2))) == [201, 409]
    assert User.objects.filter(email="nia@example.org").count() == DirectoryPerson.objects.count() == 1


def test_the_session_cookie_means_nothing_there(company, team):
    """A form of another site cannot make a browser send a directory's requests."""
    client = browser(team.owner)
    assert SESSION_KEY in client.session and settings.SESSION_COOKIE_NAME in client.cookies
    assert client.post("/scim/v2/Users", {"userName": "x@example.org"}, "application/json").status_code == 401
