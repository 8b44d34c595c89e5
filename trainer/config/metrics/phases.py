"""Metrics of the phases, budgets and curricula of a run."""

from ..recipe import Metric

PHASES = (
    Metric(
        "rollout/temperature",
        "Temperature",
        "The temperature that the step samples with, as its phase has set it.",
        "rollout",
        optional=True,
    ),
    Metric(
        "rollout/pool",
        "Prompts to draw from",
        "Training prompts that the present phase draws from, by their pass rate, tags or domain.",
        "rollout",
        unit="prompts",
        optional=True,
    ),
    Metric(
        "phase/number",
        "Phase",
        "The number of the phase that begins with this step; every chart has a band for each phase.",
        "rollout",
        optional=True,
        marks=True,
    ),
    Metric(
        "phase/budget",
        "Budget of lengths",
        "1 at the step where a stretch with a budget begins, 0 where a free stretch begins; charts have a line at the top while a budget is on.",
        "rollout",
        optional=True,
        marks=True,
    ),
    Metric(
        "verify/error",
        "Error of its judgements",
        "How far the policy's judgements of its own responses are from what these are known to be worth, from 0 to 1, over those that "
        "name a score. Healthy: falls.",
        "rollout",
        better="lower",
        optional=True,
    ),
    Metric(
        "verify/unread",
        "Judgements without a score",
        "They earn nothing. Healthy: falls to 0 soon.",
        "rollout",
        better="lower",
        share=True,
        optional=True,
    ),
    Metric(
        "verify/reward",
        "Reward of its judgements",
        "Their reward: agreement with the known score, tied to that score (phases.tied).",
        "rollout",
        better="higher",
        optional=True,
    ),
    Metric(
        "verify/judged_score",
        "Score of what it judges",
        "Mean known score of the judged responses. They are those to the step's hardest prompts.",
        "rollout",
        optional=True,
    ),
    Metric(
        "toggle/limited",
        "Prompts with a budget",
        "Groups of the step whose prompt has a budget of tokens, because a response to it was correct.",
        "rollout",
        share=True,
        optional=True,
    ),
    Metric(
        "toggle/over",
        "Over budget",
        "Responses of the step that count as worth 0 because they are longer than their budget; 0 in free steps. Healthy: falls "
        "through a stretch with a budget. The reward's own charts show what was measured.",
        "rollout",
        better="lower",
        share=True,
        optional=True,
    ),
)

STORED_PHASES = (
    *(metric for metric in PHASES if metric.key == "phase/number"),
    Metric(
        "train/pool",
        "Examples to draw from",
        "Training examples that the present phase draws from, by pass rate, tags or domain; of pairs, the pairs.",
        "data",
        optional=True,
    ),
)
"""The metrics of phases in recipes that train on stored texts."""

ROUND_PHASES = tuple(
    metric for metric in PHASES if metric.key in ("rollout/temperature", "rollout/pool", "phase/number")
)
"""The metrics of phases in recipes that sample in rounds."""
