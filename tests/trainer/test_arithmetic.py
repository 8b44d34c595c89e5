"""All processes compute the same, and there is a warning if a GPU would refuse an operation."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.arithmetic import processes_for, settle_arithmetic
from trainer.devices import CHOICE


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    threads, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    warned = torch.is_deterministic_algorithms_warn_only_enabled()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(strict, warn_only=warned)


@pytest.mark.parametrize("card", [False, True])
def test_a_kernel_without_a_deterministic_form_is_refused_on_a_processor_and_warned_of_on_a_card(
    card: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Top-p sampling uses `cumsum`, which has no deterministic form on CUDA. Without the warning, workers would end at their first token."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: card)
    settle_arithmetic(1)
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.is_deterministic_algorithms_warn_only_enabled() == card
    assert torch.get_num_threads() == 1


def test_threads_come_from_the_environment_where_nobody_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    settle_arithmetic()
    assert torch.get_num_threads() == 2


SMALL: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 261,
}


def directory(tmp_path: Path, name: str, config: str) -> Path:
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.json").write_text(config)
    return tmp_path / name


def test_small_models_compute_with_one_thread_and_others_with_all_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv(CHOICE, raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("trainer.arithmetic.cards", list)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2})
    small = directory(tmp_path, "small", json.dumps(SMALL))
    others = [
        directory(tmp_path, "vocabulary", json.dumps(SMALL | {"vocab_size": 1024})),
        directory(tmp_path, "inner", json.dumps(SMALL | {"intermediate_size": 1024})),
        directory(tmp_path, "unknown", json.dumps(SMALL | {"model_type": "strange"})),
        directory(tmp_path, "broken", "{"),
        tmp_path / "nowhere",
    ]
    for models, threads in [([small], 1), ([small, small], 1), ([], 3), *(([small, other], 3) for other in others)]:
        settle_arithmetic(models=models)
        assert torch.get_num_threads() == threads, models
        assert processes_for(models) == (3 if threads == 1 else 1), models
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    settle_arithmetic(models=[small])
    assert torch.get_num_threads() == 2, "who sets the variable decides"
    assert processes_for([small]) == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert [processes_for([small]), processes_for(others)] == [3, 1]
    monkeypatch.setattr("trainer.arithmetic.cards", lambda: ["an NVIDIA GPU"])
    assert processes_for([small]) == 1
    monkeypatch.setenv(CHOICE, "cpu")
    assert processes_for([small]) == 3
