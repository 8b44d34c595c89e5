"""A change of how a person signs in first asks for confirmation, and ends all other sessions."""

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth import SESSION_KEY
from django.test import Client

from tests.team import ApiClient, browser
from tests.webapp.security.test_second_factor import set_up
from webapp.accounts.models import Proof, SignedIn, User
from webapp.accounts.profile.services import set_password
from webapp.accounts.sign_in.services import create_sign_in_link
from webapp.core.models import AuditEntry

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough passphrase"
END = "/settings/sessions/end"


def entered(person: User) -> Client:
    """A browser with a session from the sign-in page."""
    if not person.check_password(PASSWORD):
        set_password(person, PASSWORD)
    client = Client()
    client.post("/sign-in", {"email": person.email, "password": PASSWORD})
    assert inside(client)
    return client


def inside(client: Client) -> bool:
    return SESSION_KEY in client.session and client.get("/settings/profile").status_code == 200


def test_ending_other_sessions_asks_who_it_is(team):
    here, there = entered(team.owner.user), entered(team.owner.user)
    asked = here.post(END, {"others": "1", "sure": "1"})
    assert asked.status_code == 302 and asked["Location"].startswith("/settings/second-factor/confirm")
    assert here.post(asked["Location"], {"password": "wrong"}).status_code == 200 and inside(there)
    here.post(asked["Location"], {"password": PASSWORD})
    assert inside(here) and not inside(there)


def test_the_question_after_a_confirmation_is_answered_where_it_was_asked(team):
    here, there = entered(team.owner.user), entered(team.owner.user)
    asked = here.post(END, {"others": "1"})
    question = here.post(asked["Location"], {"password": PASSWORD})
    assert question.status_code == 200 and f'action="{END}"' in question.content.decode()
    here.post(END, {"others": "1", "sure": "1"})
    assert inside(here) and not inside(there)


def test_an_address_changes_after_a_confirmation(team):
    User.objects.filter(pk=team.annotator.user_id).update(proof=Proof.NONE)
    here = entered(team.annotator.user)
    asked = here.post("/settings/profile", {"email": "anna.new@example.org"})
    assert asked["Location"].startswith("/settings/second-factor/confirm")
    assert not User.objects.filter(email="anna.new@example.org").exists()
    here.post(asked["Location"], {"password": PASSWORD})
    assert User.objects.get(email="anna.new@example.org").pk == team.annotator.user_id


def test_the_key_of_a_session_changes_when_somebody_signs_in_or_confirms(team):
    set_password(team.owner.user, PASSWORD)
    client = Client()
    client.post("/sign-in/company/start")
    client.get("/sign-in")
    keys = [client.session.session_key]
    client.post("/sign-in", {"email": team.owner.user.email, "password": PASSWORD})
    keys.append(client.session.session_key)
    page = client.get("/settings/second-factor/app")
    client.post(page["Location"], {"password": PASSWORD})
    keys.append(client.session.session_key)
    assert len(set(keys)) == 3 and all(len(key) == 32 for key in keys[1:])
    assert SignedIn.objects.get(user=team.owner.user).session_key == keys[-1]  # it is still listed, once
    old = Client()
    old.cookies["sessionid"] = keys[1]
    assert not inside(old)


def test_a_factor_that_goes_takes_other_browsers_with_it(team, django_capture_on_commit_callbacks):
    here, app = set_up(team.owner)
    there = browser(team.owner)
    assert inside(there)
    for path in ("/settings/second-factor/codes/new", "/settings/second-factor/app/off"):
        there = browser(team.owner)
        with django_capture_on_commit_callbacks(execute=True):
            assert here.post(path).status_code == 302, path
        assert inside(here) and not inside(there), path
    assert not Authenticator.objects.filter(user=team.owner.user, type="totp").exists()


def test_an_administrator_signs_somebody_out(team):
    theirs, admin = browser(team.annotator), browser(team.owner)
    path = f"/installation/people/{team.annotator.user_id}/sign-out"
    assert browser(team.researcher).post(path, {"sure": "1"}).status_code == 403
    asked = admin.post(path)
    assert b"sign in again in every browser" in asked.content and inside(theirs)
    admin.post(path, {"sure": "1"})
    assert inside(admin) and not inside(theirs)
    [entry] = AuditEntry.objects.filter(action="session.ended_by_administrator")
    assert (entry.actor, entry.object_id, entry.detail) == (team.owner.user, team.annotator.user_id, {"sessions": 1})


def test_a_closed_account_opens_nothing(team):
    page, script = entered(team.annotator.user), ApiClient(team.annotator)
    link = create_sign_in_link(team.annotator.user)
    User.objects.filter(pk=team.annotator.user_id).update(is_active=False)
    assert page.get("/settings/profile").status_code == 302 and script.get("/me").status_code == 401
    assert Client().post(f"/sign-in/link/{link}").status_code == 410
    assert Client().post("/sign-in", {"email": team.annotator.user.email, "password": PASSWORD}).status_code != 302
