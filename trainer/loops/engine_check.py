"""Do sampler and trainer agree about the policy?

Before the first update the ratio of their probabilities must be 1 on the prompts that were really sampled from. If it is
not, tokens, masks, temperature or weights differ between the two, and whatever the run learns would be noise.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from trainer.config.policy import Rollout
from trainer.inference.draw import nucleus
from trainer.rollouts import Trajectory

from .errors import RunFailed
from .learner import Learner

TOLERANCE = {"float32": 1e-3, "bfloat16": 0.25}
"""Largest |ratio - 1| of any token. In float32 on a CPU 1e-5 is usual; bfloat16 keeps three digits."""
_SAMPLES = 4


@torch.no_grad()
def check_engine(learner: Learner, trajectories: Sequence[Trajectory], rollout: Rollout, dtype: str) -> float:
    """Largest |ratio - 1| over a few responses spread over the batch. Raises RunFailed when it is too large."""
    stride = max(1, len(trajectories) // _SAMPLES)
    worst = 0.0
    for trajectory in trajectories[::stride][:_SAMPLES]:
        hidden_TD, tokens_T = learner.response_states([(trajectory.plan.sampled_prompt_tokens, trajectory.tokens)])
        logp_T = sampled_log_probs(learner.logits(hidden_TD), tokens_T, rollout.temperature, rollout.top_p)
        ratio_T = (logp_T - torch.tensor(trajectory.logprobs)).exp()
        worst = max(worst, float((ratio_T - 1.0).abs().max()))
    if not worst <= TOLERANCE[dtype]:
        raise RunFailed(
            f"sampler and trainer disagree: a token's probability differs by a factor of {1 + worst:.4g} before the first "
            f"update (allowed: 1 +- {TOLERANCE[dtype]:g}). The sampler does not run the weights that are trained."
        )
    return worst


def sampled_log_probs(logits_TV: Tensor, tokens_T: Tensor, temperature: float, top_p: float) -> Tensor:
    """Log-probabilities [T] under the distribution a sampler draws from: temperature, then nucleus."""
    logp_TV = torch.log_softmax(logits_TV / temperature, dim=-1)
    if top_p >= 1:
        return logp_TV.gather(-1, tokens_T[:, None])[:, 0]
    kept_TN, ids_TN = nucleus(logp_TV.exp(), top_p)
    return torch.where(ids_TN == tokens_T[:, None], kept_TN, 0.0).sum(-1).log()
