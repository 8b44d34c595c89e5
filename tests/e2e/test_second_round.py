"""From people's comparisons to a policy, and to a second round on the policy's own answers. The test uses the pages between real training
processes on the tiny model.
"""

import json
import os
import re
import subprocess
import time
from ipaddress import ip_network

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.chatserver import ChatServer
from tests import fork_server
from tests.e2e.test_demo import change, enter
from tests.e2e.workbench import wait_until_sent
from tests.stack import ROOT
from tests.trainer.chat_beside import chat_server
from tests.trainer.conftest import tiny_dir  # noqa: F401 - a fixture
from trainer.contracts import Example, Message, Response
from webapp.annotation.models import Answer, Project
from webapp.annotation.projects import task_services
from webapp.datasets.models import Dataset
from webapp.datasets.versions import services as datasets
from webapp.experiments.lifecycle import tokens
from webapp.experiments.models import Point, Rollout, Run, RunQuestion
from webapp.experiments.rewards import asking
from webapp.inference.endpoints import services as endpoints
from webapp.inference.models import RegisteredModel
from webapp.judging.judges.services import create_judge

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAIRS = 4
_ANSWERS = re.compile(r"<response>\n(.*?)\n</response>", re.DOTALL)
SMALL = {"steps": 2, "batch_size": 2, "evaluation-every": 0, "evaluation-max_examples": 0}
ROUND = {
    "round_steps": 1,
    "rollout-prompts_per_round": 4,
    "rollout-max_new_tokens": 12,
}


def letters(text: str) -> int:
    return sum(each.isascii() and each.isalpha() for each in text)


def prefers_more_letters(body) -> str:
    """Decides by the text, not by the position."""
    first, second = map(letters, _ANSWERS.findall(body["messages"][-1]["content"]))
    verdict = "tie" if first == second else "A" if first > second else "B"
    return json.dumps({"reasons": ["it has more letters"], "verdict": verdict})


def run_training(run: Run, url: str, trainer: list[str] | None = None) -> Run:
    """Runs the process that Ray would start, to its end. It is forked, unless `trainer` is a command that starts it."""
    Run.objects.filter(id=run.id).update(state="starting", ray_job_id=f"run-{run.id}-1", next_try_at=None)
    variables = {"URL": url, "RUN_ID": str(run.id), "RUN_TOKEN": tokens.run_token(run)}
    environment = {f"TOUCHSTONE_{name}": value for name, value in variables.items()}
    command = [*(trainer or fork_server.command()), "job"]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    deadline = time.monotonic() + 300
    with subprocess.Popen(command, cwd=ROOT, env=variables) as process:
        try:
            while process.poll() is None and time.monotonic() < deadline:
                answer_questions(run)
                time.sleep(0.1)
        finally:
            process.kill()
    run.refresh_from_db()
    assert run.state == "finished", run.state_reason
    return run


def answer_questions(run: Run) -> None:
    """Does the work of a worker after questions have arrived."""
    waiting = RunQuestion.objects.filter(judge__run=run, state=RunQuestion.State.QUEUED)
    for judge_id in set(waiting.values_list("judge_id", flat=True)):
        asking.answer(judge_id)


@pytest.fixture
def judge(team, settings):
    """A judge of pairs, with an endpoint that needs no key."""
    settings.ENDPOINT_NETWORKS = (ip_network("127.0.0.0/8"),)
    with chat_server(answer=prefers_more_letters) as chat:
        endpoint = endpoints.create_endpoint(team.researcher, "chat", name="judge", url=chat.url, model="m", retries=0)
        create_judge(team.owner, name="Comparer", spec={"kind": "pairwise"}, endpoint=endpoint)
        yield chat


@pytest.fixture
def ready(server, team, tiny_dir, settings, tmp_path):  # noqa: F811
    """Prompts with two answers each, which nobody has compared, and a base model."""
    settings.VAR = tmp_path
    RegisteredModel.objects.create(workspace=team.workspace, name="tiny", source="local", path=str(tiny_dir))
    examples = [
        Example(
            key=f"e{i}",
            prompt=(Message(role="user", content=f"Name a fruit, number {i}."),),
            responses=(Response(id="a", text=f"An apple, {i}."), Response(id="b", text=f"What a question, {i}!")),
            split="train",
        )
        for i in range(PAIRS)
    ]
    dataset = Dataset.objects.create(workspace=team.workspace, name="Fruit")
    datasets.freeze(team.owner, datasets.new_version(team.owner, dataset, examples, None, {}, as_given=True))


