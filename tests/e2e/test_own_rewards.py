"""Rewards of one's own from the pages: a service is named, tested and chosen, a function is chosen, and the run asks the service."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network

import pytest
from playwright.sync_api import expect

from tests.webapp.experiments.conftest import make_version
from tests.webapp.experiments.service import SECRET, reward_service
from trainer.judges.spec import resolve as resolve_spec
from trainer.rewards import functions
from trainer.rewards.relay import Relay, RelayedService
from webapp.experiments import tokens
from webapp.experiments.models import Run
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.judging.models import Judge, JudgeVersion

pytestmark = pytest.mark.browser


@pytest.fixture
def ready(server, cast):
    make_version(cast.owner, "Of people", verifier=None)
    RegisteredModel.objects.create(
        workspace=cast.workspace, name="smollm2-135m-instruct", source="local", path="/models/smollm2"
    )


def launched(page) -> Run:
    page.locator(".launch").click()
    page.wait_for_url(lambda url: url.split("/")[-1].isdecimal())
    return Run.objects.get(pk=int(page.url.split("/")[-1]))


def test_a_service_and_a_function_of_ones_own(open_page, as_researcher, ready, server, settings, monkeypatch):
    settings.ENDPOINT_NETWORKS = (ip_network("127.0.0.0/8"),)
    monkeypatch.setenv(functions.ALLOWED, "polite")
    monkeypatch.setattr(functions, "entry_points", lambda group, name: [name])
    page = open_page(as_researcher)
    with reward_service() as service:
        page.goto("/runs/new?recipe=policy")
        page.locator("#f-rewards-0-kind").select_option("http")
        with page.expect_popup() as opened:
            page.get_by_role("link", name="Name one").click()
        naming = opened.value
        naming.get_by_label("Name", exact=True).fill("Our service")
        naming.get_by_label("Address").fill(service.url)
        naming.get_by_label("Signing secret").fill(SECRET)
        naming.get_by_role("button", name="Save").click()
        expect(naming.locator("h1")).to_have_text("Our service")
        naming.close()
        page.get_by_role("button", name="Add").first.click()
        page.locator("#f-rewards-1-kind").focus()  # as a person would: a button that has the focus is sent along
        page.locator("#f-rewards-1-kind").select_option("python")
        page.locator("#f-rewards-1-entry").select_option("polite")
        page.locator("#f-rewards-0-endpoint").select_option("Our service")
        page.locator("#g-scaffold > summary").click()
        page.locator("[name='scaffold.__on']").uncheck()
        expect(page.locator(".run-form-side [role=status]")).to_contain_text("Stop it at any time")
        run = launched(page)
        assert [part["kind"] for part in run.config["rewards"]] == ["http", "python"]
        relay = Relay(f"{server.url}/api/v1/ingest/runs/{run.pk}/services", tokens.run_token(run), "Our service")
        with ThreadPoolExecutor(1) as thread:  # Playwright keeps an event loop in this one
            values = thread.submit(asyncio.run, answered(relay)).result(30)
        assert values == [{"value": 0.04, "why": "its length"}] and service.signed == 1


async def answered(relay: Relay):
    service = RelayedService(relay)
    try:
        return await service.answer([{"key": "e0", "response": "four"}])
    finally:
        await service.close()


def test_rubrics_without_verifiers_are_refused_until_a_judge_is_chosen(open_page, as_researcher, ready, cast):
    """What a project of people publishes: no criterion has a verifier."""
    endpoint = Endpoint.objects.create(workspace=cast.workspace, name="here", kind="chat", url="https://x", model="m")
    row = Judge.objects.create(workspace=cast.workspace, name="Grader", kind="criterion")
    spec = resolve_spec({"kind": "criterion"}).model_dump(mode="json")
    version = JudgeVersion.objects.create(judge=row, number=1, spec=spec, endpoint=endpoint, digest="e" * 64)
    page = open_page(as_researcher)
    page.goto("/runs/new?recipe=policy")
    page.locator("#f-steps").fill("3")
    page.locator("#f-steps").press("Tab")
    expect(page.locator("#g-data")).to_have_attribute("open", "")
    expect(page.locator("#g-data .error")).to_contain_text("5 criteria of 5 prompts have no verifier")
    page.locator("#f-rewards-0-judge").select_option("Grader v1")
    expect(page.locator(".licence")).to_contain_text("Nobody has compared this judge with labels of people")
    expect(page.locator(".licence").get_by_role("link", name="Measure it")).to_be_visible()
    expect(page.locator(".run-form-side [role=status]")).to_contain_text("Stop it at any time")
    run = launched(page)
    assert run.slots.get(role="judge").judge == version and run.config["scaffold"]
