"""Judges with local weights: the worker asks a separate process and stores its answers, or the reason why there are none."""

import sys
from decimal import Decimal

import pytest

from tests.trainer.judges.test_local import PROCESS
from trainer.judges.budget import Budget
from trainer.judges.chat import EndpointProblem
from webapp.core.problems import Conflict
from webapp.inference.endpoints import services as endpoints
from webapp.inference.models import EndpointTrouble, RegisteredModel
from webapp.judging.asking.calls import judge_calls
from webapp.judging.judges.services import create_judge
from webapp.judging.models import Trial, Verdict
from webapp.judging.trials.services import start_trial

from ..conftest import inputs

pytestmark = pytest.mark.django_db
DYING = PROCESS.replace('said == "die"', "True")


@pytest.fixture
def local(team, settings):
    settings.JUDGE_COMMAND = [sys.executable, "-c", PROCESS]
    model = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="a/b")
    return endpoints.create_endpoint(team.researcher, "local", name="l", registered_model=model.pk)


def judge(team, local, kind="criterion"):
    return create_judge(team.researcher, name=f"J {kind}", spec={"kind": kind}, endpoint=local)


def test_every_criterion_gets_a_verdict_and_a_second_run_starts_nothing(team, local, settings):
    version = judge(team, local)
    counts = judge_calls(version, inputs(2))
    assert (counts.done, counts.total, counts.halted) == (4, 4, "")
    verdict = Verdict.objects.first()
    assert verdict.parsed["met"] is False and "P(yes) = 0.750" in verdict.parsed["explanation"]
    assert (verdict.prompt_tokens, verdict.cached_tokens, verdict.completion_tokens) == (7, 3, 0)
    local.refresh_from_db()
    assert local.first_used_at
    settings.JUDGE_COMMAND = [sys.executable, "-c", DYING]
    assert judge_calls(version, inputs(2)).stored == 4


def test_other_kinds_are_generated_and_what_cannot_be_read_is_missing(team, local):
    assert judge_calls(judge(team, local, "pointwise"), inputs(1)).missing == 1
    assert Verdict.objects.get().completion_tokens == 6, "asked three times, two tokens each"


def test_a_process_that_dies_leaves_counted_failures_that_a_later_run_asks_again(team, local, settings):
    settings.JUDGE_COMMAND = [sys.executable, "-c", DYING]
    version = judge(team, local)
    counts = judge_calls(version, inputs(2))
    assert (counts.failed, counts.done) == (4, 0)
    assert "ended with status 9: out of memory" in Verdict.objects.first().problem
    assert EndpointTrouble.objects.get(endpoint=local).code == "down"
    settings.JUDGE_COMMAND = [sys.executable, "-c", PROCESS]
    assert judge_calls(version, inputs(2)).done == 4


def test_a_process_that_cannot_be_started_is_said(team, local, settings):
    settings.JUDGE_COMMAND = ["/nowhere/python"]
    with pytest.raises(EndpointProblem, match="could not be started"):
        judge_calls(judge(team, local), inputs(1))


def test_a_budget_holds_for_local_weights_too(team, local):
    counts = judge_calls(judge(team, local), inputs(1), budget=Budget(tokens=10))
    assert counts.done == 0 and "budget is used up" in counts.halted


def test_an_archived_endpoint_is_not_asked(team, local):
    version = judge(team, local)
    endpoints.archive(team.researcher, local)
    with pytest.raises(Conflict, match="archived"):
        judge_calls(version, inputs(1))


def test_prices_make_a_cost_of_prompt_tokens(team, local):
    endpoints.change_endpoint(team.researcher, local, price_prompt=Decimal(100_000), price_completion=Decimal(0))
    assert judge_calls(judge(team, local), inputs(1)).cost == Decimal("1.4")


def test_a_draft_is_tried_on_local_weights(team, local, examples, eager, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        trial = start_trial(team.researcher, spec={"kind": "criterion"}, endpoint=local, examples=[examples[0].pk])
    trial.refresh_from_db()
    assert trial.state == Trial.State.FINISHED, trial.problem
    assert {call["state"] for call in trial.results["calls"]} == {"done"}
