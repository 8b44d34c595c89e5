"""Writes trainer/config/objectives/worked.json: one small record for each objective, and the calculator's result for it.

The web side has no torch, so the page of an objective shows these numbers. A test computes them again.
Run it after changing an objective: python -m scripts.worked_examples
"""

import json
from pathlib import Path
from typing import Any

from trainer.config.objectives.catalogue import CATALOGUE
from trainer.objectives.calculator import calculate

TARGET = Path(__file__).resolve().parent.parent / "trainer" / "config" / "objectives" / "worked.json"
# three responses to one prompt: one whose first token has run ahead of the clip, a bad one, and a short one that the
# sampler found far more likely than the trainer did
TOKENS = {
    "logp": [[-0.7, -1.6], [-1.1, -0.4], [-2.0]],
    "logp_old": [[-1.0, -1.5], [-1.2, -0.4], [-1.9]],
    "logp_roll": [[-1.0, -1.4], [-1.3, -0.5], [-0.9]],
    "logp_ref": [[-1.2, -1.5], [-1.0, -0.6], [-1.9]],
    "logp_teacher": [[-0.5, -2.2], [-1.0, -0.9], [-1.5]],
}
REWARDS = [1.0, 0.0, 0.5]
PARAMS: dict[str, dict[str, Any]] = {"dr_grpo": {"max_tokens": 2}, "oapl": {"beta2": 0.1}}


def record(name: str) -> dict[str, Any]:
    """A record with what the objective reads, and nothing else."""
    if name == "dpo":
        sides = {"chosen": 0, "rejected": 1}
        return {side: {key: [TOKENS[key][row]] for key in ("logp", "logp_ref")} for side, row in sides.items()}
    if name == "bradley_terry":
        return {"chosen": [1.5, 0.2], "rejected": [0.5, 0.9]}
    found: dict[str, Any] = {"logp": TOKENS["logp"]}
    found |= {key: TOKENS[key] for key in CATALOGUE[name].needs if key in TOKENS}
    if "rewards" in CATALOGUE[name].needs:
        found["rewards"] = REWARDS
    return found | ({"params": PARAMS[name]} if name in PARAMS else {})


def worked() -> dict[str, Any]:
    """Name -> the record, and the calculator's answer to it."""
    return {name: {"record": record(name), "result": calculate(name, record(name))} for name in CATALOGUE}


if __name__ == "__main__":
    TARGET.write_text(json.dumps(worked(), indent=1) + "\n")
    print(f"{TARGET.name}: {len(CATALOGUE)} objectives")
