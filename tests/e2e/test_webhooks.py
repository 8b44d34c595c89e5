"""The pages of webhooks in a browser: events are chosen in groups, and the log that loads itself again stays readable."""

from datetime import timedelta
from ipaddress import ip_network

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from tests.e2e.look import on_screens
from webapp.webhooks.models import Delivery, Webhook

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
TEXT_OF_THE_NEXT_FRAME = """() => new Promise((done) => document.addEventListener("htmx:afterSwap", () =>
  requestAnimationFrame(() => requestAnimationFrame(() => done(document.querySelector("#log time").textContent))), { once: true }))"""


@pytest.fixture
def hook(team, settings) -> Webhook:
    settings.WEBHOOK_NETWORKS = (ip_network("127.0.0.0/8"),)
    events = ["run.finished", "run.failed"]
    return Webhook.objects.create(workspace=team.workspace, url="http://127.0.0.1:9/", events=events, secret="sealed")


def test_all_events_of_a_group_are_chosen_with_one_box(open_page, as_owner, hook):
    page = open_page(as_owner)
    page.goto(f"/settings/webhooks/{hook.pk}")
    runs = page.locator("[data-group]").first
    expect(runs.locator("summary")).to_contain_text("2 of ")
    box = runs.get_by_label("All of these: Runs and sweeps")
    assert box.evaluate("(node) => node.indeterminate")
    on_screens(page, "webhook-events")
    box.check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    hook.refresh_from_db()
    assert len(hook.events) > 10 and {name.split(".")[0] for name in hook.events} == {"run", "sweep", "claim"}


def test_the_log_says_how_long_ago_also_after_it_has_loaded_itself(open_page, as_owner, hook):
    now = timezone.now()
    later = {"next_try_at": now + timedelta(hours=1), "give_up_at": now + timedelta(days=1)}
    happened = {
        "created_at": now - timedelta(minutes=5),
        "attempts": 1,
        "status": 500,
        "error": "The receiver answered 500.",
    }
    Delivery.objects.create(
        webhook=hook, event="run.failed", payload={"run": 7, "name": "warm start"}, **later, **happened
    )
    page = open_page(as_owner)
    page.goto(f"/settings/webhooks/{hook.pk}")
    expect(page.locator("#log")).to_contain_text("warm start")
    on_screens(page, "webhook-log")
    assert page.evaluate(TEXT_OF_THE_NEXT_FRAME) == "5 minutes ago", (
        "the words of the server were shown until the clock ticked"
    )
