"""Objectives as mathematics: one record of tensors in, loss and diagnostics out. Imports torch and the knobs only.

objective = REGISTRY["grpo"]
params = objective.params(eps_high=0.28)
advantages_B = objective.advantages(rewards_B, groups_B, params)
step = ObjectiveBatch(logp_BT=old, mask_BT=mask, advantages_B=advantages_B, groups_B=groups_B, logp_old_BT=old)
for rows in micro_batches:
    objective.loss(step.rows(rows, logp_BT=model(rows)), params).loss.backward()
"""

from . import advantages
from .batch import ObjectiveBatch, ObjectiveError, ObjectiveResult, PairBatch, ScoreBatch
from .registry import REGISTRY, Objective

__all__ = [
    "REGISTRY",
    "Objective",
    "ObjectiveBatch",
    "ObjectiveError",
    "ObjectiveResult",
    "PairBatch",
    "ScoreBatch",
    "advantages",
]
