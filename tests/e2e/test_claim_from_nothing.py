"""A claim on the real stack without data and without a model: one request leads to a verdict."""

import pytest

from tests.e2e.tiny import eventually
from tests.stack import Stack
from trainer.metrics.claims import PLANS
from trainer.metrics.claims.plan import merge_config

pytestmark = [pytest.mark.stack, pytest.mark.slow]

STEPS = 2
PLAN = PLANS["rationale"]
SMALL = {"steps": STEPS, "rollout": {"prompts_per_step": 2, "group_size": 4}, "evaluation": {"max_examples": 12}}


def test_one_request_makes_the_task_trains_every_arm_and_decides(stack: Stack):
    api = stack.api()
    begun = api.post("claims", json={"plan": PLAN.name, "seeds": 2, "config": merge_config(PLAN.shared, SMALL)})
    assert begun.status_code == 201, begun.text
    address = f"claims/{begun.json()['id']}"
    assert begun.json()["state"] == "waiting"
    job = begun.json()["making"]["job"]
    launched = eventually(lambda: api.get(address).json(), lambda study: study["state"] != "waiting", stack, 400)
    assert launched["state"] == "launched", launched
    over = eventually(
        lambda: api.get(address).json(), lambda study: study["finished"] == study["runs"], stack, 600, every_s=1
    )
    made = api.get(f"weights-jobs/{job}").json()
    assert made["state"] == "finished" and made["outcome"]["examples"] > 0, made
    assert {row["state"] for row in over["table"]} == {"finished"}
    assert {(row["arm"], row["seed"]) for row in over["table"]} == {
        (arm, seed) for arm in ("outcome", "hybrid") for seed in (0, 1)
    }
    for row in over["table"]:
        assert row["measures"]["eval/accuracy:last"] is not None, row
        points = api.get(f"runs/{row['run']}/metrics", params={"key": "reward/mean"}).json()["points"]
        assert [point["step"] for point in points] == list(range(1, STEPS + 1))
    assert all(claim["verdict"] in ("holds", "does not hold here", "not decided") for claim in over["claims"])
    held_out = next(claim for claim in over["claims"] if claim["claim"].startswith("hybrid training raises both"))
    assert [(part["n"], part["missing"]) for part in held_out["parts"]] == [(2, 0), (2, 0)]
