"""From an event to the receiver, with every failure on the way."""

import json
import re
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management.utils import get_random_secret_key
from django.db import close_old_connections, connections, transaction
from django.utils import timezone

from webapp.webhooks import delivering, services
from webapp.webhooks.models import Delivery, Webhook

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]


def announce(team, event="run.finished", **payload):
    services.announce(team.workspace.id, event, payload or {"run": 7})


def only(**fields):
    row = Delivery.objects.get()
    assert {name: getattr(row, name) for name in fields} == fields
    return row


def attempt():
    """The work of a worker on the one delivery, after upkeep or its own task has started it."""
    row = Delivery.objects.get()
    delivering.send(row.pk, row.attempts)
    row.refresh_from_db()
    return row


@pytest.fixture
def verify():
    """The snippet of docs/api.md, as a reader would copy it."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "api.md").read_text(), re.DOTALL | re.MULTILINE)
    [block] = [each for each in blocks if "def verify" in each]
    scope = {}
    exec(block, scope)  # noqa: S102 - our own documentation
    return scope["verify"]


def test_an_event_reaches_the_hooks_that_asked_for_it(team, hook, receiver, eager, django_capture_on_commit_callbacks):
    services.create(team.owner, receiver.url + "&other", ["version.frozen"])
    with django_capture_on_commit_callbacks(execute=True):
        announce(team, run=7, name="first")
        announce(team, "import.finished")
    row = only(state="delivered", status=200, attempts=1, error="", answer="thank you")
    [(path, headers, body)] = receiver.heard
    assert path == "/hook?key=1"
    sent = json.loads(body)
    assert sent["data"] == {"run": 7, "name": "first"}
    assert (sent["type"], sent["id"], sent["workspace"]) == ("run.finished", str(row.event_id), team.workspace.slug)
    assert headers["content-type"] == "application/json"


def test_the_signature_is_checked_by_the_documented_lines(team, hook, receiver, verify):
    announce(team, text="naïve – 数据")
    attempt()
    [(_, headers, body)] = receiver.heard
    assert verify(hook.plain, headers, body)
    assert not verify(hook.plain, headers, body + b" ")
    assert not verify(services.renew_secret(team.owner, hook), headers, body)
    assert not verify(hook.plain, {**headers, "webhook-id": "another"}, body)
    late = str(int(headers["webhook-timestamp"]) - 3600)
    assert not verify(hook.plain, {**headers, "webhook-timestamp": late}, body)


def test_a_failure_is_tried_again_with_the_same_id_and_body(team, hook, receiver):
    receiver.answers = [503, 200]
    announce(team)
    row = attempt()
    assert (row.state, row.status, row.error) == ("waiting", 503, "The receiver answered 503.")
    wait = (row.next_try_at - timezone.now()).total_seconds()
    assert 6 < wait <= 10
    assert attempt().state == "delivered"
    (_, first, body), (_, second, again) = receiver.heard
    assert first["webhook-id"] == second["webhook-id"]
    assert body == again


def test_pauses_double_up_to_four_hours_and_never_agree():
    for attempts, longest in [(1, 10), (2, 20), (5, 160), (11, 10_240), (12, 14_400), (500, 14_400)]:
        drawn = {delivering.pause_s(attempts) for _ in range(20)}
        assert 0.75 * longest <= min(drawn) < max(drawn) <= longest


def test_after_a_day_it_has_failed(team, hook, receiver):
    receiver.answers = [500]
    announce(team)
    Delivery.objects.update(give_up_at=timezone.now() + timedelta(seconds=5))
    assert attempt().state == "failed"
    assert attempt().attempts == 1  # a late task finds nothing to do


def test_a_redirect_is_told_not_followed(team, hook, receiver):
    receiver.answers = [302, 200]
    announce(team)
    row = attempt()
    assert (row.state, row.status) == ("waiting", 302)
    assert "not followed" in row.error
    assert len(receiver.heard) == 1


def test_an_address_that_has_become_private_hears_nothing(team, hook, receiver, settings):
    settings.WEBHOOK_NETWORKS = ()
    announce(team)
    row = attempt()
    assert row.state == "waiting" and "not public" in row.error
    assert receiver.heard == []


def test_a_secret_of_another_key_says_what_to_do(team, hook, receiver, settings):
    announce(team)
    settings.SECRET_KEY = get_random_secret_key()
    assert "Create a new secret" in attempt().error
    assert receiver.heard == []


def test_what_is_rolled_back_is_never_told(team, hook):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        announce(team)
        raise ZeroDivisionError
    assert not Delivery.objects.exists()


def test_a_broker_that_is_away_loses_nothing(
    team, hook, receiver, eager, monkeypatch, django_capture_on_commit_callbacks
):
    def away(*args, **options):
        raise ConnectionError("no broker")

    eager.conf.task_always_eager = False
    monkeypatch.setattr("webapp.core.tasks.app.send_task", away)
    with django_capture_on_commit_callbacks(execute=True):
        announce(team)
    only(state="waiting", attempts=0)
    assert delivering.take_up() == 0  # its own task may still come
    Delivery.objects.update(next_try_at=timezone.now())
    eager.conf.task_always_eager = True
    with django_capture_on_commit_callbacks(execute=True):
        assert delivering.take_up() == 1
    only(state="delivered")


def test_what_a_dead_worker_held_is_sent_again(team, hook, receiver, eager, django_capture_on_commit_callbacks):
    announce(team)
    Delivery.objects.update(state="sending", attempts=1, next_try_at=timezone.now() - timedelta(seconds=1))
    with django_capture_on_commit_callbacks(execute=True):
        delivering.take_up()
    only(state="delivered", attempts=2)


def test_a_slow_worker_does_not_overwrite_what_came_after_it(team, hook, receiver):
    announce(team)
    row = Delivery.objects.get()
    outcome = delivering.DeliveryOutcome("The receiver answered 500.", 500)
    row.attempts = 1
    Delivery.objects.update(state="delivered", attempts=2, answer="the other one")
    delivering._settle(row, outcome, 1)
    only(state="delivered", attempts=2, answer="the other one")


def test_a_silent_receiver_is_asked_by_one_message_at_a_time(team, hook, receiver):
    for run in range(3):
        announce(team, run=run)
    Webhook.objects.update(failures=3, quiet_until=timezone.now() + timedelta(seconds=60))
    rows = list(Delivery.objects.order_by("id"))
    for row in rows:
        delivering.send(row.pk, 0)
    assert receiver.heard == []
    assert not Delivery.objects.exclude(state="waiting", attempts=0).exists()
    assert min(Delivery.objects.values_list("next_try_at", flat=True)) > timezone.now() + timedelta(seconds=50)

    Webhook.objects.update(quiet_until=timezone.now())
    receiver.answers = [lambda handler: delivering.send(rows[1].pk, 0) or handler.connection.close()]
    delivering.send(rows[0].pk, 0)
    hook.refresh_from_db()
    assert hook.failures == 4 and hook.quiet_until > timezone.now()
    assert len(receiver.heard) == 1


def test_a_receiver_that_is_silent_for_weeks_is_still_written_down_as_silent(team, hook, receiver):
    Webhook.objects.update(failures=5_000, quiet_until=timezone.now())
    receiver.answers = [lambda handler: handler.connection.close()]
    announce(team)
    assert attempt().error.startswith("No answer")
    hook.refresh_from_db()
    assert hook.failures == 5_001 and hook.quiet_until > timezone.now() + timedelta(seconds=200)


def test_a_receiver_that_answers_is_trusted_again(team, hook, receiver):
    Webhook.objects.update(failures=3, quiet_until=timezone.now() - timedelta(seconds=1))
    receiver.answers = [500]
    announce(team)
    assert attempt().status == 500
    hook.refresh_from_db()
    assert (hook.failures, hook.quiet_until) == (0, None)


def test_what_happens_while_a_hook_is_paused_is_sent_when_it_is_resumed(team, hook, receiver):
    announce(team)
    services.set_active(team.owner, hook, False)
    announce(team)
    past = timezone.now() - timedelta(days=3)
    Delivery.objects.update(next_try_at=past, give_up_at=past)  # it was paused for longer than the time of all tries
    assert delivering.take_up() == 0
    assert set(Delivery.objects.values_list("state", "attempts")) == {("waiting", 0)}
    services.set_active(team.owner, hook, True)
    receiver.answers = [500, 200]
    assert delivering.take_up() == 2
    for pk in Delivery.objects.order_by("id").values_list("pk", flat=True):
        delivering.send(pk, 0)
    assert list(Delivery.objects.order_by("id").values_list("state", flat=True)) == ["waiting", "delivered"]


def test_a_paused_hook_keeps_events_for_a_month(team, hook):
    announce(team)
    services.set_active(team.owner, hook, False)
    Delivery.objects.update(created_at=timezone.now() - timedelta(days=29))
    delivering.trim()
    assert Delivery.objects.count() == 1
    Delivery.objects.update(created_at=timezone.now() - timedelta(days=31))
    delivering.trim()
    assert not Delivery.objects.exists()


def test_of_very_many_events_upkeep_sends_the_rest(team, hook, monkeypatch, django_capture_on_commit_callbacks):
    monkeypatch.setattr(services, "SENT_AT_ONCE", 2)
    with django_capture_on_commit_callbacks() as sent, transaction.atomic():
        services.announce_all(team.workspace.pk, "run.finished", [{"run": n} for n in range(5)])
    assert len(sent) == 2
    assert Delivery.objects.values("event_id").distinct().count() == 5
    Delivery.objects.update(next_try_at=timezone.now())
    assert delivering.take_up() == 5


def test_old_messages_are_forgotten_only_once_they_are_over(team, hook):
    for _ in range(2):
        announce(team)
    first = Delivery.objects.order_by("id").first()
    Delivery.objects.filter(pk=first.pk).update(state="delivered")
    Delivery.objects.update(created_at=timezone.now() - timedelta(days=40))
    delivering.trim()
    only(state="waiting")


@pytest.mark.django_db(transaction=True)
def test_announcing_outside_a_transaction_is_a_mistake(team):
    with pytest.raises(RuntimeError, match="transaction"):
        announce(team)


@pytest.mark.django_db(transaction=True)
def test_of_many_workers_one_sends(team, hook, receiver):
    with transaction.atomic():
        announce(team)
    row, barrier = Delivery.objects.get(), threading.Barrier(8)

    def work():
        close_old_connections()
        barrier.wait()
        delivering.send(row.pk, 0)
        connections.close_all()

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(receiver.heard) == 1
    only(state="delivered", attempts=1)


@pytest.mark.parametrize("tried", [True, False], ids=["tried before", "announced before"])
def test_on_a_clock_that_went_back_nothing_waits_for_what_was_written_before(tried, team, hook, receiver):
    announce(team)
    later = timezone.now() + timedelta(hours=2)
    Delivery.objects.update(created_at=later, tried_at=later if tried else None, next_try_at=later, attempts=int(tried))
    assert delivering.take_up() == 1
    assert delivering.take_up() == 0, "it is offered already"
    assert attempt().state == "delivered"


def test_on_a_clock_that_went_back_a_lost_attempt_is_not_lost_for_longer(team, hook, receiver):
    announce(team)
    later = timezone.now() + timedelta(hours=2)
    Delivery.objects.update(tried_at=later, next_try_at=later, attempts=1, state="sending")
    delivering.take_up()
    row = Delivery.objects.get()
    assert row.state == "sending" and row.next_try_at <= timezone.now() + max(delivering.LEASE, services.HEAD_START)
    Delivery.objects.update(next_try_at=timezone.now() - timedelta(seconds=1))
    delivering.take_up()
    assert attempt().state == "delivered"


def test_on_a_clock_that_went_back_a_silent_receiver_is_not_left_alone_for_longer(team, hook, receiver):
    announce(team)
    Webhook.objects.update(failures=3, quiet_until=timezone.now() + timedelta(hours=2))
    assert attempt().state == "delivered"
