"""Responses to rewards: named components, added up with their weights."""

from collections.abc import Sequence

from trainer.config.policy import RewardComponent
from trainer.contracts import Rubric
from trainer.inference.sampling import SampleResult
from trainer.rewards import RubricScore, breakdown, score_rubric

from .trajectory import Reward


class RewardFunction:
    """reward = sum of weight x component. A missing verdict excludes the response: it is never counted as not met."""

    def __init__(self, components: Sequence[RewardComponent], max_new_tokens: int) -> None:
        self._components = components
        self._max_new_tokens = max_new_tokens

    def __call__(self, rubric: Rubric, result: SampleResult) -> Reward:
        score = score_rubric(rubric, result.text)
        criteria = breakdown(rubric, score.verdicts)
        if score.score is None and any(part.kind == "rubric" for part in self._components):
            missing = ", ".join(verdict.criterion_id for verdict in score.verdicts if verdict.met is None)
            return Reward(None, criteria=criteria, excluded=f"no verdict for {missing}")
        values = {part.name: self._value(part, score, len(result.tokens)) for part in self._components}
        total = sum(part.weight * values[part.name] for part in self._components)
        return Reward(total, values, criteria, score.score, score.clipped)

    def _value(self, part: RewardComponent, score: RubricScore, length: int) -> float:
        if part.kind == "overlong":
            return overlong_penalty(length, part.soft_tokens, self._max_new_tokens)
        if score.score is None:
            raise ValueError("a response without a rubric score was to be rewarded")
        return score.score


def overlong_penalty(length: int, soft: int, longest: int) -> float:
    """0 up to `soft` tokens, then falling linearly to -1 at `longest` (DAPO's soft punishment, Yu et al., 2025)."""
    if length <= soft:
        return 0.0
    return -1.0 if longest <= soft else -min(1.0, (length - soft) / (longest - soft))
