"""The forecast on the launch form. A run that certainly does not fit into memory is refused before it is in any queue; one that does not fit
by the forecast is launched with a warning."""

import json
from dataclasses import asdict

import pytest
from django.core.cache import cache

from tests.trainer.memory.shapes import QWEN_7B
from trainer.config import ConfigInvalid, resolve
from webapp.core.distributed import cluster
from webapp.experiments.launch import memory
from webapp.experiments.launch.forms import RunForm
from webapp.experiments.models import LogLine

GIB = 2**30
H100 = cluster.Node(cpus=16, gpus=1, memory=128 * GIB, card_memory=80 * GIB, card="NVIDIA H100")
FULL = {"model": {"lora": None}, "scaffold": None}


@pytest.fixture
def seven(model, tmp_path):
    """A model of 7.6 billion parameters. Only its description is here."""
    (tmp_path / "config.json").write_text(json.dumps(QWEN_7B))
    model.path = str(tmp_path)
    model.save()
    return model


@pytest.fixture
def has(db):
    def _has(*nodes):
        cache.set(cluster.KEY, [asdict(node) for node in nodes])

    yield _has
    cache.delete(cluster.KEY)


def test_a_run_that_does_not_fit_the_card_is_refused_at_the_field_that_helps_first(launch, seven, has):
    has(H100)
    with pytest.raises(ConfigInvalid) as refused:
        launch(config=FULL)
    (problem,) = refused.value.problems
    assert problem.path == "optim.recompute_activations" or problem.path.startswith(("optim.", "model.", "sampler."))
    assert "NVIDIA H100 has 80.0" in problem.message and "train adapters (model.lora)" in problem.message

    assert problem.message.startswith("its weights, gradients and moments alone need")


LARGE = {"optim": {"micro_batch_tokens": 65536}, "scaffold": None}


def on_processors(gib):
    return cluster.Node(cpus=8, memory=gib * GIB, lends=gib * GIB)


def test_a_run_that_does_not_fit_by_the_forecast_is_launched_with_a_warning(launch, seven, has):
    has(on_processors(64))
    run = launch(config=LARGE)
    found = resolve(run.recipe, run.config)
    forecast = memory.shown_forecast(found, seven)
    assert run.state == "queued" and not forecast.fits and forecast.found.possible
    assert forecast.warning.startswith("By the forecast, the run needs about")
    assert "the cluster's largest machine has 64.0. In this order: set optim.micro_batch_tokens to" in forecast.warning
    assert "runs alone. It may end for lack of memory" in forecast.warning
    (line,) = LogLine.objects.filter(run=run)
    assert (line.level, line.message) == ("warning", f"{forecast.warning}.")


def test_on_a_card_nothing_is_said_of_running_alone(seven, has):
    has(cluster.Node(cpus=8, gpus=1, memory=128 * GIB, card_memory=64 * GIB, card="A"))
    told = memory.warning(resolve("policy", LARGE), seven)
    assert "because a forecast can be wrong. It may end" in told and "alone" not in told


@pytest.mark.parametrize(
    ("machines", "config"), [((64,) * 16, LARGE), ((64,), LARGE | {"resources": {"memory_gb": 2}})]
)
def test_it_is_said_to_run_alone_only_where_the_line_sees_to_it(seven, has, machines, config):
    has(*map(on_processors, machines))
    told = memory.warning(resolve("policy", config), seven)
    assert "because a forecast can be wrong. It may end" in told and "alone" not in told


@pytest.mark.parametrize(("rounded", "certain"), [("int8", False), ("model", True)])
def test_rounded_weights_of_the_sampler_are_not_certain_to_be_as_large(seven, has, rounded, certain):
    has(on_processors(64))
    config = FULL | {"model": {"lora": {"rank": 8}}, "sampler": {"precision": rounded, "push": "merged"}}
    found = memory.shown_forecast(resolve("policy", config), seven).found
    weights = [part for process in found.processes for part in process.parts if part.label == "Sampler's weights"]
    assert {part.exact for part in weights} == {certain}


