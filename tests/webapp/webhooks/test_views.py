"""The pages and the API of webhooks."""

import json
import re
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from tests.team import ApiClient, browser
from webapp.core.encryption import unseal
from webapp.core.models import AuditEntry
from webapp.core.problems import Conflict
from webapp.webhooks import delivering, services
from webapp.webhooks.events import EVENTS
from webapp.webhooks.models import Delivery, Webhook

pytestmark = pytest.mark.django_db
PAGE = "/settings/webhooks"
FORM = {"events": ["run.finished", "version.frozen"]}


def test_a_new_hooks_secret_is_shown_once_and_kept_encrypted(as_owner, receiver):
    page = as_owner.post(PAGE, {**FORM, "url": receiver.url}).content.decode()
    secret = re.search(r"whsec_[\w+/=]{44}", page)[0]
    hook = Webhook.objects.get()
    assert hook.events == ["version.frozen", "run.finished"]
    assert secret not in hook.secret and unseal(hook.secret) == secret
    assert secret not in as_owner.get(PAGE).content.decode() + as_owner.get(f"{PAGE}/{hook.id}").content.decode()


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({**FORM, "url": "https://127.0.0.1/"}, "not public"),
        ({**FORM, "url": "nonsense"}, "Must begin with https://"),
        ({"url": "https://example.org/"}, "Choose at least one event."),
        ({"url": "https://example.org/", "events": ["nonsense"]}, "not one of the available choices"),
    ],
)
def test_what_is_wrong_is_said_at_the_field(as_owner, form, words):
    answer = as_owner.post(PAGE, form)
    assert answer.status_code == 422 and words in answer.content.decode()
    assert not Webhook.objects.exists()


def test_events_are_chosen_in_groups_that_together_hold_all_of_them(as_owner):
    page = as_owner.get(PAGE)
    groups = list(page.context["form"].groups())
    assert sorted(box.data["value"] for group in groups for box in group.boxes) == sorted(EVENTS)
    assert not any(group.chosen for group in groups), "a person says what to send, and does not cross out the rest"
    refused = as_owner.post(PAGE, {"url": "https://example.org/"}).content.decode()
    assert "Choose at least one event." in refused


def test_the_log_names_what_each_message_is_about(as_owner, hook, team):
    with transaction.atomic():
        services.announce(team.workspace.pk, "run.failed", {"run": 7, "name": "warm start"})
    assert "warm start" in as_owner.get(f"{PAGE}/{hook.id}").content.decode()


def test_what_failed_while_the_receiver_was_away_is_sent_again_with_one_press(as_owner, team, hook, receiver):
    with transaction.atomic():
        for name in ("first", "second", "third"):
            services.announce(team.workspace.pk, "run.failed", {"run": 7, "name": name})
        services.test(team.owner, hook)
    long_ago = timezone.now() - timedelta(days=2)
    Delivery.objects.update(state="failed", attempts=12, error="The receiver answered 500.", give_up_at=long_ago)
    log = f"{PAGE}/{hook.id}"
    assert "Send all failed messages again" not in as_owner.get(log).content.decode()
    assert "Send all failed messages again" in as_owner.get(f"{log}?state=failed").content.decode()
    told = as_owner.post(f"{log}/act", {"action": "failed"}, follow=True).content.decode()
    assert "3 messages are sent again" in told
    assert delivering.take_up() == 3
    for row in Delivery.objects.filter(state="waiting").order_by("pk"):
        delivering.send(row.pk, row.attempts)
    heard = [json.loads(body)["data"]["name"] for _, _, body in receiver.heard]
    assert heard == ["first", "second", "third"] and Delivery.objects.filter(state="delivered").count() == 3
    assert list(Delivery.objects.filter(state="failed").values_list("event", flat=True)) == ["webhook.test"]
    assert "Send all failed" not in as_owner.get(f"{log}?state=failed").content.decode(), "only a test has failed"
    services.set_active(team.owner, hook, False)
    assert "is paused" in as_owner.post(f"{log}/act", {"action": "failed"}, follow=True).content.decode()


