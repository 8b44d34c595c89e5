"""Sampling responses and finding out what they are worth."""

from .collect import (
    Groups,
    Scored,
    Scoring,
    Task,
    flat_groups,
    greedy_rewards,
    greedy_samples,
    group_rewards,
    item_of,
    sample_and_score,
    sample_plans,
    score_samples,
)
from .scoring import RewardScorer, Watch
from .setup import RewardSetup, reward_folders
from .trajectory import PromptPlan, Reward, Trajectory

__all__ = [
    "Groups",
    "PromptPlan",
    "Reward",
    "RewardScorer",
    "RewardSetup",
    "Scored",
    "Scoring",
    "Task",
    "Trajectory",
    "Watch",
    "flat_groups",
    "greedy_rewards",
    "greedy_samples",
    "group_rewards",
    "item_of",
    "reward_folders",
    "sample_and_score",
    "sample_plans",
    "score_samples",
]
