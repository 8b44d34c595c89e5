"""Metrics that every recipe emits, and the groups of all metrics on a page."""

from dataclasses import dataclass

from ..recipe import Metric, with_ends


@dataclass(frozen=True)
class ChartGroup:
    """Charts under one heading of a run's page. `small`: many charts of one kind, drawn smaller."""

    id: str
    title: str
    lede: str = ""
    small: bool = False


GROUPS = (
    ChartGroup("outcome", "Outcome"),
    ChartGroup(
        "closing", "After the last step", "What the trained policy answers to the held-out prompts.", small=True
    ),
    ChartGroup("reward", "Reward"),
    ChartGroup("judge", "Judge", "What judges said during the run, and what it cost."),
    ChartGroup("train", "Training"),
    ChartGroup("policy", "Policy"),
    ChartGroup("ratios", "Ratios"),
    ChartGroup("rollout", "Rollout"),
    ChartGroup("data", "Data"),
    ChartGroup(
        "criteria", "Criteria", "Share of responses that meet the criteria checked by each verifier.", small=True
    ),
    ChartGroup("optim", "Optimiser"),
    ChartGroup("async", "Workers", "How sampling and training keep pace with each other in an asynchronous run."),
    ChartGroup("speed", "Speed"),
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


def share_of_pairs(key: str, title: str, help: str) -> tuple[Metric, ...]:
    """A share of the held-out pairs that tells how good the result is, with its 95% interval."""
    found = Metric(key, title, help, "outcome", better="higher", count="eval/pairs", share=True, optional=True)
    return with_ends(found, "95%.")
