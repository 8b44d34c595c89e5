"""Models side by side in a real browser, with the real weights of a tiny model."""

import asyncio
import shutil
from contextlib import aclosing

import pytest

from tests import fork_server
from tests.e2e import look
from tests.e2e.live import open_page, server  # noqa: F401
from tests.team import browser, make_team
from tests.webapp.experiments.conftest import make_version
from tests.webapp.inference.conftest import KEY, chat_server  # noqa: F401  a fixture
from tests.webapp.inference.serving.conftest import short_var  # noqa: F401  a fixture
from webapp.annotation.models import Task
from webapp.datasets.models import DatasetVersion
from webapp.inference.endpoints import services as endpoints
from webapp.inference.models import RegisteredModel
from webapp.inference.serving import process
from webapp.judging.judges.services import create_judge
from webapp.playground import asking
from webapp.playground.models import TriedScore

pytestmark = pytest.mark.browser
PROMPT = "鸟 and $x^2$\n\n`code`, مرحبا"


@pytest.fixture
def weights(short_var, settings):  # noqa: F811
    """Two tiny models, of which each process is forked."""
    settings.MODEL_COMMAND = [*fork_server.command(), "model-server"]
    from trainer.inference.models import make_tiny

    for seed, name in enumerate(("base", "tuned")):
        make_tiny(short_var / name, seed)
    return short_var


@pytest.fixture
def lab(server, weights):  # noqa: F811
    team = make_team()
    for name in ("base", "tuned"):
        path = str(weights / name)
        RegisteredModel.objects.create(workspace=team.workspace, name=name, source="local", path=path)
    return team


def answered(page):
    for column in page.locator(".try-answer").all():
        column.get_by_text("24 tokens ·").wait_for(timeout=120_000)


def test_two_models_answer_side_by_side_and_their_pair_goes_to_people_once(lab, open_page):  # noqa: F811
    page = open_page(browser(lab.researcher))
    page.goto("/try")
    columns = page.locator(".try-answer")
    assert columns.count() == 2
    page.get_by_role("button", name="Ask").first.click()
    page.get_by_text("Write a prompt first").wait_for()
    page.get_by_role("textbox", name="Prompt").fill(PROMPT)
    page.get_by_label("Longest answer").fill("24")
    before = [column.bounding_box() for column in columns.all()]
    page.keyboard.press("Control+Enter")
    answered(page)
    after = [column.bounding_box() for column in columns.all()]
    assert [box["height"] for box in after] == [box["height"] for box in before], "nothing moved while they wrote"
    assert look.layout_faults(page) == []
    page.get_by_label("Name of the project").fill("Birds")
    page.get_by_role("button", name="Send A and B").click()
    page.get_by_text("Sent to Birds, 1 task").wait_for()
    assert page.get_by_role("button", name="A and B sent").is_disabled()

    page.get_by_role("textbox", name="Prompt").click()
    page.keyboard.press("Control+Enter")  # the same seed: the same answers
    answered(page)
    page.reload()  # the address leads back to the settings; a new page does not know the sent messages
    page.get_by_role("textbox", name="Prompt").fill(PROMPT)
    page.keyboard.press("Control+Enter")
    answered(page)
    page.get_by_role("button", name="Send A and B").click()
    page.get_by_text("Was sent before: Birds, 1 task").wait_for()
    assert Task.objects.count() == 1


def test_answers_to_the_prompts_of_a_dataset_are_scored_by_their_rubrics_and_sent_by_keys(lab, open_page):  # noqa: F811
    """test_pairs_to_policy.py continues from here: two people compare, and the page shows the win rate."""
    version = make_version(lab.owner, train=2, heldout=0)
    DatasetVersion.objects.filter(pk=version.pk).update(counts={"examples": 2})
    page = open_page(browser(lab.researcher))
    page.goto(f"/try?dataset={version.dataset_id}&max_new_tokens=24")
    for number in (1, 2):
        page.get_by_text(f"{number} of 2", exact=True).wait_for()
        page.locator("h1").click()  # keys do nothing while a person types
        page.keyboard.press("a")
        answered(page)
        page.get_by_text("Rubric 0.00, 0 of 1 met").first.wait_for()
        page.keyboard.press("s")
        page.get_by_text(f"Sent to Tried answers, {number} task").wait_for()
        page.keyboard.press("n")


@pytest.fixture
def slowly(monkeypatch):
    """Answers come a word at a time: a model of two layers has written its answer before anybody can stop it."""
    answers = process.answers

    async def paused(*asked):
        async with aclosing(answers(*asked)) as events:
            async for event in events:
                yield event
                await asyncio.sleep(0.1)

    monkeypatch.setattr(process, "answers", paused)


def test_an_answer_is_stopped_and_asked_again_and_what_fails_says_what_to_do(lab, weights, slowly, open_page):  # noqa: F811
    shutil.rmtree(weights / "tuned")
    page = open_page(browser(lab.researcher))
    page.goto("/try?max_new_tokens=1500")
    page.get_by_role("textbox", name="Prompt").fill("Hello")
    page.keyboard.press("Control+Enter")
    failed, good = page.locator(".try-answer").all()  # the newest model is at the top
    good.get_by_label("Stop this answer").click()
    good.get_by_text("Stopped").wait_for()
    failed.get_by_role("alert").wait_for(timeout=120_000)
    good.get_by_label("Ask this model again").click()
    good.get_by_label("Stop this answer").wait_for()
    page.keyboard.press("Escape")
    good.get_by_text("Stopped").wait_for()


def test_a_judge_scores_answers_with_its_words_and_one_that_fails_says_so(lab, open_page, chat_server):  # noqa: F811
    endpoint = endpoints.create_endpoint(
        lab.researcher, "chat", name="e", url=chat_server.url, model="t", secret=KEY, retries=0
    )
    spec = {"kind": "pointwise", "retries": 0}
    judge = create_judge(lab.researcher, name="Strict", spec=spec, endpoint=endpoint)
    chat_server.answer = lambda body: '{"explanation": "It names no colour.", "rating": 1}'
    page = open_page(browser(lab.researcher))
    page.goto(f"/try?models={RegisteredModel.objects.first().pk}&max_new_tokens=24&score=judge-{judge.pk}")
    page.get_by_role("textbox", name="Prompt").fill("Name a colour")
    page.keyboard.press("Control+Enter")
    answered(page)
    page.get_by_text("Scoring…").wait_for()
    asking.score(TriedScore.objects.get().pk)
    page.get_by_text("Strict v1: 0.00").click()
    page.get_by_text("It names no colour.").wait_for()
    assert look.layout_faults(page) == []
    chat_server.fault = "context_overflow"
    page.get_by_role("textbox", name="Prompt").fill("Name another")
    page.keyboard.press("Control+Enter")
    answered(page)
    page.get_by_text("Scoring…").wait_for()
    asking.score(TriedScore.objects.latest("pk").pk)
    page.get_by_text("No score: context_overflow").wait_for()
    page.get_by_role("button", name="Score again").wait_for()
    assert page.locator(".try-text").first.inner_text().strip(), "the answer stays"
