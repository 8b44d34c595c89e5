"""What a config of recipe `policy` refuses, and at which field."""

from typing import Any

import pytest

from trainer.config import ConfigInvalid, resolve


@pytest.mark.parametrize(
    ("raw", "path", "message"),
    [
        ({"stepz": 3}, "stepz", "unknown key"),
        ({"optim": {"minibatch_size": 5}}, "optim.minibatch_size", "do not divide"),
        ({"rollout": {"group_size": 1}}, "rollout.group_size", "use at least 2"),
        ({"rewards": [{"name": "a"}, {"name": "a"}]}, "rewards.1.name", "two components"),
        ({"rewards": [{"name": "std"}]}, "rewards.0.name", "choose another"),
        ({"rewards": [{"kind": "overlong", "soft_tokens": 64}]}, "rewards.0.soft_tokens", "not below"),
        ({"steps": 4, "optim": {"warmup_steps": 5}}, "optim.warmup_steps", "longer than the run"),
        ({"scaffold": {"group": "binary", "binary_n": 9}}, "scaffold.binary_n", "larger than the group"),
        ({"scaffold": {"ratio_mode": "corrected"}, "rollout": {"top_p": 0.9}}, "scaffold.ratio_mode", "top_p to 1"),
        ({"optim": {"lr": 0}}, "optim.lr", "greater than 0"),
    ],
)
def test_a_config_that_cannot_work_fails_at_its_field(raw: dict[str, Any], path: str, message: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        resolve("policy", raw)
    assert [(p.path, message in p.message) for p in caught.value.problems] == [(path, True)]


def test_all_problems_come_at_once() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        resolve("policy", {"rollout": {"group_size": 1}, "steps": 4, "optim": {"warmup_steps": 5, "minibatch_size": 3}})
    assert {p.path for p in caught.value.problems} == {
        "rollout.group_size",
        "optim.warmup_steps",
        "optim.minibatch_size",
    }


def test_the_default_config_is_valid_and_complete() -> None:
    config = resolve("policy", {})
    assert resolve("policy", config.model_dump(mode="json")) == config


def test_an_unknown_recipe_names_the_known_ones() -> None:
    with pytest.raises(ConfigInvalid, match="unknown recipe 'x'; known: policy"):
        resolve("x", {})
