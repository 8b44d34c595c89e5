"""Do sampler and trainer agree about the policy?

Before an update both must give the sampled tokens the same probabilities, on the prompts that were really sampled from. If
they do not, tokens, masks, temperature or weights differ between them, and what the run learns would be noise.

Single tokens say little: in bfloat16 a token at the edge of the nucleus falls outside of it for the trainer, and the longer the
responses, the larger the largest difference. So these numbers decide, each with room for rounding:

- the mean difference of the log-probabilities, over all tokens and within each response;
- how many tokens the trainer rules out;
- the mean of pi_train / pi_roll over the tokens that pi_roll drew. It is 1 for any two distributions over the same tokens, however far
  apart rounding has moved them. What is missing from 1 is what the sampler cannot say: a lost end of text, top-k, a penalty;
- where responses end: at a token that ends them, and nowhere else.

After the first step the check also asks whether the sampler still answers as the untrained model, if the learner
has that model: with its adapters off, or as the frozen copy of a KL. If all weights are trained without a KL, this is not checked.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.config import OnPolicyConfig
from trainer.config.on_policy import Rollout
from trainer.contracts.plurals import with_noun
from trainer.inference.prefix import pack
from trainer.rollouts import Trajectory

from ..session.errors import RunFailed
from .learner import Learner, Marked

LOOKS = 2
"""The number of steps that are checked. One is not enough: adapters begin at zero, so that a lost push shows only after an update."""
_SAMPLES = 64
_TOKENS = 4096
_LONG = 16
"""Tokens from which a response's own mean difference counts in full; with fewer tokens, more of the difference may be chance."""
_SIGMAS = 6.0
_ALIKE = 5.0
"""The highest ratio of one response's mean difference to the median of all responses' mean differences, besides the fixed
allowance. In healthy starts the worst response has 1.4 times the median, for the tiny model and for SmolLM2 in bfloat16.
"""


@dataclass(frozen=True)
class DeviationBounds:
    """`mean`: largest mean |log pi_train - log pi_roll| of a token. `outside`: share of tokens at the nucleus' edge that may
    fall outside of it for the trainer. `alone`: largest mean difference of one response. `missing`: part of the trainer's
    distribution that the sampler may leave out, besides what chance explains.
    """

    mean: float
    outside: float
    alone: float
    missing: float


BOUNDS = {
    "float32": DeviationBounds(5e-4, 1e-3, 2e-3, 2e-4),
    "bfloat16": DeviationBounds(0.08, 0.01, 0.02, 1e-3),
    "int8": DeviationBounds(0.4, 0.05, 0.5, 5e-3),
    "int4": DeviationBounds(0.8, 0.1, 1.0, 2e-2),
}
"""The bounds by the sampler's precision. On a CPU a mean difference of 1e-6 is usual in float32. In bfloat16 it is 0.004 for the tiny
model and 0.03 for SmolLM2 with a nucleus of .9; `benchmarks.engine_check` measures it. In int8 it is 0.005 for the model of
`trainer.claims.toy` and 0.2 for SmolLM2 (`benchmarks.int8`), in int4 0.035 for the former. Other models were not measured.
"""


@dataclass(frozen=True)
class EngineAgreement:
    """The comparison over `tokens` tokens. `mean` is the mean |difference| of the log-probabilities (nats), `outside` counts the
    tokens that the trainer rules out. `worst` is the largest mean of one response, `usual` the median of these means. `ratio` is the
    mean of pi_train / pi_roll, `error` its standard error.
    """

    tokens: int
    mean: float
    outside: int
    worst: float = 0.0
    usual: float = 0.0
    ratio: float = 1.0
    error: float = 0.0

    def problem(self, dtype: str) -> str:
        """The differences that rounding does not explain; empty if sampler and trainer are the same policy."""
        bounds = BOUNDS[dtype]
        if self.mean > bounds.mean or self.outside > allowed_outside(self.tokens, dtype):
            return (
                f"over {with_noun(self.tokens, 'tokens')} their log-probabilities differ by {self.mean:.3g} on average (allowed: "
                f"{bounds.mean:g}), and {with_noun(self.outside, 'tokens')} could not have been sampled (allowed: "
                f"{allowed_outside(self.tokens, dtype)}). The sampler does not run the trained weights, or draws "
                "in another way."
            )
        if self.worst > (allowed := bounds.alone + _ALIKE * self.usual):
            return (
                f"over the tokens of one response their log-probabilities differ by {self.worst:.3g} on average (allowed: "
                f"{allowed:.2g}), over those of half of the responses by at most {self.usual:.3g}. The response was sampled from something else than what is "
                "trained on: a mask, its prompt or the places of its tokens are wrong."
            )
        if 1.0 - self.ratio > bounds.missing + _SIGMAS * self.error:
            return (
                f"the sampler leaves out {1.0 - self.ratio:.3g} of the trainer's distribution (allowed: "
                f"{bounds.missing + _SIGMAS * self.error:.2g}): it cannot draw some tokens, such as those that end a response, or "
                "draws with top-k or a penalty that the trainer does not know of."
            )
        return ""

    def fits(self, dtype: str) -> bool:
        return not self.problem(dtype)


