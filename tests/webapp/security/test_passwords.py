"""Passwords that others can guess are refused with the reason, at every place where a password is chosen."""

from datetime import timedelta

import pytest
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client
from django.utils import timezone

from tests.team import browser
from webapp.accounts.members.services import invite
from webapp.accounts.models import Role, User
from webapp.accounts.profile.services import set_password
from webapp.annotation.people import services as people

WEAK = [
    "password2024!", "P@ssw0rd!!!!", "Sunshine#12", "1234567890123", "qwertyuiop12", "abcdefghij99", "aaaaaabbbbbb",
    "Touchstone2026", "t0uchst0ne-1", "anna.lovelace1", "Lovelace-8361", "anna4annotator",
]  # fmt: skip
PERSON = User(email="anna.lovelace@example.org", name="Anna Lovelace")


@pytest.mark.parametrize("password", WEAK)
def test_a_password_that_others_guess_is_refused(password):
    with pytest.raises(ValidationError):
        validate_password(password, PERSON)


@pytest.mark.parametrize(
    "password",
    ["correct horse battery", "violin 4 quartz", "xK9#mvuQ2rTz", "annas kleiner bär", "8305716294", "ßßß ¿čę ®®"],
)
def test_others_are_taken(password):
    validate_password(password, PERSON)


@pytest.mark.django_db
def test_every_door_looks_at_what_is_known_of_the_person(team, project):
    invited = invite(team.owner, "grace.hopper@example.org", Role.REVIEWER)
    _, joined = people.invite(team.researcher, project)
    body = {"name": "Grace Hopper", "email": "grace.hopper@example.org", "password": "GraceHopper1906"}
    for path in (f"/invite/{invited}", f"/join/{joined}"):
        answer = Client().post(path, body)
        assert answer.status_code == 422 and "“hopper”" in answer.content.decode(), path
    assert not User.objects.filter(name="Grace Hopper").exists()
    answer = browser(team.annotator).post("/settings/profile", {"new": "anna-2026-anna"})
    assert answer.status_code == 422 and "“anna”" in answer.content.decode()


@pytest.mark.django_db
def test_spaces_at_its_ends_belong_to_a_password(team):
    page, typed = browser(team.owner), "  quartz violin meadow "
    assert page.post("/settings/profile", {"new": typed}).status_code == 302
    for password, opens in ((typed.strip(), False), (typed, True)):
        client = Client()
        client.post("/sign-in", {"email": team.owner.user.email, "password": password})
        assert (SESSION_KEY in client.session) == opens


@pytest.mark.django_db
@pytest.mark.parametrize(("length", "taken"), [(64, True), (1000, True), (1001, False)])
def test_a_long_passphrase_is_taken_and_a_book_is_not(team, length, taken):
    password = "quartz violin meadow lantern orchid copper granite velvet harbour " * 16
    answer = browser(team.owner).post("/settings/profile", {"new": password[:length]})
    assert answer.status_code == (302 if taken else 422)
    team.owner.user.refresh_from_db()
    assert team.owner.user.check_password(password[:length]) == taken


@pytest.mark.django_db
def test_an_old_password_still_opens(team, client):
    set_password(team.owner.user, "quartz violin meadow")
    long_ago = timezone.now() - timedelta(days=3650)
    User.objects.filter(pk=team.owner.user_id).update(last_login=long_ago, date_joined=long_ago)
    answer = client.post("/sign-in", {"email": team.owner.user.email, "password": "quartz violin meadow"})
    assert answer["Location"] == "/" and client.get("/").status_code == 200
