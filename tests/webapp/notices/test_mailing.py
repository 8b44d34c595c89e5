"""Notices by mail: they are gathered, sent once, tried again, and not sent to people who may not read them."""

from datetime import timedelta
from smtplib import SMTPRecipientsRefused, SMTPServerDisconnected

import pytest
from django.core import mail as outgoing

from tests.concurrency import concurrently
from tests.team import ApiClient, browser
from webapp.accounts.models import Membership
from webapp.core.network import mail
from webapp.core.problems import Invalid
from webapp.experiments.lifecycle.states import move
from webapp.experiments.models import Run
from webapp.notices import mailing, services
from webapp.notices.models import Letter, Notice, NoticeSettings

from ..experiments.sweeps.conftest import runs

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def mailed(settings, team):
    """A mail server, and a researcher and a reviewer who want mail."""
    settings.MAIL_URL = "smtp://mail.example.org"
    services.change_settings(team.researcher, mails="all")
    services.change_settings(team.reviewer, mails="trouble")


def later(minutes: float = 2) -> None:
    """Moves all stored times back by this much."""
    ago = timedelta(minutes=minutes)
    for row in Notice.objects.all():
        Notice.objects.filter(pk=row.pk).update(created_at=row.created_at - ago)
    for letter in Letter.objects.all():
        Letter.objects.filter(pk=letter.pk).update(
            created_at=letter.created_at - ago, next_try_at=letter.next_try_at - ago
        )


def post() -> list[str]:
    """A round of the workers. Returns the subjects of the mails that it sent."""
    before = len(outgoing.outbox)
    mailing.gather()
    for letter in Letter.objects.filter(state="waiting"):
        mailing.send(letter.pk, letter.attempts)
    return [str(message.subject) for message in outgoing.outbox[before:]]


def test_forty_runs_of_a_sweep_that_fail_are_one_mail(team, sweep):
    row = sweep(seeds=8, at_once=3)
    for trial in (1, 2, 3):
        for run in runs(row, trial):
            move(run, "failed", reason="No memory.")
    assert post() == [], "more may come"
    later()
    assert post() == [f"Touchstone: 24 runs of sweep “{row.name}” failed"]
    (message,) = outgoing.outbox
    assert message.to == [team.researcher.user.email] and message.body.count("No memory.") == 1
    assert f"/experiments/sweeps/{row.pk}" in message.body and "/settings/notices#mail" in message.body
    assert message.extra_headers["List-Unsubscribe"].endswith("/settings/notices>")
    later(0.1)
    assert post() == [] and Letter.objects.get().state == "sent"


def test_after_a_mail_the_next_one_waits(team, launch):
    first, second = launch(), launch()
    move(first, "failed")
    later()
    assert len(post()) == 1
    move(second, "failed")
    later(5)
    assert post() == []
    later(6)
    assert len(post()) == 1


def test_a_person_gets_what_they_have_asked_for_and_not_what_they_have_read(team, launch):
    failed, finished, read = launch(), launch(), launch()
    for run in (failed, finished, read):
        services.watch(team.reviewer, run, True)
    move(failed, "failed", reason="The disk is full.")
    for state in ("starting", "finished"):
        move(finished, state)
    move(read, "failed")
    services.mark_read(team.reviewer, [Notice.objects.get(user=team.reviewer.user, subject=read.pk).pk])
    later()
    assert sorted(message for message in post()) == sorted(
        [f"Touchstone: {_name(read)} failed, and 2 more", f"Touchstone: {_name(failed)} failed"]
    )
    bodies = {message.to[0]: message.body for message in outgoing.outbox}
    assert "finished" not in bodies[team.reviewer.user.email]
    mine = bodies[team.researcher.user.email]
    assert mine.index("failed") < mine.index("finished"), "what went wrong comes first"


def _name(run: Run) -> str:
    return f"{str(run).capitalize()} of {run.experiment.name}"


def test_who_lost_access_or_wants_no_mail_any_more_gets_none(team, launch):
    run = launch()
    services.watch(team.reviewer, run, True)
    move(run, "failed")
    later()
    mailing.gather()
    assert Letter.objects.count() == 2
    Membership.objects.filter(pk=team.reviewer.pk).update(role="annotator")
    services.change_settings(team.researcher, mails="never")
    for letter in Letter.objects.all():
        mailing.send(letter.pk, 0)
    assert outgoing.outbox == [] and set(Letter.objects.values_list("state", flat=True)) == {"failed"}


