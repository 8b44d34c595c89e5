"""Models of other architectures are tried when they are registered, and their page shows the result."""

import json
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from celery.exceptions import Retry
from django.db import connection
from django.utils import timezone

from tests.team import ApiClient, browser
from tests.webapp.experiments.conftest import launch, model, version  # noqa: F401 - fixtures
from tests.webapp.inference.registry.test_registering import folder, register  # noqa: F401
from trainer.config import ConfigInvalid
from webapp.core.database import locks
from webapp.inference.models import RegisteredModel
from webapp.inference.registry import uses
from webapp.inference.trials import outcomes, services
from workers.endpoints import try_model

pytestmark = pytest.mark.django_db

FITS = {
    "path": "generic",
    "state": "fits",
    "tokens": 84,
    "largest": 2e-6,
    "mean": 1e-7,
    "adapters": 14,
    "sampler": 3e-7,
}
REFUSED = {"path": "generic", "state": "refused", "reason": "architecture 'phi': its head adds a bias"}


def printing(text: str) -> list[str]:
    return [sys.executable, "-c", f"print({text!r})"]


@pytest.fixture
def gemma(tmp_path) -> Callable[..., RegisteredModel]:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gemma"}))
    facts = {"model_type": "gemma", "vocab_size": 300}

    def make(workspace, **more):
        named = {"name": "gemma", "source": "local", "path": str(tmp_path), "facts": facts} | more
        return RegisteredModel.objects.create(workspace=workspace, **named)

    return make


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (FITS, "over 84 tokens packed and padded log-probabilities differ by at most 2e-06; 14 layers took an adapter"),
        (REFUSED, "It cannot be trained: architecture &#x27;phi&#x27;: its head adds a bias"),
        (
            {"path": "generic", "state": "not_tried", "reason": "it takes about 9.0 GB"},
            "It was not tried here: it takes about",
        ),
    ],
)
def test_what_a_trial_has_measured_stands_on_the_page(told, shown, gemma, team, client, settings):
    settings.TRIAL_COMMAND = printing(json.dumps(told))
    row = gemma(team.workspace)
    client.force_login(team.researcher.user)
    assert "has not been tried here yet" in client.get(f"/models/{row.pk}").content.decode()
    services.carry_out(row.pk)
    page = client.get(f"/models/{row.pk}").content.decode()
    assert shown in page and "<dt>trial</dt>" not in page
    row.refresh_from_db()
    assert row.facts == {"model_type": "gemma", "vocab_size": 300, "trial": told}


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["/no/such/program"], "could not be run"),
        (printing("no object"), "could not be run"),
        (printing("[1]"), "failed: it said nothing"),
        ([sys.executable, "-c", "import sys; sys.exit('no torch here')"], "failed: no torch here"),
    ],
)
def test_a_process_that_breaks_is_no_refusal(command, why, gemma, team, settings):
    settings.TRIAL_COMMAND = command
    row = gemma(team.workspace)
    services.carry_out(row.pk)
    row.refresh_from_db()
    assert row.facts["trial"]["state"] == "not_tried" and why in row.facts["trial"]["reason"]
    assert outcomes.untrainable(row) == ""


@pytest.mark.parametrize(
    "more",
    [{"facts": {"model_type": "llama"}}, {"facts": {}}, {"head": "scalar"}, {"source": "hub"}, {"format": "peft"}],
)
def test_what_is_known_elsewhere_or_no_whole_writer_is_not_tried(more, gemma, team, settings):
    settings.TRIAL_COMMAND = ["/no/such/program"]
    row = gemma(team.workspace, **more)
    assert not outcomes.to_try(row)
    services.carry_out(row.pk)
    row.refresh_from_db()
    assert "trial" not in row.facts


def test_what_was_trained_from_a_model_has_its_trial(gemma, team):
    base = gemma(team.workspace, facts={"model_type": "phi", "trial": REFUSED})
    tuned = gemma(team.workspace, name="tuned", facts={"model_type": "phi"}, base=base, source="run")
    assert outcomes.untrainable(tuned) == REFUSED["reason"] and "cannot be trained" in outcomes.outcome_text(tuned)


def test_a_refused_model_is_refused_at_its_field(launch, model):  # noqa: F811
    model.facts = {"model_type": "phi", "trial": REFUSED}
    model.save()
    with pytest.raises(ConfigInvalid) as caught:
        launch()
    (problem,) = caught.value.problems
    assert (problem.path, problem.message) == ("model.name", REFUSED["reason"])


@pytest.fixture
def queued_tasks(monkeypatch) -> list[tuple[object, ...]]:
    """The tasks that were queued."""
    told: list[tuple[object, ...]] = []
    monkeypatch.setattr(services, "enqueue", lambda *task: told.append(task))
    return told


@pytest.mark.parametrize(("kind", "times"), [("gemma", 1), ("llama", 0)])
def test_a_registration_asks_for_a_trial(kind, times, api, folder, queued_tasks):  # noqa: F811
    (folder / "config.json").write_text(json.dumps({"architectures": ["ForCausalLM"], "model_type": kind}))
    row = register(api, folder)
    assert queued_tasks == [("workers.endpoints.try_model", row.pk)] * times


def test_a_registration_that_is_refused_asks_for_none(api, folder, queued_tasks):  # noqa: F811
    (folder / "tokenizer.json").unlink()
    assert api.post("/models", {"name": "theirs", "path": str(folder)}).status_code == 422 and queued_tasks == []


