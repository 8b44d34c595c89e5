"""Unused accounts are announced for two weeks of rounds and then erased. A clock that jumps does not cause an erasure."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.concurrency import concurrently
from tests.team import browser
from webapp.accounts.models import ApiToken, Membership, Role, SignedIn, User, Workspace
from webapp.core.models import AuditEntry
from webapp.core.problems import Invalid
from webapp.personal_data import retention
from webapp.personal_data.models import UnusedAccount

pytestmark = pytest.mark.django_db
LONG_AGO = timezone.now() - timedelta(days=200)


@pytest.fixture
def administrator(team) -> User:
    User.objects.filter(pk=team.owner.user_id).update(is_administrator=True)
    return User.objects.get(pk=team.owner.user_id)


@pytest.fixture
def gone(team, administrator) -> User:
    """An annotator who was last here 200 days ago, with a limit of 180 days. All others were here just now."""
    User.objects.update(last_login=timezone.now())
    person = team.annotator.user
    User.objects.filter(pk=person.pk).update(last_login=LONG_AGO, date_joined=LONG_AGO)
    retention.change(administrator, 180)
    return person


def rounds(count: int) -> None:
    """This many rounds, each one day after the one before."""
    for _ in range(count):
        retention.look()
        UnusedAccount.objects.update(counted_at=timezone.now() - timedelta(days=1))


def is_there(person: User) -> bool:
    return User.objects.filter(pk=person.pk).exists()


def test_without_a_rule_all_accounts_stay(team, administrator):
    User.objects.update(last_login=LONG_AGO, date_joined=LONG_AGO)
    rounds(retention.NOTICE + 2)
    assert not UnusedAccount.objects.exists() and not User.objects.filter(erased=True).exists()


def test_an_unused_account_is_announced_and_then_erased(team, gone):
    rounds(retention.NOTICE)
    assert is_there(gone) and [each.user_id for each in UnusedAccount.objects.all()] == [gone.pk]
    rounds(1)
    assert not is_there(gone) and not UnusedAccount.objects.exists()
    told = AuditEntry.objects.get(action="account.erased")
    assert told.actor is None and told.detail["by"] == "retention"
    assert User.objects.filter(pk__in=[team.owner.user_id, team.researcher.user_id, team.reviewer.user_id]).count() == 3


def test_rounds_of_one_day_count_once(gone):
    for _ in range(3 * retention.NOTICE):
        retention.look()
    assert is_there(gone) and UnusedAccount.objects.get().rounds == 0


def test_a_clock_that_jumps_ten_years_and_back_erases_nobody(team, gone, monkeypatch):
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now + timedelta(days=3650))
    retention.look()
    retention.look()
    assert UnusedAccount.objects.count() == 4, "all but the administrator"
    monkeypatch.undo()
    retention.look()
    assert [each.user_id for each in UnusedAccount.objects.all()] == [gone.pk]
    assert UnusedAccount.objects.get().rounds <= 1 and is_there(gone)


@pytest.mark.parametrize("sign", ["sign-in", "browser", "token"])
def test_any_sign_of_life_ends_the_announcement(team, gone, sign):
    rounds(retention.NOTICE)
    now = timezone.now()
    if sign == "sign-in":
        browser(team.annotator)
    elif sign == "browser":
        SignedIn.objects.create(session_key="k", user=gone, created_at=LONG_AGO, last_used_at=now)
    else:
        ApiToken.objects.create(user=gone, workspace=team.workspace, name="t", prefix="p", digest="d", last_used_at=now)
    rounds(2)
    assert is_there(gone) and not UnusedAccount.objects.exists()


def test_administrators_and_the_only_owner_of_a_workspace_stay(team, gone, administrator, client):
    User.objects.update(last_login=LONG_AGO, date_joined=LONG_AGO)
    rounds(retention.NOTICE + 1)
    assert is_there(administrator) and is_there(team.outsider.user), "who is the only owner elsewhere"
    User.objects.filter(pk=administrator.pk).update(last_login=timezone.now())
    page = browser(team.owner).get("/installation/retention").content.decode()
    assert "the only owner of Elsewhere" in page and str(team.outsider.user) in page


def test_whoever_has_to_stay_takes_nobodys_turn(team, gone, monkeypatch):
    monkeypatch.setattr(retention, "AT_ONCE", 1)
    stays = User.objects.create_user("first@example.org")
    alone = Workspace.objects.create(name="Alone")
    Membership.objects.create(user=stays, workspace=alone, role=Role.OWNER)
    User.objects.filter(pk=stays.pk).update(date_joined=LONG_AGO)
    UnusedAccount.objects.create(user=stays, rounds=retention.NOTICE, counted_at=timezone.now())
    rounds(retention.NOTICE + 1)
    assert is_there(stays) and not is_there(gone)


def test_a_changed_rule_announces_anew(gone, administrator):
    rounds(retention.NOTICE)
    retention.change(administrator, 120)
    assert not UnusedAccount.objects.exists()
    rounds(retention.NOTICE)
    assert is_there(gone)
    rounds(1)
    assert not is_there(gone)


def test_the_page_sets_it_and_says_who_goes_when(team, gone, administrator):
    rounds(4)
    client = browser(team.owner)
    page = client.get("/installation/retention").content.decode()
    assert str(gone) in page and f"in {retention.NOTICE - 3} days" in page
    refused = client.post("/installation/retention", {"unused_days": "30"})
    assert refused.status_code == 422 and "greater than or equal to 90" in refused.content.decode()
    assert retention.days() == 180
    assert client.post("/installation/retention", {"unused_days": ""}).status_code == 302
    assert retention.days() is None and not UnusedAccount.objects.exists()
    entry = AuditEntry.objects.filter(action="retention.changed").latest("pk")
    assert entry.detail == {"unused_days": None, "before": 180} and entry.actor == administrator


def test_only_administrators_see_it(team, as_researcher):
    assert as_researcher.get("/installation/retention").status_code in (403, 404)
    with pytest.raises(Invalid):
        retention.change(team.owner.user, 10)


def test_the_queries_of_the_page_do_not_grow(team, gone, django_assert_num_queries):
    rounds(1)
    with django_assert_num_queries(4):
        assert retention.announced(50)[1] == 1
    for number in range(5):
        person = User.objects.create_user(f"p{number}@example.org")
        Membership.objects.create(user=person, workspace=team.workspace, role=Role.ANNOTATOR)
        User.objects.filter(pk=person.pk).update(date_joined=LONG_AGO)
    rounds(1)
    with django_assert_num_queries(4):
        assert retention.announced(50)[1] == 6


@pytest.mark.django_db(transaction=True)
def test_two_rounds_at_once_erase_once_and_who_signs_in_meanwhile_stays(team, gone):
    rounds(retention.NOTICE)
    concurrently(
        [retention.look, retention.look, lambda: User.objects.filter(pk=gone.pk).update(last_login=timezone.now())]
    )
    if is_there(gone):
        assert User.objects.get(pk=gone.pk).last_login > LONG_AGO
    assert AuditEntry.objects.filter(action="account.erased").count() == (not is_there(gone))
