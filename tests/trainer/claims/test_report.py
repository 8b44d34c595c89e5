"""The report of a claim says how the runs were made."""

from typing import Any

import pytest

from trainer.claims import report
from trainer.metrics.claims import PLANS

ABOUT: dict[str, Any] = {
    "command": "",
    "machine": "",
    "seconds": 0.0,
    "seeds": [1],
    "steps": 3,
    "prompts": 2,
    "problems": [],
}


@pytest.mark.parametrize(("name", "size"), [(plan.name, size) for plan in PLANS.values() for size in plan.sizes])
def test_every_plan_has_a_report_before_it_is_run(name: str, size: Any) -> None:
    plan = PLANS[name]
    text = report.markdown(plan, size, [], {}, ABOUT)
    assert "\n3 steps of " in text, "what was run, not what the plan has"
    assert "AdamW at " in text


@pytest.mark.parametrize("name", PLANS)
def test_steps_that_are_asked_for_are_those_of_every_arm(name: str) -> None:
    plan = PLANS[name]
    for setting in plan.sizes.values():
        assert {plan.config(arm, {**setting.config, "steps": 4}, 0)["steps"] for arm in plan.arms} == {4}


def test_roles_with_a_learning_rate_of_their_own_are_named() -> None:
    own = {"judge": {"optim": {"lr": 5e-4}}, "writer": {}, "optim": {"lr": 1e-3}}
    assert report._rate(own) == "0.0005 (judge) or 0.001 (writer)"
    assert report._rate(own | {"judge": {}}) == "0.001"
