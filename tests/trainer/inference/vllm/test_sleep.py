"""An engine and the learner share one GPU: which one sleeps when. The engine here only writes down the calls."""

from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.config import resolve
from trainer.inference.build import sleep_level
from trainer.inference.sampling import EngineLost, SampleRequest
from trainer.inference.vllm.memory import CardMemory
from trainer.inference.vllm.sampler import Generated, VllmSampler
from trainer.inference.vllm.v0_32 import arguments
from trainer.memory.shape import GIB

REQUEST = SampleRequest((1, 2), 4)


class Engine:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def generate(self, requests: Any, *_: Any) -> list[Generated]:
        self.calls.append("sample")
        return [Generated((7,), (-0.5,), "stop", ()) for _ in requests]

    def update(self, path: Path, kind: str, version: int) -> None:
        self.calls.append(f"push {kind}")

    def sleep(self, level: int) -> None:
        self.calls.append(f"sleep {level}")

    def wake(self, part: str) -> None:
        self.calls.append(f"wake {part}")

    def checksum(self, names: Any) -> str:
        return "0"

    def close(self) -> None:
        self.calls.append("close")


class Words:
    def decode(self, tokens: Any, **_: Any) -> str:
        return ""


def sampler(engine: Engine, sleeps: Any) -> VllmSampler:
    return VllmSampler(engine, Words(), [7], sleeps=sleeps)  # type: ignore[arg-type]


def push(held: VllmSampler, version: int) -> None:
    held.load_weights([("a.weight", torch.zeros(1))], version)


@pytest.mark.parametrize("level", [1, 2])
def test_weights_wake_for_a_push_and_keys_and_values_only_to_sample(level: Any) -> None:
    engine = Engine()
    held = sampler(engine, level)
    for step in (1, 2):
        push(held, step)
        held.sample([REQUEST])
        held.rest()
        held.rest()
    asleep = [f"sleep {level}"]
    woken = ["wake weights", "push weights", "wake kv_cache", "sample"]
    assert engine.calls == ["push weights", "sample", *asleep, *woken, *asleep]


def test_an_engine_that_kept_its_weights_samples_again_without_a_push() -> None:
    engine = Engine()
    held = sampler(engine, 1)
    held.rest()
    held.sample([REQUEST])
    held.sample([REQUEST])
    assert engine.calls == ["sleep 1", "wake weights", "wake kv_cache", "sample", "sample"]


def test_one_that_forgot_them_does_not() -> None:
    held = sampler(Engine(), 2)
    held.rest()
    with pytest.raises(EngineLost, match="dropped its weights"):
        held.sample([REQUEST])


def test_one_with_memory_of_its_own_never_sleeps() -> None:
    engine = Engine()
    held = sampler(engine, None)
    held.rest()
    held.sample([REQUEST])
    assert engine.calls == ["sample"]


FULL = {"model": {"lora": None}}


@pytest.mark.parametrize(
    ("changes", "device", "level"),
    [
        (FULL, "cuda", 2),
        ({}, "cuda", 1),
        (FULL | {"runner": {"push_every": 2}}, "cuda", 1),
        (FULL | {"runner": {"one_step_off": True}}, "cuda", 1),
        (FULL | {"runner": {"kind": "async"}}, "cuda", None),
        (FULL | {"sampler": {"kind": "vllm_server"}}, "cuda", None),
        (FULL, "cpu", None),
    ],
    ids=["all weights", "adapters", "rare pushes", "one step off", "workers", "a server", "processor"],
)
def test_weights_are_forgotten_only_where_each_step_pushes_all_of_them(
    changes: dict[str, Any], device: str, level: int | None
) -> None:
    config = resolve("policy", {"scaffold": None, "sampler": {"kind": "vllm"}} | changes)
    assert sleep_level(config, device) == level  # type: ignore[arg-type]


def test_an_engine_is_started_for_it_on_a_card_alone(tiny_dir: Path) -> None:
    def wanted(card: CardMemory | None, sleeps: bool) -> dict[str, Any]:
        return arguments(tiny_dir, "float32", 4, 1.0, None, True, card, sleeps)

    card = CardMemory(80 * GIB, 80 * GIB)
    assert wanted(card, True)["enable_sleep_mode"] is True
    assert "enable_sleep_mode" not in wanted(card, False)
    assert "enable_sleep_mode" not in wanted(None, True)
