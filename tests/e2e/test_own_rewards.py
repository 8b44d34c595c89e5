"""A user's own rewards from the pages: a service is named and chosen, a function is chosen, and a real run asks both."""

import sys
from ipaddress import ip_network
from socket import socket

import pytest
from playwright.sync_api import expect

from tests.e2e.own_rewards import install_package, service_of_the_page
from tests.e2e.test_demo import change, enter
from tests.e2e.test_second_round import run_training
from tests.trainer.conftest import tiny_dir  # noqa: F401 - a fixture
from tests.webapp.experiments.rewards.service import SECRET
from trainer.contracts import Criterion, Example, Message, Rubric
from trainer.judges.spec import resolve as resolve_spec
from webapp.datasets.models import Dataset
from webapp.datasets.versions import services as datasets
from webapp.experiments.models import Run
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.judging.models import Judge, JudgeVersion

pytestmark = pytest.mark.browser
SMALL = {
    "steps": 1,
    "rollout.prompts_per_step": 2,
    "rollout.group_size": 2,
    "rollout.max_new_tokens": 12,
    "evaluation.max_examples": 1,
}


@pytest.fixture
def ready(server, team, tiny_dir):  # noqa: F811
    criterion = Criterion(id="c1", text="Names a colour", points=3)
    examples = [
        Example(
            key=f"e{i}",
            prompt=(Message(role="user", content=f"Prompt {i}"),),
            rubric=Rubric(criteria=(criterion,)),
            split="train" if i < 3 else "heldout",
        )
        for i in range(5)
    ]
    dataset = Dataset.objects.create(workspace=team.workspace, name="Of people")
    datasets.freeze(team.owner, datasets.new_version(team.owner, dataset, examples, None, {}, as_given=True))
    RegisteredModel.objects.create(
        workspace=team.workspace, name="smollm2-135m-instruct", source="local", path=str(tiny_dir)
    )


def launched(page) -> Run:
    page.locator(".launch").click()
    page.wait_for_url(lambda url: url.split("/")[-1].isdecimal())
    return Run.objects.get(pk=int(page.url.split("/")[-1]))


def test_a_service_and_a_function_of_ones_own(open_page, as_researcher, ready, server, settings, monkeypatch, tmp_path):
    """Both rewards are those of docs/rewards.md: a package that pip installs, and a service that refuses unsigned requests."""
    settings.ENDPOINT_NETWORKS = (ip_network("127.0.0.0/8"),)
    settings.VAR = tmp_path
    site = install_package(tmp_path)
    monkeypatch.setenv("TOUCHSTONE_REWARD_FUNCTIONS", "polite")
    monkeypatch.setenv("PYTHONPATH", str(site))
    page = open_page(as_researcher)
    page.goto("/runs/new?recipe=policy")
    page.locator("#f-rewards-0-kind").select_option("python")
    expect(page.locator("#f-rewards-0-entry-note")).to_contain_text("No function is allowed here")
    monkeypatch.syspath_prepend(str(site))  # also installed where the web server runs

    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with service_of_the_page(tmp_path, port, SECRET) as (url, log):
        page.goto("/runs/new?recipe=policy")
        page.locator("#f-rewards-0-kind").select_option("http")
        with page.expect_popup() as opened:
            page.get_by_role("link", name="Name one").click()
        naming = opened.value
        naming.get_by_label("Name", exact=True).fill("Our service")
        naming.get_by_label("Address").fill(url)
        naming.get_by_label("Signing secret").fill(SECRET)
        naming.get_by_role("button", name="Save").click()
        expect(naming.locator("h1")).to_have_text("Our service")
        naming.close()
        page.get_by_role("button", name="Add").first.click()
        page.locator("#f-rewards-1-kind").focus()  # a person's click sends the button that has the focus
        page.locator("#f-rewards-1-kind").select_option("python")
        page.locator("#f-rewards-1-entry").select_option("polite")
        page.locator("#f-rewards-0-endpoint").select_option("Our service")
        page.locator("#g-scaffold > summary").click()
        page.locator("[name='scaffold.__on']").uncheck()
        for path, value in SMALL.items():
            change(page, f"f-{path.replace('.', '-')}", lambda field, value=value: enter(field, str(value)))
        expect(page.locator(".run-form-side [role=status]")).to_contain_text("Stop it at any time")
        run = run_training(launched(page), server.url, [sys.executable, "-m", "trainer"])
        assert log and all('"POST / HTTP/1.1" 200' in line for line in log), log
    rows = list(run.rollouts.filter(phase="train"))
    assert len(rows) == 4
    for row in rows:
        brief, polite = row.content["parts"]
        words = len(row.content["response"].split())
        assert brief["value"] == pytest.approx(1 / (1 + words)) and brief["why"] == "shorter is better"
        assert polite["value"] == sum(word in row.content["response"].lower() for word in ("please", "thank", "e"))
        assert row.reward == pytest.approx(brief["value"] + polite["value"])


def test_rubrics_without_verifiers_are_refused_until_a_judge_is_chosen(open_page, as_researcher, ready, team):
    """Rubrics as a project of people publishes them: no criterion has a verifier."""
    endpoint = Endpoint.objects.create(workspace=team.workspace, name="here", kind="chat", url="https://x", model="m")
    row = Judge.objects.create(workspace=team.workspace, name="Grader", kind="criterion")
    spec = resolve_spec({"kind": "criterion"}).model_dump(mode="json")
    version = JudgeVersion.objects.create(judge=row, number=1, spec=spec, endpoint=endpoint, digest="e" * 64)
    page = open_page(as_researcher)
    page.goto("/runs/new?recipe=policy")
    page.locator("#f-steps").fill("3")
    page.locator("#f-steps").press("Tab")
    expect(page.locator("#g-data")).to_have_attribute("open", "")
    expect(page.locator("#g-data .error")).to_contain_text("5 criteria of 5 prompts have no verifier")
    page.locator(".launch").click()
    expect(page.locator(".run-form-side [role=status]")).to_have_text("1 problem to fix: Data: Unjudged")
    expect(page.locator("#f-data-unjudged")).to_be_focused()
    page.locator("#f-steps").focus()
    page.get_by_role("link", name="Data: Unjudged").click()
    expect(page.locator("#f-data-unjudged")).to_be_focused()
    page.locator("#f-rewards-0-judge").select_option("Grader v1")
    expect(page.locator(".licence")).to_contain_text("Nobody has compared this judge with labels of people")
    expect(page.locator(".licence").get_by_role("link", name="Measure it")).to_be_visible()
    expect(page.locator(".run-form-side [role=status]")).to_contain_text("Stop it at any time")
    run = launched(page)
    assert run.slots.get(role="judge").judge == version and run.config["scaffold"]