def test_a_program_sends_all_failed_messages_again(as_owner, as_researcher, as_outsider, team, hook):
    with transaction.atomic():
        for name in ("first", "second", "new"):
            services.announce(team.workspace.pk, "run.failed", {"run": 7, "name": name})
        services.test(team.owner, hook)
    first, second, new, test = Delivery.objects.order_by("pk")
    long_ago = timezone.now() - timedelta(days=2)
    Delivery.objects.filter(pk__in=(first.pk, test.pk)).update(state="failed", attempts=12, give_up_at=long_ago)
    Delivery.objects.filter(pk=second.pk).update(attempts=3, next_try_at=timezone.now() + timedelta(hours=4))
    url = f"/api/v1/webhooks/{hook.pk}/deliveries/again"
    assert (as_researcher.post(url).status_code, as_outsider.post(url).status_code) == (403, 404)
    for _ in range(2):  # an answer may be lost
        answer = as_owner.post(url)
        assert (answer.status_code, answer.json()) == (202, {"messages": 2})
    assert delivering.take_up() == 2
    assert list(Delivery.objects.filter(state="failed")) == [test]
    services.set_active(team.owner, hook, False)
    assert as_owner.post(url).status_code == 409


def test_what_failed_again_does_not_wait_for_hours_after_the_next_press(as_owner, team, hook, receiver):
    with transaction.atomic():
        for name in ("long away", "new"):
            services.announce(team.workspace.pk, "run.failed", {"run": 7, "name": name})
    away, new = Delivery.objects.order_by("pk")
    Delivery.objects.filter(pk=away.pk).update(state="failed", attempts=12)
    log = f"{PAGE}/{hook.id}"
    assert "Send all failed" not in as_owner.get(f"{log}?state=waiting").content.decode(), "nothing there has failed"
    as_owner.post(f"{log}/act", {"action": "failed"})
    receiver.answers = [500, 200]
    delivering.send(away.pk, 12)
    away.refresh_from_db()
    assert away.state == "waiting" and away.next_try_at > timezone.now() + timedelta(hours=2)
    assert "Send all failed messages again" in as_owner.get(f"{log}?state=waiting").content.decode()
    told = as_owner.post(f"{log}/act", {"action": "failed"}, follow=True).content.decode()
    assert "1 message is sent again" in told
    assert delivering.take_up() == 1, "the new one waits for its own task"
    delivering.send(away.pk, 13)
    assert list(Delivery.objects.filter(state="delivered")) == [away]


def test_the_help_that_a_secret_names_is_a_link(as_owner, receiver):
    page = as_owner.post(PAGE, {**FORM, "url": receiver.url}).content.decode()
    assert 'href="/help/api#webhooks"' in page and "docs/api.md" not in page


def test_only_owners_reach_webhooks(team, hook):
    with_one = [f"{PAGE}/{hook.id}", f"{PAGE}/{hook.id}/act", PAGE]
    for other in (team.researcher, team.reviewer, team.annotator):
        for address in with_one:
            assert browser(other).post(address, {"action": "delete"}).status_code == 403
        assert "Webhooks" not in browser(other).get("/settings/profile").content.decode()
        for method, path in [("get", "/webhooks"), ("get", f"/webhooks/{hook.id}/deliveries")]:
            assert getattr(ApiClient(other), method)(path).status_code == 403
    outsider = ApiClient(team.outsider)
    assert outsider.get(f"/webhooks/{hook.id}").status_code == 404
    assert outsider.get("/webhooks").json()["items"] == []
    assert browser(team.outsider).post(f"{PAGE}/{hook.id}/act", {"action": "delete"}).status_code == 404
    assert Webhook.objects.count() == 1


