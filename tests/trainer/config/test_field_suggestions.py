"""The message at an unknown key names the field that was meant, or the fields that there are."""

import pytest

from trainer.config import RECIPES, ConfigInvalid, resolve


@pytest.mark.parametrize(
    ("given", "path", "near"),
    [
        ({"optmi": {"lr": 1e-4}}, "optmi", "optim"),
        ({"optim": {"warmup_step": 1}}, "optim.warmup_step", "optim.warmup_steps"),
        ({"lr": 1e-4}, "lr", "optim.lr"),
        ({"group_size": 4}, "group_size", "rollout.group_size"),
        ({"rewards": [{"kind": "rubric", "wieght": 2.0}]}, "rewards.0.wieght", "rewards.0.weight"),
        ({"objective": {"name": "grpo", "kl_bta": 0.1}}, "objective.kl_bta", "objective.kl_beta"),
    ],
)
def test_an_unknown_key_names_the_field_that_was_meant(given, path, near):
    with pytest.raises(ConfigInvalid) as refused:
        resolve("policy", {**RECIPES["policy"].example, **given})
    told = {problem.path: problem.message for problem in refused.value.problems}
    assert told[path] == f"unknown key; did you mean {near}?"


@pytest.mark.parametrize(
    ("given", "path", "fields"),
    [
        ({"optim": {"learning_rat": 1e-4}}, "optim.learning_rat", ("lr", "warmup_steps")),
        ({"zzz": 1}, "zzz", ("steps", "seed", "optim", "rollout", "rewards")),
    ],
)
def test_an_unknown_key_like_no_field_is_told_the_fields_that_there_are(given, path, fields):
    with pytest.raises(ConfigInvalid) as refused:
        resolve("policy", {**RECIPES["policy"].example, **given})
    (said,) = [problem.message for problem in refused.value.problems if problem.path == path]
    named = said.removeprefix("unknown key; here are ").partition(" (")[0].split(", ")
    assert set(fields) <= set(named) and path not in named, said
    assert said.endswith("(GET /api/v1/recipes/policy/schema lists all)")


@pytest.mark.parametrize(
    ("given", "path", "fields", "foreign"),
    [
        ({"rewards": [{"kind": "rubric", "zzz": 1}]}, "rewards.0.zzz", {"kind", "judge", "weight"}, {"form", "entry"}),
        ({"rewards": [{"kind": "format", "zzz": 1}]}, "rewards.0.zzz", {"kind", "form", "weight"}, {"judge", "entry"}),
        ({"objective": {"name": "gspo", "zzz": 1}}, "objective.zzz", {"name", "eps_low"}, {"pop_high", "teacher"}),
        ({"objective": {"name": "icepop", "zzz": 1}}, "objective.zzz", {"name", "pop_high"}, {"teacher"}),
    ],
)
def test_only_fields_of_the_chosen_kind_are_listed(given, path, fields, foreign):
    with pytest.raises(ConfigInvalid) as refused:
        resolve("policy", {**RECIPES["policy"].example, **given})
    (said,) = [problem.message for problem in refused.value.problems if problem.path == path]
    named = set(said.removeprefix("unknown key; here are ").partition(" (")[0].split(", "))
    assert fields <= named and not foreign & named, said


def test_a_key_of_another_kind_of_the_section_is_told_so():
    with pytest.raises(ConfigInvalid) as refused:
        resolve("policy", {**RECIPES["policy"].example, "objective": {"name": "gspo", "pop_high": 2.0}})
    told = {problem.path: problem.message for problem in refused.value.problems}
    assert told["objective.pop_high"] == "unknown key; only another kind of this section has it"
