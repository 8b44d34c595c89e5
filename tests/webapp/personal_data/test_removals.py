"""A removed person stays out, also with a new account after the former one was erased."""

import pytest
from allauth.socialaccount.models import SocialAccount

from webapp.accounts.members.services import accept_invite, enter, invite, leave, open_invite, remove_member
from webapp.accounts.models import FormerRemoval, Membership, Proof, Role, User
from webapp.core import encryption
from webapp.core.problems import Conflict
from webapp.identity import groups
from webapp.personal_data.erasing import erase

pytestmark = pytest.mark.django_db
ADDRESS = "nia@example.org"


def comes(uid: str = "u-17", email: str = ADDRESS, proof: str = Proof.COMPANY) -> User:
    """A person signs in by the company for the first time."""
    user = User.objects.create_user(email, proof=proof)
    SocialAccount.objects.create(user=user, provider="company", uid=uid)
    return user


@pytest.fixture
def gone(team) -> None:
    """Nia came by a group, was removed, and erased her account."""
    groups.map_group(team.owner, "science", Role.RESEARCHER)
    user = comes()
    groups.follow_sign_in(user, ["science"])
    remove_member(team.owner, Membership.objects.get(user=user))
    erase(user, user)


def member(user: User) -> bool:
    return Membership.objects.filter(user=user).exists()


@pytest.mark.parametrize(
    "again",
    [{}, {"uid": "u-18"}, {"email": "nia.new@example.org"}],
    ids=["the same", "the same address", "the same person of the company under a new address"],
)
def test_a_group_does_not_let_them_in_again(again, gone, team):
    user = comes(**again)
    groups.follow_sign_in(user, ["science"])
    assert not member(user)
    with pytest.raises(Conflict, match="removed"):
        enter(team.workspace, user, Role.ANNOTATOR)


def test_somebody_else_comes_in_and_so_does_who_only_typed_the_address(gone, team):
    other = comes("u-99", "theo@example.org")
    groups.follow_sign_in(other, ["science"])
    typed = User.objects.create_user(ADDRESS)
    assert member(other) and enter(team.workspace, typed, Role.ANNOTATOR)


def test_another_workspace_is_open(gone, team):
    groups.map_group(team.outsider, "science", Role.REVIEWER)
    user = comes()
    groups.follow_sign_in(user, ["science"])
    assert [each.workspace for each in Membership.objects.filter(user=user)] == [team.outsider.workspace]


def test_an_owner_who_invites_the_address_lets_them_in_for_good(gone, team):
    user = comes(uid="u-18")
    accept_invite(open_invite(invite(team.owner, ADDRESS, Role.REVIEWER)), user)
    assert member(user)
    assert FormerRemoval.objects.count() == 1, "that of the former id at the company, which nobody has any more"
    leave(Membership.objects.get(user=user), by="directory")
    groups.follow_sign_in(user, ["science"])
    assert member(user)


def test_an_address_that_was_only_typed_is_in_nobodys_way(team):
    user = User.objects.create_user(ADDRESS)
    remove_member(team.owner, enter(team.workspace, user, Role.ANNOTATOR))
    erase(user, user)
    assert not FormerRemoval.objects.exists()


def test_the_memory_survives_another_secret_key_and_is_no_list_of_digests_to_guess_at(gone, team, settings):
    rows = FormerRemoval.objects.all()
    assert len({row.digest for row in rows}) == len({row.key for row in rows}) == 2
    settings.SECRET_KEY_FALLBACKS, settings.SECRET_KEY = [settings.SECRET_KEY], "another key of this installation"
    counted = {each.column: each.former for each in encryption.encrypt_again()}
    assert counted["accounts.formerremoval.key"] == 2
    settings.SECRET_KEY_FALLBACKS = []
    user = comes()
    groups.follow_sign_in(user, ["science"])
    assert not member(user)