def test_the_test_button_sends_and_the_log_shows_both_sides(
    as_owner, hook, receiver, eager, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        as_owner.post(f"{PAGE}/{hook.id}/act", {"action": "test"})
    row = Delivery.objects.get()
    assert (row.event, row.state) == ("webhook.test", "delivered")
    assert "webhook.test" in as_owner.get(f"{PAGE}/{hook.id}").content.decode()
    page = as_owner.get(f"{PAGE}/{hook.id}/deliveries/{row.id}").content.decode()
    assert "ada@example.org" in page and "thank you" in page and str(row.event_id) in page


def test_a_test_that_fails_is_not_tried_again(as_owner, hook, receiver, eager, django_capture_on_commit_callbacks):
    receiver.answers = [500]
    with django_capture_on_commit_callbacks(execute=True):
        as_owner.post(f"{PAGE}/{hook.id}/act", {"action": "test"})
    assert Delivery.objects.get().state == "failed"


def test_a_failed_message_is_sent_again_by_its_button_with_the_same_id(
    team, as_owner, hook, receiver, eager, django_capture_on_commit_callbacks
):
    services.announce(team.workspace.id, "run.failed", {"run": 1})
    Delivery.objects.update(state="failed", attempts=5)
    Webhook.objects.update(failures=9)
    row = Delivery.objects.get()
    with django_capture_on_commit_callbacks(execute=True):
        as_owner.post(f"{PAGE}/{hook.id}/deliveries/{row.id}")
    again = Delivery.objects.get()
    assert (again.state, again.attempts, again.event_id) == ("delivered", 6, row.event_id)


def test_pausing_resuming_renewing_and_deleting_leave_their_trace(as_owner, hook):
    page = f"{PAGE}/{hook.id}"
    as_owner.post(f"{page}/act", {"action": "pause"})
    assert not Webhook.objects.get().active
    assert as_owner.post(f"{page}/act", {"action": "test"}, follow=True).content.decode().count("is paused") == 1
    as_owner.post(f"{page}/act", {"action": "resume"})
    shown = as_owner.post(f"{page}/act", {"action": "secret"}).content.decode()
    assert unseal(Webhook.objects.get().secret) in shown != hook.plain
    as_owner.post(page, {"url": hook.url, "events": ["run.failed"]})
    assert Webhook.objects.get().events == ["run.failed"]
    as_owner.post(f"{page}/act", {"action": "delete"})
    assert not Webhook.objects.exists()
    done = list(
        AuditEntry.objects.filter(action__startswith="webhook.").order_by("id").values_list("action", flat=True)
    )
    kinds = ["created", "paused", "resumed", "secret_renewed", "changed", "deleted"]
    assert done == [f"webhook.{kind}" for kind in kinds]
    assert not AuditEntry.objects.filter(detail__icontains="key=1").exists()


def test_the_api_does_what_the_pages_do(team, receiver, eager, django_capture_on_commit_callbacks):
    script = ApiClient(team.owner)
    made = script.post("/webhooks", {"url": receiver.url, "events": ["run.failed"]})
    assert made.status_code == 201 and made.json()["secret"].startswith("whsec_")
    hook = f"/webhooks/{made.json()['id']}"
    assert "secret" not in script.get(hook).json()
    with django_capture_on_commit_callbacks(execute=True):
        assert script.post(f"{hook}/test").status_code == 202
    [row] = script.get(f"{hook}/deliveries", state="delivered").json()["items"]
    assert (row["status"], row["message"]["type"], row["next_try_at"]) == (200, "webhook.test", None)
    with django_capture_on_commit_callbacks(execute=True):
        assert script.post(f"{hook}/deliveries/{row['id']}/again").status_code == 202
    assert len(receiver.heard) == 2
    assert script.patch(hook, {"active": False}).json()["active"] is False
    assert script.post(f"{hook}/test").status_code == 409
    refused = script.patch(hook, {"url": "http://10.0.0.1/"})
    assert (refused.status_code, refused.json()["error"]["fields"][0]["path"]) == (422, "url")
    assert script.get(f"{hook}/deliveries", state="lost").status_code == 422
    assert script.post(f"{hook}/secret").json()["secret"] != made.json()["secret"]
    assert script.delete(hook).status_code == 204
    assert script.get(hook).status_code == 404


def test_of_two_people_at_once_each_changes_only_what_they_have_changed(team, hook, receiver):
    """An owner moves a hook away from an address that has leaked, while another chooses its events."""
    theirs, mine = Webhook.objects.get(pk=hook.pk), Webhook.objects.get(pk=hook.pk)
    services.change(team.owner, theirs, url=f"{receiver.url}/safe")
    services.change(team.owner, mine, events=["run.started"])
    hook.refresh_from_db()
    assert (hook.url, hook.events) == (f"{receiver.url}/safe", ["run.started"])
    Webhook.objects.filter(pk=hook.pk).delete()
    with pytest.raises(Conflict, match="deleted meanwhile"):
        services.change(team.owner, mine, events=["run.failed"])


def test_a_workspace_has_a_bounded_number_of_hooks(team, receiver, monkeypatch):
    monkeypatch.setattr(services, "MOST_HOOKS", 2)
    script = ApiClient(team.owner)
    answers = [script.post("/webhooks", {"url": receiver.url, "events": ["run.failed"]}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 409]


def test_the_log_costs_the_same_however_long_it_is(team, as_owner, hook, receiver):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def cost(client_get):
        with CaptureQueriesContext(connection) as seen:
            assert client_get().status_code == 200
        return len(seen)

    script = ApiClient(team.owner)
    asked = [
        lambda: as_owner.get(f"{PAGE}/{hook.id}"),
        lambda: script.get(f"/webhooks/{hook.id}/deliveries"),
        lambda: as_owner.get(PAGE),
    ]
    services.announce(team.workspace.id, "run.failed", {})
    before = [(get(), cost(get))[1] for get in asked]
    for _ in range(10):
        services.announce(team.workspace.id, "run.failed", {})
        services.create(team.owner, receiver.url, ["run.finished"])
    assert [cost(get) for get in asked] == before
