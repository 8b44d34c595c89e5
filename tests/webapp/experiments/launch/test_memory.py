"""The forecast on the launch form. A run that does not fit into memory is refused before it is in any queue."""

import json
from dataclasses import asdict

import pytest
from django.core.cache import cache

from tests.trainer.memory.shapes import QWEN_7B
from trainer.config import ConfigInvalid
from webapp.core.distributed import cluster
from webapp.experiments.launch import memory
from webapp.experiments.launch.forms import RunForm

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
