"""Responses to rewards: the composed total, and every criterion's verdict for the viewer."""

from collections.abc import Sequence

from trainer.config.policy import RewardComponent
from trainer.contracts import Rubric
from trainer.inference.sampling import SampleResult
from trainer.rewards import Sample, breakdown, compose, score_rubric

from .trajectory import Reward


class RewardFunction:
    """Rewards as configured. A response that a component cannot value is excluded with the reason, never scored zero."""

    def __init__(self, components: Sequence[RewardComponent], max_new_tokens: int) -> None:
        self._components = components
        self._max_new_tokens = max_new_tokens

    def __call__(self, rubric: Rubric, result: SampleResult) -> Reward:
        composed = compose(self._components, Sample(rubric, result.text, len(result.tokens), self._max_new_tokens))
        score = composed.rubric or score_rubric(rubric, result.text)
        return Reward(
            composed.total,
            dict(composed.components),
            breakdown(rubric, score.verdicts),
            score.score,
            score.clipped,
            composed.excluded,
        )