@pytest.mark.parametrize("state", ["refused", "not_tried"])
def test_a_trial_can_be_asked_for_again(state, gemma, team, queued_tasks, settings, as_researcher):
    row = gemma(team.workspace, facts={"model_type": "gemma", "trial": REFUSED | {"state": state}})
    page, act, as_reviewer = f"/models/{row.pk}", {"action": "try"}, browser(team.reviewer)
    assert b"Try again" in as_researcher.get(page).content and b"Try again" not in as_reviewer.get(page).content
    assert as_reviewer.post(f"{page}/act", act).status_code == 403 and queued_tasks == []
    for _ in range(2):  # two clicks are one trial
        assert as_researcher.post(f"{page}/act", act).status_code == 302
    assert queued_tasks == [(services.TASK, row.pk)]
    shown = as_researcher.get(page).content
    assert b"has not been tried here yet" in shown and b"Try again" not in shown
    settings.TRIAL_COMMAND = printing(json.dumps(FITS))
    assert services.carry_out(row.pk)
    row.refresh_from_db()
    assert row.facts == {"model_type": "gemma", "trial": FITS}
    assert b"Try again" not in as_researcher.get(page).content


def test_a_trial_is_asked_for_again_over_the_api(gemma, team, queued_tasks, api):
    row = gemma(team.workspace, facts={"model_type": "gemma", "trial": REFUSED})
    assert ApiClient(team.reviewer).post(f"/models/{row.pk}/trial").status_code == 403
    assert ApiClient(team.outsider).post(f"/models/{row.pk}/trial").status_code == 404 and queued_tasks == []
    assert api.post(f"/models/{row.pk}/trial").json()["facts"] == {"model_type": "gemma"}
    assert queued_tasks == [(services.TASK, row.pk)]
    refused = api.post(f"/models/{row.pk}/trial")
    assert refused.status_code == 409 and refused.json()["error"]["code"] == "nothing_to_try"


def test_a_trial_that_took_its_worker_along_is_not_begun_again_by_itself(gemma, team, monkeypatch, settings):
    row = gemma(team.workspace)

    def dies(_):
        raise SystemExit

    with monkeypatch.context() as during, pytest.raises(SystemExit):
        during.setattr(services, "_tried", dies)
        services.carry_out(row.pk)
    settings.TRIAL_COMMAND = printing(json.dumps(FITS))
    assert services.carry_out(row.pk) and services.requeue_lost() == 0
    row.refresh_from_db()
    assert row.facts["trial"] == outcomes.BEGUN and outcomes.may_try_again(row)


def test_upkeep_takes_up_a_trial_whose_task_was_lost(gemma, team, queued_tasks):
    first = gemma(team.workspace)
    gemma(team.workspace, name="second")
    others: list[dict[str, Any]] = [
        {"facts": {"model_type": "llama"}},
        {"facts": {}},
        {"facts": {"model_type": "phi", "trial": REFUSED}},
        {"head": "scalar"},
        {"source": "hub"},
        {"format": "peft"},
        {"archived_at": timezone.now()},
    ]
    for number, more in enumerate(others):
        gemma(team.workspace, name=f"other {number}", **more)
    assert services.requeue_lost() == 0, "its task has just been queued"
    RegisteredModel.objects.update(created_at=timezone.now() - timedelta(minutes=9))
    assert services.requeue_lost() == 1 and queued_tasks == [(services.TASK, first.pk)]
    RegisteredModel.objects.exclude(name__startswith="other").update(facts={"model_type": "phi", "trial": FITS})
    assert services.requeue_lost() == 0


@pytest.mark.django_db(transaction=True)
def test_one_model_is_tried_at_a_time(gemma, team, settings, monkeypatch):
    settings.TRIAL_COMMAND = ["/no/such/program"]
    row, took = gemma(team.workspace), []

    def other() -> None:
        with locks.exclusive(locks.Work.MODEL_TRIAL, 0) as ours:
            took.append(ours)
            held.set()
            go.wait(30)
        connection.close()

    held, go = threading.Event(), threading.Event()
    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert held.wait(30) and took == [True]
        assert services.carry_out(row.pk) is False and services.requeue_lost() == 0
        again = []
        monkeypatch.setattr(try_model, "retry", lambda **how: again.append(how) or Retry())
        with pytest.raises(Retry):
            try_model(row.pk)
        assert again == [{"countdown": services.AGAIN_S}]
        row.refresh_from_db()
        assert "trial" not in row.facts
    finally:
        go.set()
        thread.join(30)
    assert services.carry_out(row.pk) is True


def test_a_reward_model_begins_with_an_architecture_that_takes_a_head(gemma, team, launch):  # noqa: F811
    known = gemma(team.workspace, name="known", facts={"model_type": "llama"})
    other = gemma(team.workspace, facts={"model_type": "gemma", "trial": FITS})

    def scores(row):
        return [use.url for use in uses.uses_of(row) if "recipe=reward_model" in use.url]

    assert scores(known) and not scores(other)
    assert {use.title for use in uses.uses_of(other)} >= {"Base", "Judge", "Writer"}
    with pytest.raises(ConfigInvalid) as caught:
        launch(recipe="reward_model", config={"steps": 4, "model": {"name": "gemma"}})
    told = [problem for problem in caught.value.problems if problem.path == "model.name"]
    assert ["'gemma' is not supported here" in problem.message for problem in told] == [True]
