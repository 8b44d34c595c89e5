"""Models of other architectures are tried when they are registered, and their page says what came of it."""

import json
import sys

import pytest

from tests.webapp.experiments.conftest import launch, model, version  # noqa: F401 - fixtures
from trainer.config import ConfigInvalid
from webapp.inference import training
from webapp.inference.models import RegisteredModel
from webapp.inference.services import trials

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
def gemma(tmp_path) -> RegisteredModel:
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
def test_what_a_trial_has_measured_stands_on_the_page(told, shown, gemma, cast, client, settings):
    settings.TRIAL_COMMAND = printing(json.dumps(told))
    row = gemma(cast.workspace)
    client.force_login(cast.researcher.user)
    assert "has not been tried here yet" in client.get(f"/models/{row.pk}").content.decode()
    trials.carry_out(row.pk)
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
def test_a_process_that_breaks_is_no_refusal(command, why, gemma, cast, settings):
    settings.TRIAL_COMMAND = command
    row = gemma(cast.workspace)
    trials.carry_out(row.pk)
    row.refresh_from_db()
    assert row.facts["trial"]["state"] == "not_tried" and why in row.facts["trial"]["reason"]
    assert training.untrainable(row) == ""


@pytest.mark.parametrize(
    "more",
    [{"facts": {"model_type": "llama"}}, {"facts": {}}, {"head": "scalar"}, {"source": "hub"}, {"format": "peft"}],
)
def test_what_is_known_elsewhere_or_no_whole_writer_is_not_tried(more, gemma, cast, settings):
    settings.TRIAL_COMMAND = ["/no/such/program"]
    row = gemma(cast.workspace, **more)
    assert not training.to_try(row)
    trials.carry_out(row.pk)
    row.refresh_from_db()
    assert "trial" not in row.facts


def test_what_was_trained_from_a_model_has_its_trial(gemma, cast):
    base = gemma(cast.workspace, facts={"model_type": "phi", "trial": REFUSED})
    tuned = gemma(cast.workspace, name="tuned", facts={"model_type": "phi"}, base=base, source="run")
    assert training.untrainable(tuned) == REFUSED["reason"] and "cannot be trained" in training.words(tuned)


def test_a_refused_model_is_refused_at_its_field(launch, model):  # noqa: F811
    model.facts = {"model_type": "phi", "trial": REFUSED}
    model.save()
    with pytest.raises(ConfigInvalid) as caught:
        launch()
    (problem,) = caught.value.problems
    assert (problem.path, problem.message) == ("model.name", REFUSED["reason"])


def test_a_registration_asks_for_a_trial(gemma, cast, monkeypatch):
    asked = []
    monkeypatch.setattr(trials, "enqueue", lambda *told: asked.append(told))
    row = gemma(cast.workspace)
    trials.start(row)
    trials.start(gemma(cast.workspace, name="known", facts={"model_type": "llama"}))
    assert asked == [("workers.endpoints.try_model", row.pk)]
