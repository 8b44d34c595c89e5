"""A machine's GPU is found without torch, and a run that does not use it says so."""

from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer import devices
from trainer.config import resolve
from trainer.inference.models import best_device
from trainer.loops.session import devices as where
from trainer.loops.session.errors import RunFailed

H100 = "NVIDIA H100 80GB HBM3"


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(devices.CHOICE, raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_cards_are_those_that_the_driver_names(tmp_path: Path) -> None:
    assert devices.cards(tmp_path) == []
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        (tmp_path / "dev" / name).touch()
    assert devices.cards(tmp_path) == ["an NVIDIA GPU"], "WSL and some containers have no names"
    told = tmp_path / "proc" / "driver" / "nvidia" / "gpus" / "0000:01:00.0" / "information"
    told.parent.mkdir(parents=True)
    told.write_text(f"Model: \t\t {H100}\nIRQ:   \t\t 42\n")
    assert devices.cards(tmp_path) == [H100]


@pytest.mark.parametrize(("version", "cuda"), [("cuda: Optional[str] = '13.0'\n", True), ("cuda = None\n", False)])
def test_a_build_of_torch_is_told_without_loading_it(
    version: str, cuda: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text(version)

    class Installed:
        def locate_file(self, name: str) -> Path:
            return tmp_path / name

    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    assert devices.built_for_cuda() is cuda


def with_card(monkeypatch: pytest.MonkeyPatch, found: list[str], cuda: str | None, seen: bool = False) -> None:
    monkeypatch.setattr(where, "cards", lambda: found)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: seen)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: H100)


def test_a_run_says_what_it_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with_card(monkeypatch, [], None)
    assert where.settle_device() == "the processor"
    with_card(monkeypatch, [H100], "13.0", seen=True)
    assert where.settle_device() == H100


@pytest.mark.parametrize(
    ("cuda", "said"),
    [
        (None, r"is a build without CUDA.*run `make gpu`"),
        ("13.0", r"for CUDA 13.0 does not find it.*upgrade its driver"),
    ],
)
def test_a_run_that_would_leave_the_card_idle_ends_with_the_remedy(
    cuda: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_card(monkeypatch, [H100], cuda)
    with pytest.raises(RunFailed, match=said):
        where.settle_device()


@pytest.mark.parametrize(
    ("dtype", "processor", "said"),
    [
        ("bfloat16", {"avx2": True, "avx512_f": True}, True),
        ("bfloat16", {"avx512_bf16": True}, False),
        ("bfloat16", {"amx_bf16": True}, False),
        ("float32", {}, False),
    ],
)
def test_a_precision_that_the_processor_has_no_arithmetic_for_is_said(
    dtype: str, processor: dict[str, bool], said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_card(monkeypatch, [], None)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: processor)
    config = resolve("policy", {"model": {"dtype": dtype}})
    assert ("many times slower than float32" in where.slow_precision(config)) is said
    with_card(monkeypatch, [H100], "13.0", seen=True)
    assert where.slow_precision(config) == ""


@pytest.mark.parametrize(("name", "value"), [(devices.CHOICE, "cpu"), ("CUDA_VISIBLE_DEVICES", "")])
def test_the_processor_can_be_chosen_and_that_is_said(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_card(monkeypatch, [H100], None)
    monkeypatch.setenv(name, value)
    assert (
        where.settle_device().startswith(f"the processor, though there is {H100}: ") and name in where.settle_device()
    )
    assert devices.idle([H100], False) == ""


def test_who_chooses_the_processor_gets_it_where_torch_finds_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert best_device() == "cuda"
    monkeypatch.setenv(devices.CHOICE, "cpu")
    assert best_device() == "cpu"


def test_only_a_build_without_cuda_beside_a_card_is_idle() -> None:
    assert "run `make gpu`" in devices.idle([H100], False)
    assert [devices.idle([], False), devices.idle([H100], True), devices.idle([H100], None)] == ["", "", ""]


@pytest.mark.parametrize(
    ("recipe", "config", "told"),
    [
        ("policy", {}, (H100, H100)),
        ("policy", {"optim": {"processes": 4}}, ("4 processes of the Ray cluster", H100)),
        ("policy", {"runner": {"kind": "async", "workers": 2}}, (H100, "2 workers of the Ray cluster")),
        ("policy", {"sampler": {"kind": "vllm"}}, (H100, f"vLLM, {H100}")),
        (
            "policy",
            {"sampler": {"kind": "vllm_server", "url": "http://gpu1:8001"}},
            (H100, "the vLLM server at gpu1:8001"),
        ),
        ("sft", {}, (H100, None)),
    ],
)
def test_learner_and_sampler_are_told_apart(recipe: str, config: dict[str, Any], told: tuple[str, str | None]) -> None:
    learner, sampler = where.devices(resolve(recipe, config), H100)
    assert learner == told[0] and (told[1] is None or sampler == told[1])


def test_a_worker_warns_of_kernels_on_a_card_that_have_no_deterministic_form(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sampling uses `cumsum`. If this were an error and not a warning, the actor would end at its first token."""
    from trainer.runners import ray_fleet

    asked: list[tuple[bool, bool]] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(
        torch, "use_deterministic_algorithms", lambda on, warn_only=False: asked.append((on, warn_only))
    )
    monkeypatch.setattr("trainer.inference.build.build_sampler", lambda *_: None)
    monkeypatch.setattr("trainer.inference.models.load_tokenizer", lambda folder: None)
    threads = torch.get_num_threads()
    actor = ray_fleet.RolloutActor.__ray_metadata__.modified_class  # type: ignore[attr-defined]
    try:
        actor.__init__(object.__new__(actor), str(tmp_path), resolve("policy", {}), 1)
    finally:
        torch.set_num_threads(threads)
    assert asked == [(True, True)]
