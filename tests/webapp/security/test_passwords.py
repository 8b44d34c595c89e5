"""Passwords that others guess are refused with the reason, wherever a password is chosen."""

import pytest
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.test import Client

from tests.cast import browser
from webapp.accounts import services
from webapp.accounts.models import Role, User
from webapp.annotation.services import projects

WEAK = [
    "password2024!", "P@ssw0rd!!!!", "Sunshine#12", "1234567890123", "qwertyuiop12", "abcdefghij99", "aaaaaabbbbbb",
    "Touchstone2026", "t0uchst0ne-1", "anna.lovelace1", "Lovelace-8361", "anna4annotator",
]  # fmt: skip
PERSON = User(email="anna.lovelace@example.org", name="Anna Lovelace")


@pytest.mark.parametrize("password", WEAK)
def test_a_password_that_others_guess_is_refused(password):
    with pytest.raises(ValidationError):
        validate_password(password, PERSON)


@pytest.mark.parametrize("password", ["correct horse battery", "violin 4 quartz", "xK9#mvuQ2rTz", "annas kleiner bär"])
def test_others_are_taken(password):
    validate_password(password, PERSON)


@pytest.mark.django_db
def test_every_door_looks_at_what_is_known_of_the_person(cast, project):
    invited = services.invite(cast.owner, "grace.hopper@example.org", Role.REVIEWER)
    _, joined = projects.invite(cast.researcher, project)
    body = {"name": "Grace Hopper", "email": "grace.hopper@example.org", "password": "GraceHopper1906"}
    for path in (f"/invite/{invited}", f"/join/{joined}"):
        answer = Client().post(path, body)
        assert answer.status_code == 422 and "“hopper”" in answer.content.decode(), path
    assert not User.objects.filter(name="Grace Hopper").exists()
    answer = browser(cast.annotator).post("/settings/profile", {"new": "anna-2026-anna"})
    assert answer.status_code == 422 and "“anna”" in answer.content.decode()
