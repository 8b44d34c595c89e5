"""Do sampler and trainer agree about the policy?

Before the first update the ratio of their probabilities must be 1 on the prompts that were really sampled from. If it is
not, tokens, masks, temperature or weights differ between the two, and whatever the run learns would be noise.

Single tokens say little: in bfloat16 a token at the edge of the nucleus falls outside of it for the trainer, and the
longer the responses the larger the largest difference. So the mean difference decides, and the number of tokens outside.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from trainer.config.policy import Rollout
from trainer.rollouts import Trajectory

from .errors import RunFailed
from .learner import Learner, Marked

MEAN = {"float32": 5e-4, "bfloat16": 0.05}
"""Largest mean |log pi_train - log pi_roll| of a token. On a CPU 1e-6 is usual in float32, 0.005 in bfloat16."""
OUTSIDE = {"float32": 1e-3, "bfloat16": 0.01}
"""Share of tokens at the nucleus' edge that may fall outside of it for the trainer."""
_SAMPLES = 8
_TOKENS = 4096


@dataclass(frozen=True)
class Agreement:
    """Over `tokens` tokens: mean |difference| of the log-probabilities (nats), `outside` those the trainer rules out."""

    tokens: int
    mean: float
    outside: int

    def fits(self, dtype: str) -> bool:
        return self.mean <= MEAN[dtype] and self.outside <= allowed_outside(self.tokens, dtype)


def allowed_outside(tokens: int, dtype: str) -> int:
    """Four standard deviations above the expected number, and two for short responses."""
    expected = OUTSIDE[dtype] * tokens
    return 2 + math.ceil(expected + 4 * math.sqrt(expected))


def check_engine(learner: Learner, trajectories: Sequence[Trajectory], rollout: Rollout, dtype: str) -> Agreement:
    """Over a few responses spread over the batch. Raises RunFailed where sampler and trainer are not the same policy."""
    found = agreement(learner, _spread(trajectories), rollout, dtype)
    if not found.fits(dtype):
        raise RunFailed(
            f"sampler and trainer disagree before the first update: over {found.tokens} tokens their log-probabilities "
            f"differ by {found.mean:.3g} on average (allowed: {MEAN[dtype]:g}), and {found.outside} tokens could not have "
            f"been sampled (allowed: {allowed_outside(found.tokens, dtype)}). The sampler does not run the weights that "
            "are trained."
        )
    return found


def agreement(learner: Learner, trajectories: Sequence[Trajectory], rollout: Rollout, dtype: str) -> Agreement:
    """Raises RunFailed where a probability is not a number."""
    differences: list[torch.Tensor] = []
    for trajectory in trajectories:
        row = Marked.of(trajectory, sampled=True)
        logp_T = learner.sampled_log_probs(row, rollout.temperature, rollout.top_p)
        difference_T = logp_T - torch.tensor(trajectory.logprobs)
        if difference_T.isnan().any():
            wider = "" if dtype == "float32" else ", or set model.dtype to float32"
            raise RunFailed(
                "The model gives probabilities that are not numbers before the first update: its weights are damaged, or "
                f"too large for {dtype}. Check its files{wider}."
            )
        differences.append(difference_T)
    all_T = torch.cat(differences)
    inside_T = all_T[all_T.isfinite()].abs()
    mean = float(inside_T.mean()) if len(inside_T) else math.inf
    return Agreement(len(all_T), mean, len(all_T) - len(inside_T))


def _spread(trajectories: Sequence[Trajectory]) -> list[Trajectory]:
    """A few responses at even distances, as many as fit the tokens that a check may cost."""
    stride = max(1, len(trajectories) // _SAMPLES)
    chosen, tokens = [], 0
    for trajectory in trajectories[::stride][:_SAMPLES]:
        if chosen and tokens + trajectory.length > _TOKENS:
            break
        chosen.append(trajectory)
        tokens += trajectory.length
    return chosen
