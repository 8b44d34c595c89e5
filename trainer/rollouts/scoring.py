"""Responses to rewards: the composed total, and every criterion's verdict for the viewer."""

from collections.abc import Sequence
from functools import partial

from trainer.config.policy import RewardComponent
from trainer.contracts import Rubric
from trainer.inference.sampling import SampleResult
from trainer.rewards import Sample, breakdown, composition, guarded, score_rubric

from .trajectory import Reward


class RewardFunction:
    """Rewards as configured. A response that a component cannot value is excluded with the reason, never scored zero."""

    def __init__(self, components: Sequence[RewardComponent], max_new_tokens: int) -> None:
        self._components = components
        self._max_new_tokens = max_new_tokens

    def __call__(self, rubric: Rubric, result: SampleResult) -> Reward:
        sample = Sample(rubric, result.text, len(result.tokens), self._max_new_tokens)
        composed = composition.compose(self._components, sample)
        score = composed.rubric
        if score is None and not composed.excluded:
            # No component rewards the rubric; it is scored to be shown. What has just failed is not tried again.
            score, _ = guarded(partial(score_rubric, rubric, result.text), composition.COMPONENT_SECONDS)
        if score is None:
            return Reward(composed.total, dict(composed.components), excluded=composed.excluded)
        return Reward(
            composed.total,
            dict(composed.components),
            breakdown(rubric, score.verdicts),
            score.score,
            score.clipped,
            composed.excluded,
        )
