"""A spending limit in a browser: it is set by keyboard and shown immediately. A launch is refused when it is used up."""

from decimal import Decimal

import pytest
from playwright.sync_api import expect

from tests.e2e.look import layout_faults
from tests.e2e.test_run_page import run  # noqa: F401 - a fixture
from tests.webapp.experiments.rewards.test_questions import grader  # noqa: F401 - a fixture
from tests.webapp.inference.conftest import chat_server, endpoint  # noqa: F401 - fixtures
from webapp.experiments.live import broadcasts
from webapp.experiments.models import Run, RunJudge

pytestmark = pytest.mark.browser


def test_a_limit_is_set_shown_and_refused_where_it_is_used(open_page, as_researcher, run, grader):  # noqa: F811
    RunJudge.objects.create(run=run, version=grader, tokens=900, money=Decimal("1.5"), calls=9)
    page = open_page(as_researcher)
    page.goto(f"/runs/{run.id}")

    def ask(tokens):
        page.locator("summary[aria-label='More']").press("Enter")
        page.get_by_role("button", name="Spending limit…").press("Enter")
        page.get_by_label("Tokens of all judges").fill(tokens)
        for scheme in ("light", "dark"):
            for width in (1280, 390):
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 800})
                assert layout_faults(page) == []
        page.get_by_label("Tokens of all judges").press("Enter")

    ask("800")
    expect(page.get_by_text("must be more than the 900 tokens that are used")).to_be_visible()
    ask("5000")
    expect(page.get_by_text("Spending limit of its judges: 900 of 5,000 tokens used")).to_be_visible()
    assert Run.objects.get(id=run.id).judge_token_limit == 5000
    page.wait_for_selector('#connection[data-state="live"]', state="attached")  # it hears what is said from now on
    RunJudge.objects.filter(run=run).update(tokens=1800, money=Decimal("2.25"))
    broadcasts.judges(run.id)
    expect(page.get_by_text("Spending limit of its judges: 1,800 of 5,000 tokens used")).to_be_visible()  # no reload
    page.locator("summary[aria-label='More']").press("Enter")
    page.get_by_role("button", name="Spending limit…").press("Enter")
    expect(page.get_by_text("They have used 1,800 tokens and cost 2.25")).to_be_visible()