def set_up(page: Page) -> str:
    """Sets up a project of pairs like a person. Returns the link for the person who compares them."""
    page.goto("/projects/new")
    page.locator(".kind", has_text="Pairwise preference").click()
    page.get_by_label("Name", exact=True).fill("Which is better?")
    page.get_by_label("People per task").fill("1")
    page.get_by_role("button", name="Create and open").click()
    page.wait_for_url(re.compile(r"/projects/\d+$"))
    task_services.make(Project.objects.get().pk)  # the work of a worker
    page.get_by_role("link", name="People", exact=True).click()
    page.get_by_role("button", name="Create a link").click()
    return page.locator(".copyable .code").inner_text()


def compare(chromium: Browser, url: str, link: str) -> None:
    """Joins, and prefers the apple in every pair, by keyboard alone."""
    context = chromium.new_context(base_url=url, viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.goto("/join/" + link.rsplit("/", 1)[1])  # the test's server has another address than the settings say
    page.get_by_label("Your name").fill("Nora")
    page.get_by_label("Email").fill("nora@example.com")
    page.get_by_label("Password").fill("twelve letters")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Which is better?").click()
    for number in range(PAIRS):
        page.get_by_text(f"Name a fruit, number {number}.").wait_for()
        first = page.locator(".work-card").first.inner_text()
        page.keyboard.press("1" if "apple" in first else "7")
        page.keyboard.press("Control+Enter")
    page.get_by_text("Nothing waits for you").wait_for()
    wait_until_sent(page)
    context.close()


def launch_run(page: Page, **fields: int) -> Run:
    for path, value in fields.items():
        change(page, f"f-{path}", lambda field, value=value: enter(field, str(value)))
    assert page.locator("#run-form .error").all_inner_texts() == []
    page.locator(".launch").click()
    page.wait_for_url(re.compile(r"/runs/\d+$"))
    return Run.objects.get(pk=int(page.url.rsplit("/", 1)[1]))


def test_what_people_preferred_becomes_a_policy_that_learns_on_from_its_own_answers(
    open_page, chromium: Browser, as_researcher, ready, judge: ChatServer, server
):
    page = open_page(as_researcher)
    compare(chromium, server.url, set_up(page))
    assert Answer.objects.count() == PAIRS
    page.get_by_role("link", name="Answers", exact=True).click()
    page.get_by_label("Each answer by itself").check()
    page.get_by_role("button", name="Publish a frozen version").click()
    expect(page.locator("h2", has_text="Published as version 2 of Fruit")).to_be_visible()
    page.locator("summary", has_text="Train on it").click()
    offered = page.locator(".train-item", has_text="Direct preference optimisation")
    expect(offered).to_contain_text(f"{PAIRS} pairs with a preferred answer")
    offered.click()
    change(page, "f-model-name", lambda field: field.select_option("tiny"))
    first = run_training(launch_run(page, **SMALL), server.url)

    page.goto(f"/runs/{first.pk}")
    policy = RegisteredModel.objects.get(artifact__run=first)
    assert policy.base.name == "tiny"
    page.goto(f"/models/{policy.pk}")
    page.get_by_text("Train it further").click()
    page.locator("li", has_text="Iterative preference optimisation").get_by_role("link", name="Base").click()
    expect(page.locator("#f-model-name")).to_have_value(policy.name)
    version = page.locator("#f-dataset option", has_text="Fruit · v2").get_attribute("value")
    change(page, "f-dataset", lambda field: field.select_option(version))
    for field, value in {"kind": "judge", "protocol": "pairwise", "judge": "Comparer v1", "against": "sample"}.items():
        change(page, f"f-rewards-0-{field}", lambda found, value=value: found.select_option(value))
    second = run_training(launch_run(page, **SMALL, **ROUND), server.url)

    assert judge.requests > 0 and second.model == policy
    assert set(second.slots.values_list("role", flat=True)) == {"base", "judge"}
    points = dict(Point.objects.filter(run=second, key="label/first_share").values_list("step", "value"))
    assert set(points.values()) == {0.5}, "this judge has no order bias, in either round"
    pairs = list(Rollout.objects.filter(run=second, phase="train").order_by("step", "group", "index"))
    assert pairs and [row.index for row in pairs[:2]] == [0, 1]
    better, worse = (letters(row.content["response"]) for row in pairs[:2])
    assert better > worse
    assert RegisteredModel.objects.get(artifact__run=second).base == policy
    page.goto(f"/runs/{second.pk}/rollouts")
    expect(page.locator(".pair").first).to_be_visible()
