"""The page of an objective, and the choice of objectives in the run form, in a browser."""

import pytest

from tests.e2e.look import unfold
from tests.team import browser
from webapp.inference.models import RegisteredModel

pytestmark = pytest.mark.browser


@pytest.fixture
def page(open_page, team):
    return open_page(browser(team.researcher))


def test_the_formula_is_drawn_and_the_calculator_answers(page, eager):
    page.goto("/objectives/icepop")
    page.locator(".formula.is-drawn .katex").first.wait_for()
    record = page.get_by_label("Record")
    record.fill(
        '{"logp": [[-1.0], [-2.0]], "logp_old": [[-1.0], [-2.0]], "logp_roll": [[-1.0], [-9.0]], "rewards": [1, 0]}'
    )
    page.get_by_role("button", name="Calculate").click()
    # the trainer gives the second token a thousand times the probability that the sampler gave it: the token is silenced
    page.locator("#result .gradient", has_text="-0.5000").wait_for(timeout=60_000)
    assert page.locator("#result .gradient").all_inner_texts() == ["-0.5000", "0.0000"]
    record.fill('{"logp": [[-1.0]]}')
    page.get_by_role("button", name="Calculate").click()
    page.locator("#result .callout", has_text="logp_old: missing").wait_for(timeout=60_000)


def test_the_form_draws_the_knobs_of_the_objective_that_is_chosen(page, team):
    RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="o/m")
    page.goto("/runs/new?recipe=policy")
    unfold(page, "f-objective-eps_low").fill("0.1")
    page.locator("[name='objective.name']").select_option("icepop")
    page.locator("[name='objective.pop_high']").wait_for()
    assert page.locator("[name='objective.eps_low']").input_value() == "0.1"
    assert page.locator("[name='objective.eps_high']").input_value() == "0.28"
    page.get_by_text("the scaffold would count as mismatch").wait_for()
    page.locator("[name='objective.name']").select_option("oapl")
    page.locator("[name='objective.beta2']").wait_for()
    assert page.locator("[name='objective.eps_low']").count() == 0
    assert page.locator("[name='objective.beta2']").input_value() == "0.001"
