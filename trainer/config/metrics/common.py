"""Metrics that every recipe emits, and the groups of all metrics on a page."""

from dataclasses import dataclass

from ..recipe import Metric


@dataclass(frozen=True)
class Group:
    """Charts under one heading of a run's page. `small`: many charts of one kind, drawn smaller."""

    id: str
    title: str
    lede: str = ""
    small: bool = False


GROUPS = (
    Group("outcome", "Outcome"),
    Group("closing", "After the last step", "What the trained policy answers to the held-out prompts.", small=True),
    Group("reward", "Reward"),
    Group("judge", "Judge", "What judges said during the run, and what it cost."),
    Group("train", "Training"),
    Group("policy", "Policy"),
    Group("ratios", "Ratios"),
    Group("rollout", "Rollout"),
    Group("data", "Data"),
    Group("criteria", "Criteria", "Share of responses that meet the criteria checked by each verifier.", small=True),
    Group("optim", "Optimiser"),
    Group("async", "Workers", "How sampling and training keep pace with each other in an asynchronous run."),
    Group("speed", "Speed"),
)
"""The groups in the order of the page."""

COMMON = (
    Metric("optim/lr", "Learning rate", "As scheduled.", "optim"),
    Metric(
        "perf/step_s",
        "Time per step",
        "All of a step together: reading or sampling, scoring and updating.",
        "speed",
        unit="s",
        better="lower",
    ),
)
