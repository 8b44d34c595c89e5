"""Metrics of recipes that learn from preferences."""

from ..recipe import Metric, with_ends

OUTCOME = (
    *with_ends(
        Metric(
            "eval/accuracy",
            "Held-out accuracy",
            "Share of held-out pairs in which the answer that more people preferred gets the higher score; the band is its 95% interval, for which "
            "the pairs of one prompt are drawn together. Chance is 50%.",
            "outcome",
            better="higher",
            count="eval/pairs",
            share=True,
            optional=True,
        ),
        "Of the 95% interval.",
    ),
    Metric(
        "eval/loss",
        "Held-out loss",
        "Mean of -log of the probability that the scores give to the answer that people chose; a coin would have 0.69.",
        "outcome",
        unit="nats/pair",
        better="lower",
        optional=True,
    ),
    Metric(
        "eval/margin",
        "Held-out margin",
        "By how much the preferred answer's score leads, on average.",
        "outcome",
        better="higher",
        optional=True,
    ),
)

TRAINING = (
    Metric(
        "train/loss",
        "Training loss",
        "Of the step's pairs, before its update.",
        "outcome",
        unit="nats/pair",
        better="lower",
    ),
    Metric(
        "train/accuracy",
        "Training accuracy",
        "Share of the step's pairs that the model orders as people did, before the step's update. Ties do not count.",
        "train",
        better="higher",
        share=True,
        optional=True,
    ),
    Metric(
        "train/margin",
        "Training margin",
        "By how much the preferred answer's score leads, on average over the step's pairs, before its update.",
        "train",
        better="higher",
        optional=True,
    ),
)

_N = "Held-out pairs from which that accuracy is computed."
_ENDS = "Of the 95% interval of that accuracy."

PAIRS = (
    Metric(
        "eval/pairs",
        "Held-out pairs",
        "Pairs from which the evaluation is computed.",
        "data",
        unit="pairs",
        optional=True,
    ),
    *with_ends(
        Metric(
            "eval/domain/*",
            "Accuracy by domain",
            "Held-out accuracy within each domain, the largest ones first; bands are 95% intervals.",
            "data",
            chart="Accuracy by domain",
            count="eval/domain_pairs/*",
            share=True,
            optional=True,
        ),
        _ENDS,
    ),
    Metric(
        "eval/domain_pairs/*",
        "Pairs by domain",
        _N,
        "data",
        chart="Pairs by domain",
        unit="pairs",
        count="eval/domain_pairs/*",
        optional=True,
    ),
    *with_ends(
        Metric(
            "eval/strength/*",
            "Accuracy by strength",
            "Held-out accuracy by how strongly people preferred the one answer, from 1 (slightly) to 3 (much).",
            "data",
            chart="Accuracy by strength",
            count="eval/strength_pairs/*",
            share=True,
            optional=True,
        ),
        _ENDS,
    ),
    Metric(
        "eval/strength_pairs/*", "Pairs by strength", _N, "data", chart="Pairs by strength", unit="pairs", optional=True
    ),
    *with_ends(
        Metric(
            "eval/agreement/*",
            "Accuracy by agreement",
            "Held-out accuracy where several people compared: `all` agreed, at least three quarters did (`most`), or fewer (`some`).",
            "data",
            chart="Accuracy by agreement",
            count="eval/agreement_pairs/*",
            share=True,
            optional=True,
        ),
        _ENDS,
    ),
    Metric(
        "eval/agreement_pairs/*",
        "Pairs by agreement",
        _N,
        "data",
        chart="Pairs by agreement",
        unit="pairs",
        optional=True,
    ),
    Metric(
        "eval/longer_worse",
        "Accuracy where longer is worse",
        "On held-out pairs whose rejected answer is longer by half or more. If it is far below the accuracy on all pairs, the scores depend on length.",
        "data",
        better="higher",
        share=True,
        optional=True,
    ),
    Metric("eval/longer_worse_pairs", "Pairs where longer is worse", _N, "data", unit="pairs", optional=True),
    Metric(
        "eval/length_correlation",
        "Scores and lengths",
        "Correlation of the lead in score with the lead in log length within held-out pairs. Near 1, length decides the score.",
        "data",
        optional=True,
    ),
)
