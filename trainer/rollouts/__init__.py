"""Sampling responses and finding out what they are worth."""

from .collect import flat_groups, greedy_rewards, group_rewards, sample_plans, score_samples
from .scoring import RewardFunction, Scorer
from .trajectory import PromptPlan, Reward, Trajectory

__all__ = [
    "PromptPlan",
    "Reward",
    "RewardFunction",
    "Scorer",
    "Trajectory",
    "flat_groups",
    "greedy_rewards",
    "group_rewards",
    "sample_plans",
    "score_samples",
]
