"""The section `runner`: combinations that are refused. A synchronous run uses nothing of the section."""

from typing import Any

import pytest

from trainer.config import ConfigInvalid, PolicyConfig, resolve


def problems(runner: dict[str, Any], **config: Any) -> list[str]:
    try:
        resolve("policy", config | {"runner": runner})
    except ConfigInvalid as error:
        return [problem.path for problem in error.problems]
    return []


def test_runs_are_synchronous_unless_they_ask() -> None:
    plain: Any = resolve("policy", {})
    assert plain.runner.kind == "sync"
    assert problems({"kind": "async"}) == []


@pytest.mark.parametrize(
    ("runner", "config", "field"),
    [
        ({"ahead": 4, "max_staleness": 2}, {}, "runner.max_staleness"),
        ({"ahead": 2, "push_every": 3}, {}, "runner.max_staleness"),
        ({"policy": "dora", "push_every": 4}, {}, "runner.push_every"),
        ({"policy": "april", "push_every": 4}, {}, "runner.push_every"),
        ({"policy": "april", "segment_tokens": 64}, {}, "runner.segment_tokens"),
        ({"segment_tokens": 8}, {}, "runner.segment_tokens"),
        ({"policy": "april", "segment_tokens": 8}, {"rollout": {"stop": ["END"]}}, "runner.segment_tokens"),
        ({}, {"objective": {"name": "grpo", "advantage": "remax"}}, "objective.advantage"),
        ({"quotas": [{"domain": "law"}]}, {"scaffold": None}, "runner.quotas"),
        ({"policy": "dora", "quotas": [{"domain": "law"}]}, {}, "runner.quotas"),
        (
            {"policy": "dora", "quotas": [{"domain": "law"}, {"domain": "law"}]},
            {"scaffold": None},
            "runner.quotas.1.domain",
        ),
        ({"policy": "dora", "quotas": [{"domain": "a", "share": 0.0}]}, {"scaffold": None}, "runner.quotas.0.share"),
        (
            {"policy": "dora", "quotas": [{"domain": "law", "share": 9.0}, {"domain": "medicine"}]},
            {"scaffold": None, "rollout": {"prompts_per_step": 2}},
            "runner.quotas.1.share",
        ),
        ({"workers": 0}, {}, "runner.workers"),
        ({"threads": 2}, {}, "runner.threads"),
    ],
)
def test_what_cannot_work_is_refused_at_its_field(runner: dict[str, Any], config: dict[str, Any], field: str) -> None:
    assert problems({"kind": "async"} | runner, **config) == [field]


def test_a_synchronous_run_is_not_judged_by_what_it_does_not_use() -> None:
    assert problems({"ahead": 9, "push_every": 99, "segment_tokens": 999}) == []


OAPL: dict[str, Any] = {"objective": {"name": "oapl"}, "scaffold": None}


@pytest.mark.parametrize(
    ("runner", "config", "field"),
    [
        ({"kind": "offline"}, OAPL, "runner.push_every"),
        ({"kind": "offline", "push_every": 15}, OAPL, "runner.push_every"),
        ({"kind": "offline", "push_every": 10, "round_epochs": 7}, OAPL, "runner.round_epochs"),
        ({"kind": "offline", "push_every": 10, "later_round_epochs": 7}, OAPL, "runner.later_round_epochs"),
        (
            {"kind": "offline", "push_every": 20, "later_round_epochs": 2},
            OAPL | {"steps": 20},
            "runner.later_round_epochs",
        ),
        ({"kind": "offline", "push_every": 10, "later_round_epochs": 0}, OAPL, "runner.later_round_epochs"),
        ({"kind": "offline", "push_every": 20, "one_step_off": True}, OAPL, "runner.one_step_off"),
        ({"kind": "offline", "push_every": 20, "replay": 2}, OAPL, "runner.replay"),
        ({"kind": "offline", "push_every": 20}, OAPL | {"rollout": {"replace_flat": 1}}, "rollout.replace_flat"),
        ({"kind": "async", "one_step_off": True}, OAPL, "runner.one_step_off"),
        ({"push_every": 2, "one_step_off": True}, {}, "runner.one_step_off"),
        ({"replay": 2}, OAPL, "runner.replay"),
        ({"replay": 2, "push_every": 10}, {}, "runner.replay"),
        ({"replay": 2, "push_every": 10}, OAPL | {"rollout": {"replace_flat": 1}}, "runner.replay"),
    ],
)
def test_reuse_that_cannot_work_is_refused_at_its_field(
    runner: dict[str, Any], config: dict[str, Any], field: str
) -> None:
    assert field in problems(runner, **config)


@pytest.mark.parametrize(
    ("runner", "config"),
    [
        ({"kind": "offline", "push_every": 20}, OAPL),
        ({"kind": "offline", "push_every": 20, "round_epochs": 4, "solved_above": None}, {}),
        ({"kind": "offline", "push_every": 20, "round_epochs": 1, "later_round_epochs": 4}, OAPL),
        ({"one_step_off": True}, {"objective": {"name": "grpo", "decoupled": True}, "scaffold": None}),
        ({"replay": 2, "push_every": 10}, OAPL),
    ],
)
def test_reuse_as_published_is_accepted(runner: dict[str, Any], config: dict[str, Any]) -> None:
    assert problems(runner, **config) == []


def test_the_form_is_told_what_a_round_asks() -> None:
    raw: dict[str, Any] = {
        "steps": 40,
        "rollout": {"prompts_per_step": 4, "group_size": 8},
        "runner": {"kind": "offline", "push_every": 20, "round_epochs": 2},
    }
    amounts = {amount.label: amount.value for amount in PolicyConfig.amounts(raw)}
    assert amounts["Rounds"] == 2 and amounts["Prompts per round"] == 40
    raw["runner"]["later_round_epochs"] = 4
    amounts = {amount.label: amount.value for amount in PolicyConfig.amounts(raw)}
    assert amounts["Prompts per round"] == 40 and amounts["Prompts per later round"] == 20
    assert "Rounds" not in {amount.label for amount in PolicyConfig.amounts({"steps": 40})}
