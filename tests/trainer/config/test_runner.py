"""The section `runner`: which combinations are refused, and that a synchronous run uses none of it."""

from typing import Any

import pytest

from trainer.config import ConfigInvalid, resolve


def problems(runner: dict[str, Any], **config: Any) -> list[str]:
    try:
        resolve("policy", config | {"runner": runner})
    except ConfigInvalid as error:
        return [problem.path for problem in error.problems]
    return []


def test_runs_are_synchronous_unless_they_ask() -> None:
    assert resolve("policy", {}).runner.kind == "sync"
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