def precision(config: OnPolicyConfig) -> str:
    """The precision of the sampler, a key of BOUNDS."""
    model, sampler = config.model, config.sampler
    return model.dtype if sampler.precision == "model" else sampler.precision


def allowed_outside(tokens: int, dtype: str) -> int:
    """Four standard deviations above the expected number, and two for short responses."""
    expected = BOUNDS[dtype].outside * tokens
    return 2 + math.ceil(expected + 4 * math.sqrt(expected))


class EngineCheck:
    """The check of one run, or of one attempt: a resumed run is checked again."""

    def __init__(self, config: OnPolicyConfig, stop_ids: frozenset[int]) -> None:
        self._config, self._stop_ids = config, stop_ids
        self._looks = 0

    @property
    def done(self) -> bool:
        return self._looks >= LOOKS

    def look(
        self, step: int, learner: Learner, trajectories: Sequence[Trajectory], rollout: Rollout | None = None
    ) -> tuple[str, bool]:
        """The text of the check, and whether it is a warning. Raises RunFailed if sampler and trainer are not the same policy.

        `trajectories` are fresh: sampled for `step` by the weights that `learner` has now, as `rollout` says (left out: as the config
        says).
        """
        if why := misplaced_ends(trajectories, self._stop_ids, bool(self._config.rollout.stop)):
            raise _disagree(why)
        chosen = spread(trajectories, self._looks)
        rollout = rollout or self._config.rollout
        logp_T = _logprobs(learner, chosen, self._config, rollout)
        found = compared([torch.tensor(t.logprobs) for t in chosen], logp_T, self._config.model.dtype)
        if why := found.problem(precision(self._config)):
            raise _disagree(why)
        self._looks += 1
        behind = step > 1 and self._refers and self._behind(learner, chosen, torch.cat(logp_T), rollout)
        if behind and not self._rounds_away:
            raise _disagree(BEHIND)
        if behind:
            return f"{BEHIND} {ROUNDED}", True
        return (
            f"sampler and trainer agree: over {with_noun(found.tokens, 'tokens')} their log-probabilities differ by "
            f"{found.mean:.2g} on average"
        ), False

    @property
    def _refers(self) -> bool:
        """Whether the learner, in this process or in several, has the untrained model to compare with."""
        return self._config.model.lora is not None or self._config.holdings().frozen

    @property
    def _rounds_away(self) -> bool:
        """Whether a push may lose what training has added, because the sampler's weights are merged into bfloat16 or rounded to whole
        numbers.
        """
        model, sampler = self._config.model, self._config.sampler
        rounds = sampler.precision != "model" or (model.lora is not None and model.dtype == "bfloat16")
        return sampler.push == "merged" and rounds

    def _behind(self, learner: Learner, chosen: Sequence[Trajectory], logp_T: Tensor, rollout: Rollout) -> bool:
        """Whether the recorded log-probabilities fit the untrained model better than the trained one, beyond chance."""
        before_T = torch.cat(_logprobs(learner, chosen, self._config, rollout, untrained=True))
        roll_T = torch.cat([torch.tensor(t.logprobs) for t in chosen])
        return fits_better(before_T - roll_T, logp_T - roll_T)


BEHIND = (
    "The sampled text is likelier under the untrained model than under the trained one: the last update "
    "did not reach the sampler."
)
ROUNDED = (
    "In bfloat16, and with a sampler.precision of its own, this happens while the adapters are too small to change the weights into "
    "which they are merged; sampler.push 'adapters' avoids it."
)


def agreement(learner: Learner, trajectories: Sequence[Trajectory], config: OnPolicyConfig) -> EngineAgreement:
    """The agreement over all these responses. Raises RunFailed for probabilities that are not numbers."""
    logp = _logprobs(learner, trajectories, config, config.rollout)
    return compared([torch.tensor(t.logprobs) for t in trajectories], logp, config.model.dtype)


