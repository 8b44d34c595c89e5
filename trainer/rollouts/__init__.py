"""Sampling responses and computing their rewards."""

from .collect import (
    Groups,
    RolloutScorer,
    Scored,
    flat_groups,
    greedy_rewards,
    greedy_samples,
    group_rewards,
    item_of,
    sample_and_score,
    sample_plans,
    score_samples,
    score_trajectories,
    taught_rewards,
)
from .episode import Episode, RolloutTask, episode_rows, one_of_each
from .scoring import RewardScorer, RewardWatch
from .setup import Rewards, RewardSetup, reward_folders
from .trajectory import PromptPlan, Reward, Span, Trajectory, TrajectoryKey

__all__ = [
    "Episode",
    "Groups",
    "PromptPlan",
    "Reward",
    "RewardScorer",
    "RewardSetup",
    "Rewards",
    "Scored",
    "RolloutScorer",
    "Span",
    "RolloutTask",
    "Trajectory",
    "TrajectoryKey",
    "RewardWatch",
    "episode_rows",
    "flat_groups",
    "greedy_rewards",
    "greedy_samples",
    "group_rewards",
    "item_of",
    "one_of_each",
    "reward_folders",
    "sample_and_score",
    "sample_plans",
    "score_trajectories",
    "taught_rewards",
    "score_samples",
]
