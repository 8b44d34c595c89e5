"""An unknown key names the field that was meant."""

import pytest

from trainer.config import RECIPES, ConfigInvalid, resolve


@pytest.mark.parametrize(
    ("given", "path", "near"),
    [
        ({"optmi": {"lr": 1e-4}}, "optmi", "optim"),
        ({"optim": {"learning_rat": 1e-4}}, "optim.learning_rat", ""),
        ({"optim": {"warmup_step": 1}}, "optim.warmup_step", "optim.warmup_steps"),
        ({"lr": 1e-4}, "lr", "optim.lr"),
        ({"group_size": 4}, "group_size", "rollout.group_size"),
        ({"rewards": [{"kind": "rubric", "wieght": 2.0}]}, "rewards.0.wieght", "rewards.0.weight"),
        ({"objective": {"name": "grpo", "kl_bta": 0.1}}, "objective.kl_bta", "objective.kl_beta"),
        ({"objective": {"name": "gspo", "pop_high": 2.0}}, "objective.pop_high", ""),
        ({"zzz": 1}, "zzz", ""),
    ],
)
def test_an_unknown_key_names_the_field_that_was_meant(given, path, near):
    with pytest.raises(ConfigInvalid) as refused:
        resolve("policy", {**RECIPES["policy"].example, **given})
    told = {problem.path: problem.message for problem in refused.value.problems}
    assert told[path] == (f"unknown key; did you mean {near}?" if near else "unknown key")
