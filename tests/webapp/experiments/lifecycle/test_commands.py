"""The environment in which a run starts. A sampler that is not installed is reported at its field, before the run is written."""

import pytest

from trainer.config import ConfigInvalid
from webapp.experiments.lifecycle import commands
from webapp.experiments.models import Run

VLLM = {"sampler": {"kind": "vllm"}}


def test_a_run_with_vllm_is_refused_at_the_field_until_it_is_installed(launch, vllm_environment):
    for half_made in (False, True):
        if half_made:
            (vllm_environment / "bin").mkdir()
        with pytest.raises(ConfigInvalid) as refused:
            launch(config=VLLM)
        assert [(p.path, "`make vllm`" in p.message) for p in refused.value.problems] == [("sampler.kind", True)]
    assert not Run.objects.exists()
    (vllm_environment / ".installed-0123456789ab").touch()
    assert launch(config=VLLM).state == "queued"


def test_vllm_beside_the_web_server_or_in_a_cluster_with_a_command_of_its_own_will_do(
    launch, vllm_environment, settings, monkeypatch
):
    monkeypatch.setattr(commands, "find_spec", lambda name: object())
    assert launch(config=VLLM).state == "queued"
    monkeypatch.setattr(commands, "find_spec", lambda name: None)
    settings.VLLM_ENVIRONMENT = None
    assert launch(config=VLLM).state == "queued"


@pytest.mark.parametrize("kind", ["local", "vllm_server"])
def test_other_samplers_need_no_vllm_here(launch, vllm_environment, kind):
    assert launch(config={"sampler": {"kind": kind}}).state == "queued"