def test_a_server_that_is_away_is_asked_again_and_a_refused_address_is_not(team, launch, monkeypatch):
    move(launch(), "failed")
    later()
    answers: list[Exception | None] = [SMTPServerDisconnected("gone"), None]

    def away(self):
        if (answer := answers.pop(0)) is not None:
            raise answer

    monkeypatch.setattr("django.core.mail.EmailMessage.send", away)
    post()
    letter = Letter.objects.get()
    assert (letter.state, letter.attempts) == ("waiting", 1) and "gone" in letter.error
    assert mailing.take_up() == 0, "it has a minute's rest"
    later(1.1)
    assert mailing.take_up() == 1
    mailing.send(letter.pk, 1)
    mailing.send(letter.pk, 1)
    letter.refresh_from_db()
    assert letter.state == "sent" and not answers
    answers.append(SMTPRecipientsRefused({"x": (550, b"no such user")}))
    move(launch(), "failed")
    later(20)
    post()
    assert Letter.objects.latest("created_at").state == "failed"


def test_a_letter_is_given_up_after_a_day(team, launch, monkeypatch):
    def away(*args):
        raise mail.NotSent("gone")

    monkeypatch.setattr(mail, "send", away)
    move(launch(), "failed")
    later()
    post()
    later(25 * 60)
    post()
    assert Letter.objects.get().state == "failed"


def test_what_a_dead_worker_held_is_sent_under_the_same_id(team, launch):
    move(launch(), "failed")
    later()
    mailing.gather()
    letter = Letter.objects.get()
    Letter.objects.filter(pk=letter.pk).update(state="sending", attempts=1)
    later(2)
    assert mailing.take_up() == 1
    mailing.send(letter.pk, 0)
    assert outgoing.outbox == [], "the task of the first attempt comes late"
    mailing.send(letter.pk, 1)
    (message,) = outgoing.outbox
    assert str(letter.message_id) in message.extra_headers["Message-ID"]


@pytest.mark.django_db(transaction=True)
def test_rounds_and_tasks_at_once_send_one_mail(team, launch):
    for _ in range(3):
        move(launch(), "failed")
    later()
    concurrently([mailing.gather] * 6)
    letter = Letter.objects.get()
    assert letter.notices.count() == 3
    concurrently([lambda: mailing.send(letter.pk, 0)] * 6)
    assert len(outgoing.outbox) == 1


def test_without_a_mail_server_or_a_verified_address_the_choice_is_closed_and_says_why(team, settings, launch):
    user = team.owner.user
    user.proof = ""
    user.save()
    with pytest.raises(Invalid) as refused:
        services.change_settings(team.owner, mails="all")
    assert "address" in refused.value.fields["mail"]
    settings.MAIL_URL = None
    page = browser(team.owner).get("/settings/notices").content.decode()
    assert "MAIL_URL" in page and page.count("disabled") == 2
    assert (
        "no mail server" in browser(team.owner).post("/settings/notices", {"mail": "all"}, follow=True).content.decode()
    )
    answer = ApiClient(team.owner).post("/notices/settings", {"mail": "trouble"})
    assert answer.status_code == 422 and "mail" in str(answer.json())
    assert not NoticeSettings.objects.filter(user=user).exists()
    move(launch(), "failed")
    assert not Notice.objects.filter(mail=True).exists() and mailing.gather() == 0


def test_the_choice_is_made_on_the_page_or_over_the_api(team):
    client = browser(team.researcher)
    client.post("/settings/notices", {"own": "1", "mail": "trouble"})
    assert 'value="trouble" checked' in client.get("/settings/notices").content.decode()
    api = ApiClient(team.researcher)
    assert api.post("/notices/settings", {"mail": "never"}).json() == {"own": True, "mail": "never"}


def test_letters_are_forgotten_after_a_month(team, launch):
    move(launch(), "failed")
    later()
    post()
    later(31 * 24 * 60)
    services.trim()
    assert not Letter.objects.exists() and Notice.objects.count() == 1