def test_a_run_that_certainly_does_not_fit_the_machine_is_refused(launch, seven, has):
    has(on_processors(16))
    with pytest.raises(ConfigInvalid) as refused:
        launch(config=LARGE)
    (problem,) = refused.value.problems
    assert problem.message.startswith("its weights, gradients and moments alone need") and "has 16.0" in problem.message
    assert memory.shown_forecast(resolve("policy", LARGE), seven).warning == "", "a refusal is no warning"


def test_the_form_warns_and_launches(client, team, version, seven, has):
    client.force_login(team.researcher.user)
    has(on_processors(64))
    shown = " ".join(client.get("/runs/new?recipe=policy").content.decode().split())
    assert "Launch anyway" in shown and "By the forecast, the run needs about" in shown
    has(on_processors(512))
    plain = client.get("/runs/new?recipe=policy").content.decode()
    assert "Launch anyway" not in plain and "Launch run" in plain


def test_the_api_says_it_before_and_after_the_launch(as_researcher, version, seven, has):
    has(on_processors(64))
    send = {"recipe": "policy", "config": LARGE, "dataset": "demo"}
    checked = as_researcher.post(
        "/api/v1/recipes/policy/check", {"config": LARGE, "dataset": "demo"}, content_type="application/json"
    )
    launched = as_researcher.post("/api/v1/runs", send, content_type="application/json")
    assert (checked.status_code, launched.status_code) == (200, 201)
    (warning,) = launched.json()["warnings"]
    assert checked.json()["warnings"] == [warning] and warning.startswith("By the forecast")
    forked = as_researcher.post(
        f"/api/v1/runs/{launched.json()['id']}/fork",
        {
            "config": {
                "optim": {"micro_batch_tokens": 2048},
                "model": {"dtype": "bfloat16"},
                "sampler": {"max_batch": 1},
            }
        },
        content_type="application/json",
    )
    assert forked.status_code == 201 and forked.json()["warnings"] == []


def test_the_advice_followed_makes_it_launch(launch, seven, has):
    has(H100)
    assert launch(config={"scaffold": None, "model": {"dtype": "bfloat16"}, "optim": {"recompute_activations": True}})


@pytest.mark.parametrize(
    "nodes", [(), (cluster.Node(cpus=2),), (cluster.Node(gpus=1),)], ids=["silent", "host", "card"]
)
def test_nothing_is_refused_where_the_size_of_the_machine_is_not_known(launch, seven, has, nodes):
    has(*nodes)
    assert launch(config=FULL)
    assert memory.device() is None


def test_nothing_is_refused_where_the_models_files_are_elsewhere(launch, model, has):
    has(H100)
    assert launch(config=FULL)


def test_the_form_shows_the_forecast_and_where_it_would_run(client, team, version, seven, has):
    client.force_login(team.researcher.user)
    has(H100)
    shown = client.get("/runs/new?recipe=policy").content.decode()
    assert "about " in shown and "of 80.0 GiB of NVIDIA H100" in shown and "Sampler&#x27;s cache" in shown


def test_the_form_says_why_there_is_no_forecast(team, version, model, has):
    form = RunForm.blank(team.researcher)
    assert form.memory.unknown == "the model's files are not on this machine"
    form.raw["steps"] = "many"
    assert RunForm(team.researcher, raw=form.raw).memory.unknown == "shown when the config is valid"


def test_a_run_that_does_not_fit_opens_the_numbers_and_says_so(team, version, seven, has):
    has(H100)
    form = RunForm.blank(team.researcher)
    form.raw["model"]["lora"] = None
    assert not form.memory.fits
    assert not form.check() and len(form.problems) == 1


def test_without_a_gpu_a_run_goes_to_the_machine_with_most_memory(has):
    has(cluster.Node(cpus=2, memory=8 * GIB), cluster.Node(cpus=2, memory=23 * GIB))
    assert memory.device().memory == 23 * GIB


@pytest.mark.parametrize(
    ("number", "shown"), [(1536, "2 KiB"), (3 << 20, "3 MiB"), (5 * GIB // 2, "2.5 GiB"), (1 << 10, "1 KiB")]
)
def test_small_parts_are_not_rounded_to_nothing(number, shown):
    assert memory._size(number) == shown
