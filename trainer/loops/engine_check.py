"""Do sampler and trainer agree about the policy?

Before the first update the ratio of their probabilities must be 1 on the prompts that were really sampled from. If it is
not, tokens, masks, temperature or weights differ between the two, and whatever the run learns would be noise.
"""

from collections.abc import Sequence

import torch

from trainer.config.policy import Rollout
from trainer.rollouts import Trajectory

from .errors import RunFailed
from .learner import Learner

TOLERANCE = {"float32": 1e-3, "bfloat16": 0.25}
"""Largest |ratio - 1| of any token. In float32 on a CPU 1e-5 is usual; bfloat16 keeps three digits."""
_SAMPLES = 4


def check_engine(learner: Learner, trajectories: Sequence[Trajectory], rollout: Rollout, dtype: str) -> float:
    """Largest |ratio - 1| over a few responses spread over the batch. Raises RunFailed when it is too large."""
    stride = max(1, len(trajectories) // _SAMPLES)
    worst = 0.0
    for trajectory in trajectories[::stride][:_SAMPLES]:
        sequence = (trajectory.plan.sampled_prompt_tokens, trajectory.tokens)
        logp_T = learner.sampled_log_probs(sequence, rollout.temperature, rollout.top_p)
        ratio_T = (logp_T - torch.tensor(trajectory.logprobs)).exp()
        if ratio_T.isnan().any():
            wider = "" if dtype == "float32" else ", or set model.dtype to float32"
            raise RunFailed(
                "The model gives probabilities that are not numbers before the first update: its weights are damaged, or "
                f"too large for {dtype}. Check its files{wider}."
            )
        worst = max(worst, float((ratio_T - 1.0).abs().max()))
    if worst > TOLERANCE[dtype]:
        raise RunFailed(
            f"sampler and trainer disagree: a token's probability differs by a factor of {1 + worst:.4g} before the first "
            f"update (allowed: 1 +- {TOLERANCE[dtype]:g}). The sampler does not run the weights that are trained."
        )
    return worst
