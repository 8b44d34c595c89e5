"""Models of other architectures. A measurement decides which can be trained; the others are refused with the reason."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.loops.conftest import small_config
from tests.trainer.running import run
from trainer.inference import decoders
from trainer.inference.models import ModelInvalid, load_model, load_tokenizer
from trainer.loops.learner.learner import Learner
from trainer.weights import trial

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.1,
    "head_dim": 8,
}
WINDOWED = {"num_hidden_layers": 3, "sliding_window": 16, "layer_types": ["sliding_attention"] * 2 + ["full_attention"]}
FIT: dict[str, dict[str, Any]] = {
    "llama": {},
    "gemma": {},
    "gemma3_text": {**WINDOWED, "query_pre_attn_scalar": 8},
    "phi3": {"sliding_window": None, "rope_scaling": None},
    "phi3 with a window": {"sliding_window": 16},
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "decoder_sparse_step": 1},
}
UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "gemma2": ({**WINDOWED, "query_pre_attn_scalar": 8, "final_logit_softcapping": 1.0}, "not a plain causal one"),
    "phi": ({}, "adds a bias to the logits"),
    "mamba": ({"state_size": 4}, "'mamba'"),
}


@pytest.fixture(scope="module")
def model_folder(tiny_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, dict[str, Any]], Path]:
    """Random weights of an architecture, with the tokenizer of the tiny model."""
    root, tokenizer = tmp_path_factory.mktemp("architectures"), load_tokenizer(tiny_dir)

    def make(name: str, changes: dict[str, Any]) -> Path:
        from transformers import AutoConfig, AutoModelForCausalLM

        folder = root / name.replace(" ", "-")
        if not folder.exists():
            ids = {
                "vocab_size": len(tokenizer),
                "eos_token_id": tokenizer.eos_token_id,
                "pad_token_id": 0,
                "bos_token_id": None,
            }
            config = AutoConfig.for_model(name.split()[0], **SMALL | ids | changes)
            torch.manual_seed(0)
            AutoModelForCausalLM.from_config(config).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        return folder

    return make


@pytest.mark.parametrize("name", FIT)
def test_an_architecture_that_fits_is_packed_adapted_and_sampled(name: str, model_folder: Any) -> None:
    told = trial.tried(model_folder(name, FIT[name]))
    assert told["state"] == "fits", told
    assert told["path"] == ("grouped" if name == "llama" else "generic")
    assert told["largest"] < 1e-3 and told["mean"] < 1e-4 and told["sampler"] < 1e-4
    assert told["tokens"] > 60 and told["adapters"] >= 2


@pytest.mark.parametrize("name", UNFIT)
def test_one_that_does_not_is_refused_with_the_reason(name: str, model_folder: Any) -> None:
    changes, reason = UNFIT[name]
    told = trial.tried(model_folder(name, changes))
    assert told["state"] == "refused" and reason in told["reason"], told


def test_a_run_refuses_what_a_trial_would(model_folder: Any, examples_file: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelInvalid, match="not a plain causal one"):
        Learner(load_model(model_folder("gemma2", UNFIT["gemma2"][0])), small_config())


def test_a_window_that_is_left_out_is_noticed(model_folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compared text is longer than the window, so a mask without the window cannot pass."""
    model = load_model(model_folder("gemma3_text", FIT["gemma3_text"])).eval()
    decoders.compared(model)
    monkeypatch.setattr(decoders, "masks", lambda config, seen, distance: {decoders.FULL: seen, decoders.SLIDING: seen})
    with pytest.raises(ModelInvalid, match="differ by up to"):
        decoders.compared(model)


@pytest.mark.parametrize("name", ["gemma3_text", "qwen3_moe"])
def test_a_policy_trains_on_the_generic_path(name: str, model_folder: Any, examples_file: Path, tmp_path: Path) -> None:
    config = small_config(steps=2, evaluation={"every": 0, "max_examples": 2}, model={"lora": None})
    assert run(config, examples_file, model_folder(name, FIT[name]), tmp_path / "run"), (
        tmp_path / "run" / "events.jsonl"
    ).read_text()


def test_what_does_not_fit_in_memory_is_not_tried_and_says_so(
    model_folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "free_bytes", lambda: 1_000_000)
    told = trial.tried(model_folder("gemma", {}))
    assert told["state"] == "not_tried" and "GB are free" in told["reason"]


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), "not_tried"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"), "not_tried"),
        (MemoryError(), "not_tried"),
        (OSError(116, "Stale file handle"), "not_tried"),
        (ImportError("tiktoken is not there"), "not_tried"),
        (RuntimeError("The size of tensor a (3) must match"), "refused"),
        (IndexError("index out of range"), "refused"),
    ],
)
def test_trouble_of_the_moment_refuses_nothing(
    error: Exception, state: str, model_folder: Any, monkeypatch: Any
) -> None:
    def fails(folder: Path) -> dict[str, Any]:
        raise error

    def wraps(folder: Path) -> dict[str, Any]:
        raise ModelInvalid(f"{folder}: it cannot be loaded") from error

    for measured in (fails, wraps):
        monkeypatch.setattr(trial, "_measured", measured)
        told = trial.tried(model_folder("gemma", {}))
        assert told["state"] == state and told["reason"], told


def test_a_trial_takes_no_more_memory_than_it_may(model_folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_measured", lambda folder: {"taken": torch.empty(6_000_000_000, dtype=torch.uint8)})
    told = trial.tried(model_folder("gemma", {}))
    assert told["state"] == "not_tried" and "allocate memory" in told["reason"], told
    assert torch.empty(6_000_000_000, dtype=torch.uint8).numel(), "the limit goes with the trial"


def test_the_command_prints_one_object(model_folder: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert trial.try_model([str(model_folder("phi", {}))]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "refused"
