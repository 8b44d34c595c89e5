"""The launch form says which device a run would train on. A run that would not use the GPU is refused. The page of the run shows its
device.
"""

import pytest

from tests.pages import page_html
from trainer.config import ConfigInvalid
from trainer.devices import CHOICE
from webapp.core.distributed import cluster
from webapp.core.distributed.cluster import Node, RayCluster
from webapp.experiments.launch import devices
from webapp.experiments.models import Run

H100 = "NVIDIA H100 80GB HBM3"


@pytest.fixture
def card(monkeypatch):
    monkeypatch.delenv(CHOICE, raising=False)
    monkeypatch.setattr(devices, "cards", lambda: [H100])
    monkeypatch.setattr(devices, "built_for_cuda", lambda: False)


@pytest.mark.usefixtures("card")
def test_a_run_that_would_leave_the_card_idle_is_refused_before_it_is_written(launch, monkeypatch):
    with pytest.raises(ConfigInvalid) as refused:
        launch()
    (problem,) = refused.value.problems
    assert problem.path == "model.name" and H100 in problem.message and "`make gpu`" in problem.message
    assert not Run.objects.exists()
    monkeypatch.setenv(CHOICE, "cpu")
    assert launch().state == "queued", "on purpose"


@pytest.mark.usefixtures("card")
def test_vllm_for_the_processor_does_not_move_the_learner_there_without_a_word(launch, vllm_environment, monkeypatch):
    monkeypatch.setattr(devices, "built_for_cuda", lambda: True)
    (vllm_environment / ".installed-0123456789ab").touch()
    with pytest.raises(ConfigInvalid) as refused:
        launch(config={"sampler": {"kind": "vllm"}})
    (problem,) = refused.value.problems
    assert problem.path == "sampler.kind" and "`make gpu`" in problem.message
    assert launch(config={"sampler": {"kind": "local"}}).state == "queued"


@pytest.mark.usefixtures("card")
def test_nothing_is_refused_for_a_cluster_of_ones_own(launch, settings, monkeypatch):
    monkeypatch.setattr(settings.ENV, "trainer_command", "python -m trainer job")
    assert launch().state == "queued"


@pytest.mark.parametrize(
    ("nodes", "value"),
    [(None, "not known yet"), ((Node(cpus=8),), "processors"), ((Node(gpus=2, card_memory=1, card="H200"),), "H200")],
)
def test_of_a_cluster_the_form_says_what_ray_said(nodes, value, settings, monkeypatch):
    monkeypatch.setattr(settings.ENV, "ray_address", "http://ray:8265")
    monkeypatch.setattr(cluster, "last_state", lambda: RayCluster(nodes) if nodes else None)
    assert devices.expected().value == value


def test_here_the_form_says_what_is_here(card, monkeypatch):
    assert devices.expected().value == H100
    monkeypatch.setenv(CHOICE, "cpu")
    assert devices.expected() == devices.Expected("the processor", f"{CHOICE} says so")
    monkeypatch.setattr(devices, "cards", lambda: [])
    assert devices.expected().how == "this machine has no NVIDIA GPU"


def test_what_the_process_says_is_kept_and_shown(trainer, run, client, team):
    trainer.post(trainer.event("devices", learner=H100, sampler=f"vLLM, {H100}"))
    run.refresh_from_db()
    assert (run.learner_device, run.sampler_device) == (H100, f"vLLM, {H100}")
    client.force_login(team.researcher.user)
    page = page_html(client.get(f"/runs/{run.id}"))
    assert f"Trains on {H100} · samples on vLLM, {H100} </p>" in page
