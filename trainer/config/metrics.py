"""Metrics that every recipe emits."""

from .recipe import Metric

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
