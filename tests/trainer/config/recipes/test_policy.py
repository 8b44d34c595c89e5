"""What a config of recipe `policy` refuses, and at which field."""

from typing import Any

import pytest

from trainer.config import ConfigInvalid, resolve, upgrade_stored


@pytest.mark.parametrize(
    ("raw", "path", "message"),
    [
        ({"stepz": 3}, "stepz", "unknown key"),
        ({"optim": {"minibatch_size": 5}}, "optim.minibatch_size", "do not divide"),
        ({"rollout": {"group_size": 1}}, "rollout.group_size", "use at least 2"),
        ({"rewards": [{"name": "a"}, {"name": "a"}]}, "rewards.1.name", "two components"),
        ({"rewards": [{"name": "std"}]}, "rewards.0.name", "choose another"),
        ({"rewards": [{"kind": "overlong", "soft_tokens": 64}]}, "rewards.0.soft_tokens", "must be below"),
        ({"steps": 4, "optim": {"warmup_steps": 5}}, "optim.warmup_steps", "longer than the run"),
        ({"scaffold": {"group": "binary", "binary_n": 9}}, "scaffold.binary_n", "must not be larger than the group"),
        ({"scaffold": {"ratio_mode": "corrected"}, "rollout": {"top_p": 0.9}}, "scaffold.ratio_mode", "top_p to 1"),
        ({"optim": {"lr": 0}}, "optim.lr", "must be more than 0"),
        ({"optim": {"lr": "fast"}}, "optim.lr", "must be a number"),
        ({"steps": 2.5}, "steps", "must be a whole number"),
        ({"steps": 10**30}, "steps", "must be at most 10,000,000"),
        ({"rewards": []}, "rewards", "must have at least one entry"),
        ({"rewards": {}}, "rewards", "must be a list"),
        ({"model": {"name": ""}}, "model.name", "must not be empty"),
        ({"evaluation": 3}, "evaluation", "must be a group of fields"),
        ({"optim": {"recompute_activations": "no way"}}, "optim.recompute_activations", "must be true or false"),
        ({"evaluation": {"samples": 2}}, "evaluation.samples", "same response each time"),
        ({"objective": {"name": "dpo"}}, "objective.name", "must be one of grpo"),
        ({"objective": {"name": "gspo", "pop_high": 2.0}}, "objective.pop_high", "unknown key"),
        ({"objective": {"name": "kimi", "alpha": 2.0}, "scaffold": None}, "objective.alpha", "less than 1"),
        ({"objective": {"name": "icepop", "pop_low": 3.0}, "scaffold": None}, "objective.pop_low", "no ratio is in"),
        ({"objective": {"name": "distill"}, "scaffold": None}, "objective.teacher", "name the model"),
        ({"objective": {"name": "icepop"}}, "scaffold.ratio_mode", "would count as mismatch"),
        (
            {"objective": {"name": "misc"}, "scaffold": {"ratio_mode": "corrected"}},
            "scaffold.ratio_mode",
            "no mismatch",
        ),
        ({"objective": {"decoupled": True}}, "scaffold.ratio_mode", "would count as mismatch"),
        ({"objective": {"name": "oapl"}}, "scaffold.ratio_mode", "divides by what the sampler"),
        ({"objective": {"name": "kimi"}, "scaffold": None, "rollout": {"top_p": 0.9}}, "rollout.top_p", "set 1"),
        (
            {"objective": {"name": "oapl"}, "scaffold": None, "rollout": {"group_size": 1}},
            "rollout.group_size",
            "least 2",
        ),
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


@pytest.mark.parametrize(
    "raw",
    [
        {"objective": {"kl_beta": 0.1}},  # the default objective may be left out
        {"objective": {"name": "gspo", "eps_low": None, "advantage": None}},  # null is the default
        {"objective": {"name": "dr_grpo"}},  # its divisor is the longest response of the run
        {"objective": {"name": "icepop"}, "scaffold": {"ratio_mode": "scaffolded"}},
        {"objective": {"name": "kimi"}, "scaffold": {"ratio_mode": "corrected"}},
        # its baseline does not need another response
        {"objective": {"advantage": "remax"}, "rollout": {"group_size": 1}},
        {"objective": {"name": "distill", "teacher": "big"}, "scaffold": None, "rollout": {"group_size": 1}},
    ],
)
def test_combinations_that_work_are_let_through(raw: dict[str, Any]) -> None:
    config = resolve("policy", raw)
    assert resolve("policy", config.model_dump(mode="json")) == config


def test_a_config_of_before_keeps_its_meaning() -> None:
    """In older configs, weights of `decoupled` had no cap. Before `rollout.truncated` existed, norms and biases were decayed."""
    early = {"objective": {"decoupled": True}, "rollout": {}, "optim": {"weight_decay": 0.1}, "scaffold": None}
    read: Any = resolve("policy", upgrade_stored("policy", early))
    assert (read.objective.weight_cap, read.optim.decay, read.data.unjudged) == (1e9, "all", "refuse")
    later = early | {"objective": {"decoupled": True, "weight_cap": None}, "rollout": {"truncated": "train"}}
    read = resolve("policy", upgrade_stored("policy", later))
    assert (read.objective.weight_cap, read.optim.decay) == (1e9, "matrices")
    now: Any = resolve("policy", early)
    assert (now.objective.weight_cap, now.optim.decay) == (2.0, "matrices")
    assert resolve("policy", upgrade_stored("policy", now.model_dump(mode="json"))) == now
    assert upgrade_stored("policy", {"objective": {"weight_cap": None}}) == {"objective": {}}


def test_every_objective_has_the_defaults_of_its_paper() -> None:
    from trainer.config.objectives.catalogue import CATALOGUE
    from trainer.config.objectives.policy import CHOICES, parameters

    for name in CHOICES:
        config: Any = resolve(
            "policy",
            {"objective": {"name": name, "teacher": "t"} if name == "distill" else {"name": name}, "scaffold": None},
        )
        chosen = config.objective
        given = CATALOGUE[name].parameters.model_validate(parameters(chosen, 64))
        alone = CATALOGUE[name].parameters()
        assert given.model_dump(exclude={"max_tokens"}) == alone.model_dump(exclude={"max_tokens"})
