"""Tests and probes of endpoints, with a real server over loopback."""

import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.trainer.judges.test_local import PROCESS
from trainer.judges.chat import Target
from webapp.core import broadcast
from webapp.core.problems import Conflict
from webapp.inference.endpoints import checks, probing, services, targets
from webapp.inference.models import EndpointCheck, RegisteredModel

from ..conftest import KEY

pytestmark = pytest.mark.django_db


def run(membership, endpoint, kind) -> EndpointCheck:
    made = checks.start_check(membership, endpoint, kind)
    checks.carry_out(made.pk)
    made.refresh_from_db()
    endpoint.refresh_from_db()
    return made


def test_a_test_shows_what_came_back(team, endpoint, chat_server):
    made = run(team.researcher, endpoint, "test")
    assert made.state == "finished" and made.result["completion_tokens"] and made.result["latency_ms"] >= 0
    assert chat_server.requests == 1


@pytest.mark.parametrize(
    ("fault", "code"), [("error", "down"), ("not_json", "bad_response"), ("context_overflow", "context_overflow")]
)
def test_a_test_that_fails_says_why_and_is_counted(team, endpoint, chat_server, fault, code):
    chat_server.fault = fault
    made = run(team.researcher, endpoint, "test")
    assert (made.state, made.code) == ("failed", code) and made.problem
    assert endpoint.troubles.get().count == 1


def test_text_that_no_database_takes_is_shown_all_the_same(team, endpoint, chat_server):
    chat_server.answer = lambda body: "a\0b\ud800"
    assert run(team.researcher, endpoint, "test").result["text"] == "a\ufffdb\ufffd"


def test_a_key_that_is_refused_is_not_quoted(team, endpoint, chat_server):
    chat_server.key = "other"
    made = run(team.researcher, endpoint, "test")
    assert made.code == "refused" and KEY not in made.problem and "[key]" in made.problem


def test_a_probe_finds_what_the_endpoint_can(team, endpoint, chat_server):
    chat_server.answer = follow_the_schema
    made = run(team.researcher, endpoint, "probe")
    assert made.state == "finished"
    found = {name: endpoint.capabilities[name] for name in ("logprobs", "schema", "prefix_cache", "tokens_field")}
    assert found == {"logprobs": True, "schema": True, "prefix_cache": True, "tokens_field": "max_tokens"}
    assert targets.endpoint_target(endpoint).supports_schema


def test_what_is_merely_accepted_is_not_taken_for_granted(team, endpoint, chat_server):
    chat_server.logprobs = False
    chat_server.answer = lambda body: "Hello"
    run(team.researcher, endpoint, "probe")
    assert endpoint.capabilities["logprobs"] is False and endpoint.capabilities["schema"] is False


def test_a_parameter_that_is_refused_is_a_no_and_a_failure_is_not(team, endpoint, chat_server):
    chat_server.faults.extend(["", "refused", "error"])
    run(team.researcher, endpoint, "probe")
    assert endpoint.capabilities["logprobs"] is False
    assert endpoint.capabilities["schema"] is None
    assert "500" in endpoint.capabilities["reasons"]["schema"]


async def test_models_that_refuse_max_tokens_are_asked_by_the_new_name(chat_server):
    chat_server.only_new_tokens_field = True
    found = await probing.probe(Target(chat_server.url, "m", KEY))
    assert found["tokens_field"] == "max_completion_tokens"


def test_a_cache_that_is_not_reported_is_not_known(team, endpoint, chat_server):
    chat_server.reports_cache = False
    run(team.researcher, endpoint, "probe")
    assert endpoint.capabilities["prefix_cache"] is None


def test_two_clicks_make_one_check_and_a_redelivered_task_does_nothing(team, endpoint, chat_server):
    first = checks.start_check(team.researcher, endpoint, "test")
    assert checks.start_check(team.researcher, endpoint, "test") == first
    assert checks.start_check(team.researcher, endpoint, "probe") != first
    checks.carry_out(first.pk)
    checks.carry_out(first.pk)
    assert chat_server.requests == 1


def test_a_check_whose_worker_was_lost_does_not_wait_for_ever(team, endpoint):
    first = checks.start_check(team.researcher, endpoint, "test")
    EndpointCheck.objects.update(created_at=timezone.now() - timedelta(hours=1))
    second = checks.start_check(team.researcher, endpoint, "test")
    first.refresh_from_db()
    assert second != first and first.state == "failed" and "No worker" in first.problem


def test_only_the_last_checks_are_kept(team, endpoint, monkeypatch):
    monkeypatch.setattr(checks, "KEPT", 3)
    for _ in range(5):
        checks.start_check(team.researcher, endpoint, "test")
        EndpointCheck.objects.update(state="finished", finished_at=timezone.now())
    assert endpoint.checks.count() == 3


def test_who_cannot_be_asked_is_not_tested(team, endpoint):
    recorded = services.create_endpoint(team.researcher, "recorded", name="old")
    services.archive(team.researcher, endpoint)
    for each in (recorded, endpoint):
        with pytest.raises(Conflict):
            checks.start_check(team.researcher, each, "test")


def follow_the_schema(body):
    return '{"count": 1, "colour": "blue"}' if "response_format" in body else "ready"


@pytest.fixture
def local(team, settings):
    settings.JUDGE_COMMAND = [sys.executable, "-c", PROCESS]
    model = RegisteredModel.objects.create(workspace=team.workspace, name="m", source="hub", path="a/b")
    return services.create_endpoint(team.researcher, "local", name="l", registered_model=model.pk)


def test_weights_of_this_machine_are_tested_in_a_process_that_loads_them(team, local):
    made = run(team.researcher, local, "test")
    assert (made.state, made.result["text"].split()[1]) == ("finished", "32"), made.problem
    assert made.result["load_ms"] > 0 and made.result["completion_tokens"] == 2


def test_weights_of_this_machine_are_probed_with_the_questions_of_judges(team, local):
    made = run(team.researcher, local, "probe")
    assert made.state == "finished", made.problem
    found = {name: local.capabilities[name] for name in ("logprobs", "schema", "prefix_cache")}
    assert found == {"logprobs": True, "schema": False, "prefix_cache": True}
    assert "P(yes) = 0.750" in local.capabilities["reasons"]["logprobs"]


def test_weights_that_cannot_be_loaded_say_why(team, local, settings):
    settings.JUDGE_COMMAND = [sys.executable, "-c", "import sys; sys.exit('no weights in /a')"]
    made = run(team.researcher, local, "probe")
    assert (made.state, made.code) == ("failed", "down") and "no weights in /a" in made.problem
    assert local.capabilities == {} and local.troubles.get().count == 1


def test_recorded_outputs_have_nobody_to_ask(team):
    tape = services.create_endpoint(team.researcher, "recorded", name="tape")
    with pytest.raises(Conflict, match="cannot be asked"):
        checks.start_check(team.researcher, tape, "test")


def test_open_pages_hear_that_a_check_is_over(team, local, monkeypatch, django_capture_on_commit_callbacks):
    told = []
    monkeypatch.setattr(broadcast, "send_now", lambda group, message: told.append((group, message["state"])))
    with django_capture_on_commit_callbacks(execute=True):
        made = run(team.researcher, local, "test")
    assert told == [(f"workspace.{team.workspace.pk}", state) for state in ("running", "finished")], made.problem