def misplaced_ends(trajectories: Sequence[Trajectory], stop_ids: frozenset[int], texts: bool) -> str:
    """Evidence in ends of responses that the sampler lost the token that ends them, or continued after it; empty if they show neither.

    With `texts` a response may also end at a text.
    """
    for t in trajectories:
        tokens, places = t.tokens, t.places
        if not places:
            continue
        mine = set(places)
        for place in places:
            if tokens[place] in stop_ids and place + 1 in mine:
                return f"a response continues after token {tokens[place]}, which ends it: the sampler does not stop where it must."
        if t.stop == "stop" and not texts and tokens[places[-1]] not in stop_ids:
            return (
                f"a response ended by itself with token {tokens[places[-1]]}, which is not an end token: the sampler drops the "
                "end token, so the policy would never learn to stop."
            )
    return ""


def spread(trajectories: Sequence[Trajectory], look: int = 0) -> list[Trajectory]:
    """Responses at even distances, as many as fit the tokens that a check may cost; another `look` begins at another response."""
    stride = max(1, len(trajectories) // _SAMPLES)
    chosen: list[Trajectory] = []
    tokens = 0
    for trajectory in trajectories[look % stride :: stride][:_SAMPLES]:
        if chosen and tokens + trajectory.length > _TOKENS:
            break
        if trajectory.length:
            chosen.append(trajectory)
            tokens += trajectory.length
    return chosen


def compared(roll: Sequence[Tensor], logp: Sequence[Tensor], dtype: str) -> EngineAgreement:
    """The agreement of recorded and computed log-probabilities of the same responses, [T] each. Raises RunFailed for a value that is not a
    number.
    """
    roll_T, logp_T = torch.cat(list(roll)), torch.cat(list(logp))
    if (logp_T - roll_T).isnan().any():
        wider = "" if dtype == "float32" else ", or set model.dtype to float32"
        raise RunFailed(
            "The model gives probabilities that are not numbers before the first update: its weights are damaged, or "
            f"too large for {dtype}. Check its files{wider}."
        )
    difference_T = logp_T - roll_T
    inside_T = difference_T[difference_T.isfinite()].abs()
    # Tokens that are ruled out are counted; the mean of a few such tokens would hide the others.
    ratio_T = difference_T[difference_T.isfinite()].double().clamp(max=20.0).exp()
    of_each = [_of_one(one - other) for one, other in zip(logp, roll, strict=True)] or [0.0]
    return EngineAgreement(
        len(difference_T),
        float(inside_T.mean()) if len(inside_T) else math.inf,
        len(difference_T) - len(inside_T),
        max(of_each),
        statistics.median(of_each),
        float(ratio_T.mean()) if len(ratio_T) else 0.0,
        float(ratio_T.std()) / math.sqrt(len(ratio_T)) if len(ratio_T) > 1 else math.inf,
    )


def fits_better(one_T: Tensor, other_T: Tensor) -> bool:
    """Whether the squared differences `one_T` are smaller than those of `other_T` by more than chance, token by token."""
    both = one_T.isfinite() & other_T.isfinite()
    gain_T = (other_T[both].double() ** 2).clamp(max=1.0) - (one_T[both].double() ** 2).clamp(max=1.0)
    if len(gain_T) < _LONG:
        return False
    spread_ = float(gain_T.std())
    return float(gain_T.mean()) > _SIGMAS * spread_ / math.sqrt(len(gain_T)) > 0.0


def _of_one(difference_T: Tensor) -> float:
    """The mean difference of one response, shrunk if it has few tokens: chance falls with the root of their number."""
    return _mean(difference_T) * min(1.0, math.sqrt(len(difference_T) / _LONG))


def _mean(difference_T: Tensor) -> float:
    """The mean of the absolute values, without tokens that the trainer rules out; those are counted elsewhere."""
    inside = difference_T[difference_T.isfinite()].abs().tolist()
    return statistics.fmean(inside) if inside else 0.0


def _logprobs(
    learner: Learner, chosen: Sequence[Trajectory], config: OnPolicyConfig, rollout: Rollout, untrained: bool = False
) -> list[Tensor]:
    """Log-probabilities [T] of each response, in as few passes as the token budget of a pass allows."""
    rows = [Marked.of(trajectory, sampled=True) for trajectory in chosen]
    found = [torch.empty(0)] * len(rows)
    for each in pack([row.read for row in rows], config.optim.micro_batch_tokens):
        parts = learner.sampled_log_probs(
            [rows[place] for place in each.places], rollout.temperature, rollout.top_p, untrained
        )
        for place, part in zip(each.places, parts, strict=True):
            found[place] = part
    return found


def _disagree(why: str) -> RunFailed:
    return RunFailed(f"sampler and trainer disagree: {why}")
