"""Runs that can train together, and the reasons why others cannot."""

from typing import Any

import pytest

from trainer.config import resolve
from trainer.config.together import why_apart

SFT: dict[str, Any] = {"data": {"source": "references"}}


def test_what_does_not_change_the_base_may_differ() -> None:
    changes: list[dict[str, Any]] = [
        {"optim": {"lr": 1e-3}},
        {"model": {"lora": {"rank": 2, "alpha": 4}}, "seed": 3, "steps": 9},
        {"objective": {"name": "grpo", "kl_beta": 0.1}, "sampler": {"push": "adapters"}},
    ]
    assert why_apart("policy", [resolve("policy", change) for change in changes]) == ""
    assert why_apart("sft", [resolve("sft", SFT), resolve("sft", SFT | {"batch_size": 3})]) == ""


@pytest.mark.parametrize(
    ("recipe", "change", "why"),
    [
        ("sft", {"model": {"lora": None}}, "model.lora is empty"),
        ("sft", {"model": {"dtype": "bfloat16"}}, "model.dtype differs (bfloat16, float32)"),
        ("policy", {"optim": {"processes": 2}}, "optim.processes is 2"),
        ("policy", {"runner": {"kind": "async"}}, "runner.kind is 'async'"),
        ("policy", {"sampler": {"kind": "vllm"}}, "sampler.kind is 'vllm'"),
        ("reward_model", {}, "runs of recipe 'reward_model' cannot train together; sft, policy and dpo can"),
    ],
)
def test_what_shares_no_base_says_why(recipe: str, change: dict[str, Any], why: str) -> None:
    base: dict[str, Any] = SFT if recipe == "sft" else {}
    assert why_apart(recipe, [resolve(recipe, base), resolve(recipe, base | change)]).startswith(why)
